"""The page of `distribution_tables.py`: losses, ranks, and how often ranges cover, on either half of the tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from distribution_models import DISTRIBUTIONS
from distribution_scores import NOMINAL
from measure import report
from table_report import HALVES, against_best, against_each, costs, markdown, number, scores, versions
from table_summary import Summary

OURS = "local linear, smoothed"  # whose rank has the target; chosen on the other half of the tables
RANK = 2  # of the mean rank, among the peers
PEERS = ("quantile-forest", "ngboost")
NAMED = ("quantile forest", "boosting", "NGBoost")  # that the target was set for; others make it harder


def mean_ranks(found: Summary, ours: str) -> dict[str, float]:
    """Mean rank of every peer and of one model of ours, on the tables that it was run on."""
    return {name: float(np.mean([*ranks.values()])) for name, ranks in found.ranks(ours).items()}


def place(found: Summary, ours: str) -> int:
    """Return the place of a model of ours by mean rank; 1 is the best."""
    return 1 + len(found.ahead(ours))


def told(records: Mapping[tuple[str, str, int], dict], found: Summary) -> str:
    """Say which place our default has, among all peers and among those that the target was set for."""
    if not found.measured(OURS):
        return ""
    models = {name: model for name, model in DISTRIBUTIONS.items() if model.ours or name in NAMED}
    few = Summary(records, "report", classes=False, models=models, score=("relative", -1.0))
    ranks = {words: mean_ranks(some, OURS) for words, some in (("all peers", found), (", ".join(NAMED), few))}
    places = {words: place(some, OURS) for words, some in (("all peers", found), (", ".join(NAMED), few))}
    return "; ".join(
        f"among {words}: place {places[words]} of {len(rank)}, mean rank {number(rank[OURS], 2)}"
        for words, rank in ranks.items()
    )


def standings(found: Summary) -> str:
    """Every model: its rank, how far it is from the best peer, and how often its range covers."""
    rows = []
    for name, model in found.models.items():
        if not found.measured(name):
            continue
        ranks = mean_ranks(found, name if model.ours else OURS)
        gaps = np.array([*found.gaps(name).values()])
        held = np.array([np.mean([*found.values(t, name, "covered").values()]) for t in found.measured(name)])
        relative = np.mean([found.means[table, name] for table in found.measured(name)])
        seconds = [found.seconds(table, name) for table in found.measured(name)]
        rows.append(
            [
                name,
                str(len(gaps)),
                number(ranks[name], 2),
                number(float(relative)),
                f"{gaps.mean():+.4f}",
                f"{gaps.max():+.3f}",
                f"{100 * held.mean():.1f}",
                f"{100 * np.mean(np.abs(held - NOMINAL)):.1f}",
                f"{np.median(seconds):.2f}",
                f"{np.max(seconds):.1f}",
            ]
        )
    head = ["model", "tables", "mean rank", "mean loss", "mean gap", "largest gap", "covered, %", "away from 80, %"]
    return markdown([*head, "seconds, median", "seconds, largest"], rows)


def missed(found: Summary) -> list[str]:
    """Return the targets that our default missed."""
    if not found.measured(OURS):
        return [f"{OURS} was not measured"]
    failed = sum(record["model"] == OURS for record in found.failed)
    lines = [f"{failed} fits of {OURS} failed"] if failed else []
    if place(found, OURS) > RANK:
        ahead = ", ".join(found.ahead(OURS))
        lines.append(f"mean rank {place(found, OURS)} of {len(mean_ranks(found, OURS))}; better: {ahead}")
    return lines


def section(found: Summary) -> list[str]:
    text = [standings(found), "CRPS over that of the outcomes trained on, means over splits:", scores(found)]
    for name, model in found.models.items():
        if model.ours and found.measured(name):
            text += [f"### `{name}`", against_best(found, name), against_each(found, name)]
    text += ["### Seconds, choosing and fitting and predicting", costs(found)]
    if found.failed:
        said = sorted({f"{r['table']}, {r['model']}: {r['failed'].splitlines()[0]}" for r in found.failed})
        text += [f"{len(found.failed)} fits failed:", "\n".join(f"- {line}" for line in said)]
    return text


def write(records: Mapping[tuple[str, str, int], dict]) -> list[str]:
    """Write the page and return the targets that were missed, on the half that reports."""
    halves = {
        half: Summary(records, half, classes=False, models=DISTRIBUTIONS, score=("relative", -1.0)) for half in HALVES
    }
    verdicts = missed(halves["report"])
    absent = [name for name, model in DISTRIBUTIONS.items() if not any(name == who for _, who, _ in records)]
    text = [
        "# Conditional distributions on real tables",
        *(" ".join(paragraph.split()) for paragraph in INTRODUCTION.split("\n\n")),
        f"Versions: {versions(PEERS)}.",
        *([f"Not run: {', '.join(absent)}."] if absent else []),
        f"Target, on held-out tables: by mean rank among the peers `{OURS}` is the best or the second. "
        + ("**Missed**: " + "; ".join(verdicts) + "." if verdicts else "Met.")
        + f" It is, {told(records, halves['report'])}.",
    ]
    for half, title in HALVES.items():
        if halves[half].tables:
            text += [f"## {title}", *section(halves[half])]
    report("distribution-tables", "\n\n".join(part for part in text if part))
    return verdicts


INTRODUCTION = """What comes out of the box for the whole distribution of the next value, on the tables of
[tables](tables.md), which has what they are, how they are split and which half chose the default bandwidth; tables of
more than 600 rows are cut to 600, drawn with a fixed seed. Two thirds of the rows are trained on. All models answer
the same nine levels, .1 to .9.

*Loss*: twice the integral of the pinball loss over levels, which is the continuous ranked probability score, by the
trapezoidal rule; over that of the quantiles of the outcomes trained on, whatever the columns say: below 1 the columns
help. *Gap*: the loss less that of the peer that is the best on a table, in hindsight; below zero the model is better
than every peer. *Rank*: among the peers and one model of kernpool, of those that were run on the table, 1 the best.
*Covered*: how often the value is between the quantiles .1 and .9; *away from 80*: mean distance over tables, of
which chance has a part. *Paired difference*: ours better where above zero, with the error of Nadeau and Bengio (2003).
Seconds: processor time in one thread.

Peers: forests of 200 trees of `quantile-forest`; scikit-learn's boosting by histograms and LightGBM with a pinball
loss, one model for each level, quantiles put in order; NGBoost with a normal distribution; Gaussian processes with one
length per column and noise. All with their defaults otherwise, and each with the columns that it needs. Models of
kernpool are constructed with their defaults, at the bandwidth that was chosen for the mean; *smoothed*: `quantile` with
`y_bandwidth="rule"`; *normal*: a normal distribution around `predict(return_std=True)`. Which of them competes was
chosen on the half of the tables that chooses, by one split of nine of its tables, before any model of kernpool was run
here on the other. Boosting and forests gain more from the rows that were cut off than models that smooth."""
