"""What kernpool's defaults have to reach on the tables of the half that reports, and on three older ones."""

from __future__ import annotations

import numpy as np
from table_summary import Summary

HEADLINE = "stacking"
GAPS = {  # of the best peer, by mean over tables
    1.0: {"stacking": 0.002, "local linear": 0.010},
    -1.0: {"stacking": 0.010, "Nadaraya-Watson": 0.030},
}
BEHIND, TABLES_BEHIND = 0.03, 0.05  # R^2 of the best peer less ours, fraction of tables
BIAS = 0.03  # of the mean of `expected_error` over the error held out, less one
FLOORS = {"friedman1": 0.955, "friedman2": 0.940, "diabetes": 0.476}  # R^2 of local linear fits, as it was
WORDS = f"""\
- Numbers: the mean gap in R^2 to the best peer at most {GAPS[1.0]["stacking"]} for stacking, \
{GAPS[1.0]["local linear"]:.3f} for local linear fits; stacking more than {BEHIND} behind on at most one table in \
{1 / TABLES_BEHIND:.0f}.
- Classes: the mean gap in log loss to the best peer at most {GAPS[-1.0]["stacking"]:.3f} for stacking, \
{GAPS[-1.0]["Nadaraya-Watson"]:.3f} for the Nadaraya-Watson classifier.
- Stacking has a better mean rank than every peer, on the tables that each was run on.
- `expected_error`: no farther from the error held out, on average, than five-fold nested cross-validation; \
the mean ratio within {100 * BIAS:.0f} % of 1.
- R^2 of local linear fits on {", ".join(FLOORS)} at least {", ".join(f"{floor:.3f}" for floor in FLOORS.values())}, \
as it was."""


def missed(found: Summary) -> list[str]:
    """Return targets that were missed on the tables of one kind in the half that reports, in words."""
    if not found.tables:
        return []
    score = "log loss" if found.sign < 0 else "R^2"
    kind = "classes" if found.sign < 0 else "numbers"
    lines = []
    for name, most in GAPS[found.sign].items():
        gaps = np.array([*found.gaps(name).values()])
        if not len(gaps):
            lines.append(f"{name} was not measured on {kind}")
            continue
        if gaps.mean() > most:
            lines.append(f"{name} {score} {gaps.mean():.4f} behind the best peer on average")
        failed = sum(record["model"] == name for record in found.failed)
        lines += [f"{failed} fits of {name} on {kind} failed"] if failed else []
        lines += _errors(found, name) if found.models[name].says_error else []
        if name == HEADLINE:
            behind, ahead = int(np.sum(gaps > BEHIND)), found.ahead(name)
            if found.sign > 0 and behind > TABLES_BEHIND * len(gaps):
                lines.append(f"{name} more than {BEHIND} behind on {behind} tables")
            lines += [f"ranks better than {name} on {kind}: {', '.join(ahead)}"] if ahead else []
    return lines


def _errors(found: Summary, name: str) -> list[str]:
    """Targets of `expected_error` that a model missed, on the tables that have it."""
    said, nested = (np.array([*found.promises(name, of).values()]) for of in ("expected_error", "nested_error"))
    if not len(said):
        return [f"`expected_error` of {name} was not measured"]
    ours, theirs = (float(np.mean(np.abs(ratio - 1.0))) for ratio in (said, nested))
    lines = []
    if ours > theirs:
        lines.append(
            f"`expected_error` of {name} off by {100 * ours:.1f} %, nested cross-validation {100 * theirs:.1f} %"
        )
    if abs(said.mean() - 1.0) > BIAS:
        lines.append(f"`expected_error` of {name} biased by {100 * (said.mean() - 1.0):+.1f} %")
    return lines


def below_floors(found: Summary) -> list[str]:
    """Return which of three older tables local linear fits became worse on."""
    means = {table: found.means.get((table, "local linear")) for table in FLOORS}
    return [
        f"local linear R^2 {mean:.4f} on {table}"
        for table, mean in means.items()
        if mean is not None and round(mean, 3) < FLOORS[table]
    ]
