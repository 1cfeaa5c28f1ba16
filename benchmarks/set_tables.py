"""Sets of classes on real tables: how often they hold, and their size beside MAPIE's of the same probabilities.

python benchmarks/set_tables.py            100 splits of four tables, and the page; two minutes
python benchmarks/set_tables.py --quick    20 splits, and no page

A split draws, without replacement, rows that are fitted, rows that calibrate and fresh ones. Calibration rows are one
less than a multiple of ten, so that sets of level 90 % hold 90 % of fresh rows exactly, but for ties.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from mapie.classification import SplitConformalClassifier
from measure import finish, report
from monte_carlo import judged
from sklearn import datasets
from sklearn.decomposition import PCA

from kernpool import NadarayaWatsonClassifier

LEVEL, SPLITS, QUICK = 0.9, 100, 20
BAR = (0.885, 0.915)
FEWEST = (
    110  # rows that calibrate MAPIE's "raps": it tunes by a tenth of them, and refuses less than eleven at this level
)
NO_LARGER = (-np.inf, 1e-9)  # mean difference of sizes, of the same splits


class Kind(NamedTuple):
    """How sets are asked for.

    `method` is ours; `last` is MAPIE's `include_last_label`, and None for ours; `own` takes the training rows.
    """

    method: str
    last: bool | str | None = None
    by_class: bool = False
    own: bool = False


KINDS = {
    "lac": Kind("lac"),
    "aps": Kind("aps"),
    "raps": Kind("raps"),
    "lac by class": Kind("lac", by_class=True),
    "aps by class": Kind("aps", by_class=True),
    "lac, training rows": Kind("lac", own=True),
    "aps, training rows": Kind("aps", own=True),
    "MAPIE lac": Kind("lac", last=True),
    "MAPIE aps": Kind("aps", last=True),
    "MAPIE aps, randomised": Kind("aps", last="randomized"),
    "MAPIE raps": Kind("raps", last=True),
    "MAPIE raps, randomised": Kind("raps", last="randomized"),
}
PEERS = {
    "lac": {"MAPIE lac": "size"},
    "aps": {"MAPIE aps": "size", "MAPIE aps, randomised": "size of randomised"},
    "raps": {"MAPIE raps": "size"},
}


class Table(NamedTuple):
    """A table, how many of its columns are kept (by principal components) and how many rows of a split calibrate."""

    load: object
    columns: int | None
    calibration: int


TABLES = {
    "iris": Table(datasets.load_iris, None, 49),
    "wine": Table(datasets.load_wine, 5, 69),
    "breast cancer": Table(datasets.load_breast_cancer, 5, 169),
    "digits": Table(datasets.load_digits, 5, 499),
}


def rows_of(table: Table) -> tuple[np.ndarray, np.ndarray]:
    X, y = table.load(return_X_y=True)
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return (X if table.columns is None else PCA(table.columns, random_state=0).fit_transform(X)), y


def members(model, kind: Kind, other, X_new: np.ndarray, seed: int) -> np.ndarray:
    """Return which classes are in the sets, of shape (m, k)."""
    if kind.last is None:
        asked = {} if kind.own else {"X_calibration": other[0], "y_calibration": other[1]}
        method, by_class = kind.method, kind.by_class
        options = {"method": method, "by_class": by_class, "allow_empty": True, "random_state": seed}
        return model.predict_set(X_new, LEVEL, **options, **asked).member
    peer = SplitConformalClassifier(
        model, confidence_level=LEVEL, conformity_score=kind.method, prefit=True, random_state=seed
    ).conformalize(*other)
    asked = {} if kind.method == "lac" else {"conformity_score_params": {"include_last_label": kind.last}}
    return np.asarray(peer.predict_set(X_new, **asked)[1][:, :, 0], dtype=bool)


def possible(kind: Kind, classes: int, calibration: int) -> bool:
    """Whether sets of a kind are made of so many classes and rows: MAPIE has "lac" alone for two classes."""
    if kind.last is None or kind.method == "lac":
        return True
    return classes > 2 and (kind.method == "aps" or calibration >= FEWEST)


def split(X: np.ndarray, y: np.ndarray, calibration: int, seed: int) -> dict[str, tuple[np.ndarray, float]]:
    """Fit once; of each kind of sets the shares of fresh rows that are held, and the mean size.

    Shares are of all rows, of the third whose most probable class is least probable, and of each class.
    """
    order = np.random.default_rng(seed).permutation(len(X))
    fitted, other, new = np.split(order, [len(X) // 3, len(X) // 3 + calibration])
    model = NadarayaWatsonClassifier(bandwidth="scott").fit(X[fitted], y[fitted])
    unsure = np.argsort(model.predict_proba(X[new]).max(axis=1), kind="stable")[: len(new) // 3]
    found = {}
    for name, kind in KINDS.items():
        if not possible(kind, len(np.unique(y)), calibration):
            continue
        sets = members(model, kind, (X[other], y[other]), X[new], seed)
        held = sets[np.arange(len(new)), y[new]]
        classes = [held[y[new] == label] for label in np.unique(y)]
        parts = [held[unsure], *classes]
        share = np.array([held.mean(), *(of.mean() if of.size else np.nan for of in parts)])
        found[name] = share, float(sets.sum(axis=1).mean())
    return found


def lines_of(name: str, found: list[dict]) -> tuple[list[str], list[str]]:
    """Return the lines of a table, and the targets that it misses."""
    lines, missed = [], []
    size = {kind: np.array([run[kind][1] for run in found]) for kind in found[0]}
    for key in size:
        kind = KINDS[key]
        share = np.array([run[key][0] for run in found])
        mean, error = np.nanmean(share, axis=0), np.nanstd(share, axis=0, ddof=1) / np.sqrt(len(found))
        words = []
        if kind.last is None and not kind.by_class:
            words.append(("held", judged(mean[0], error[0], BAR)))
        if kind.by_class:
            worst = 2 + int(np.argmin(mean[2:]))
            words.append(("a class", judged(mean[worst], error[worst], (BAR[0], 1.0))))
        for peer, what in PEERS.get(key, {}).items():
            if peer in size:
                larger = size[key] - size[peer]
                words.append((what, judged(larger.mean(), larger.std(ddof=1) / np.sqrt(len(found)), NO_LARGER)))
        said = "; ".join(f"{what} {word}" for what, word in words)
        each = f"{100 * mean[1]:.1f} | {100 * mean[2:].min():.1f} to {100 * mean[2:].max():.1f}"
        held = f"{100 * mean[0]:.1f} ± {100 * error[0]:.2f}"
        spread = size[key].std(ddof=1) / np.sqrt(len(found))
        lines.append(f"| {name} | {key} | {held} | {each} | {size[key].mean():.3f} ± {spread:.3f} | {said} |")
        missed += [f"{name}, {key}: {what}" for what, word in words if word == "missed"]
    return lines, missed


def main() -> None:
    warnings.simplefilter("ignore")  # of bandwidths at the end of their range, and MAPIE's of labels
    splits = QUICK if "--quick" in sys.argv[1:] else SPLITS
    lines, missed = [], []
    for name, table in TABLES.items():
        one = partial(split, *rows_of(table), table.calibration)
        rows, others = lines_of(name, [one(seed) for seed in range(splits)])
        print("\n".join(rows), flush=True)
        lines, missed = lines + rows, missed + others
    head = "| table | sets | held, % | least sure third, % | by class, % | classes in a set | outcome |"
    sizes = ", ".join(f"{table.calibration} of {name}" for name, table in TABLES.items())
    notes = f"""\
{splits} splits of each table into a third that is fitted, rows that calibrate ({sizes}) and fresh rows, at level
{LEVEL:g}. Columns are standardised; all but iris are their first five principal components. The model is
`NadarayaWatsonClassifier(bandwidth="scott")`; MAPIE gets the same model and the same calibration rows. Behind ± is the
error between splits, which share rows. Its adaptive sets hold the class at which the mass is reached (its default), or
draw as ours do. *Training rows*: the third that is fitted calibrates as well, each row left out, and no others do.

Ours must hold {100 * BAR[0]:.1f} to {100 * BAR[1]:.1f} percent, with `by_class=True` at least {100 * BAR[0]:.1f} of
each class, and be no larger than MAPIE's of the same name, by its default and randomised. A figure beyond its target by
less than two of its errors is *open*. MAPIE has no adaptive sets of two classes, and needs {FEWEST} rows for "raps".
No target is beside its randomised "raps": it tunes by a tenth of the calibration rows, where chance at times leaves one
rank free, and sets are smaller and more like "lac". *Least sure third*: of the fresh rows, those whose most probable
class is the least probable.
"""
    text = "\n".join(["# Prediction sets on real tables", "", head, "|---" * 7 + "|", *lines, "", notes])
    report("set-tables", text, keep=splits == SPLITS)
    finish(missed)


if __name__ == "__main__":
    main()
