r"""Sets of classes that hold the class of the next row with a given probability.

.. math:: C(q) = \{ c : s_c(q) \le S_{(k)} \}, \qquad k = \lceil (1 - \alpha)(n + 1) \rceil

with the scores of `class_scores.py`, where :math:`S_{(k)}` is the k-th smallest score of the classes that n calibration
rows have. Other rows calibrate by the probabilities that the model gives them, training rows by leave-one-out.
``"full"`` has p-values in its place (`full_sets.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.class_results import PredictionSet
from kernpool.conformal.class_scores import ClassRows, choose_regularisation, score_of
from kernpool.conformal.full_sets import full_p_values
from kernpool.conformal.levels import COPIED
from kernpool.conformal.ranks import SLACK, least_rows, upper_rank, upper_statistic
from kernpool.execution.warnings import warn_caller
from kernpool.inference.probabilities import Probabilities
from kernpool.inference.smoother import Places
from kernpool.inference.warnings import InferenceWarning

Array = NDArray[np.float64]

SET_METHODS = ("lac", "aps", "raps", "full")
TIES = 1e-12  # scores are sums of probabilities: those that differ by less are equal but for rounding


@dataclass(frozen=True, eq=False)
class SetSetting:
    """Everything that sets of classes are made of.

    Parameters
    ----------
    of : Probabilities
        The training rows.
    places : Places
        Where sets are wanted.
    classes : ndarray of shape (k,)
        Labels of the columns.
    level : Fraction
        Of `kernpool.conformal.ranks.as_level`.
    random : numpy.random.Generator or RandomState
        For scores that draw.
    by_class : bool
        Whether the level is of each class by itself.
    allow_empty : bool
        Whether a set may be empty; otherwise it has the most probable class at least.
    others : ClassRows or None
        Rows that calibrate in place of the training rows.
    doubt : str
        Why statements about training rows are approximate; empty if they hold.
    """

    of: Probabilities
    places: Places
    classes: NDArray[Any]
    level: Fraction
    random: Any = field(repr=False)
    by_class: bool = False
    allow_empty: bool = False
    others: ClassRows | None = None
    doubt: str = ""

    @property
    def training(self) -> ClassRows:
        """The training rows by the other ones."""
        of = self.of
        (kept,) = np.nonzero(of.weight > 0)
        return ClassRows(of.left_out.probability[kept], np.argmax(of.label[kept], axis=1), of.weight[kept])


def find_sets(setting: SetSetting, method: str) -> PredictionSet:
    """Find sets of classes.

    Parameters
    ----------
    setting : SetSetting
        What they are made of.
    method : {"lac", "aps", "raps", "full"}
        How.

    Returns
    -------
    PredictionSet
        One set per place.

    Warns
    -----
    InferenceWarning
        If there are too few rows for the level, so that sets hold all classes.
    """
    if method == "full":
        return _full(setting)
    own = setting.others is None
    probability, _ = setting.of.at(setting.places)
    training = setting.training if own or method == "raps" else None
    rows = training if setting.others is None else setting.others
    assert rows is not None
    n, regularisation = rows.total, None
    draw, there = np.zeros(len(rows.number)), np.zeros(len(probability))
    if method != "lac":
        rows = rows.units()
        draw, there = setting.random.uniform(size=len(rows.number)), setting.random.uniform(size=len(probability))
    if method == "raps":
        assert training is not None
        tuned = rows if own else training.units()
        theirs = draw if own else setting.random.uniform(size=len(tuned.number))
        regularisation = choose_regularisation(tuned, theirs, setting.level)
    score = score_of(method, regularisation)
    threshold = _thresholds(rows.own(score(rows.probability, draw)), rows, setting)
    member = score(probability, there) <= threshold + TIES
    return PredictionSet(
        _with_top(member, probability, setting),
        setting.classes,
        threshold,
        float(setting.level),
        method,
        _guarantee(setting, method),
        n,
        setting.by_class,
        penalty=None if regularisation is None else regularisation.penalty,
        free_ranks=None if regularisation is None else regularisation.free,
    )


def _full(setting: SetSetting) -> PredictionSet:
    of, k = setting.of, len(setting.classes)
    probability, _ = of.at(setting.places)
    found = full_p_values(of, setting.places, probability, by_class=setting.by_class, ties=TIES)
    _warn_of_few(of.weight @ of.label if setting.by_class else np.array([of.total]), setting)
    member = found > float(1 - setting.level) + SLACK
    return PredictionSet(
        _with_top(member, probability, setting),
        setting.classes,
        np.full(k, np.nan),
        float(setting.level),
        "full",
        _guarantee(setting, "full"),
        of.total,
        setting.by_class,
        p_value=found,
    )


def _with_top(member: NDArray[np.bool_], probability: Array, setting: SetSetting) -> NDArray[np.bool_]:
    if not setting.allow_empty:
        member[np.arange(len(member)), np.argmax(probability, axis=1)] = True
    return member


def _thresholds(score: Array, rows: ClassRows, setting: SetSetting) -> Array:
    """Return the largest score that is in a set, of each class."""
    k = len(setting.classes)
    weight = rows.weight
    if not setting.by_class:
        _warn_of_few(np.array([rows.total]), setting)
        return np.full(k, upper_statistic(score, weight, upper_rank(setting.level, rows.total)))
    found, counts = np.empty(k), np.bincount(rows.number, weight, minlength=k).astype(np.float64)
    for c in range(k):
        of_class = rows.number == c
        rank = upper_rank(setting.level, counts[c])
        found[c] = upper_statistic(score[of_class], weight[of_class], rank)
    _warn_of_few(counts, setting)
    return found


def _warn_of_few(counts: Array, setting: SetSetting) -> None:
    """Warn where there are too few rows for the level, of all classes or of some."""
    few = [c for c, n in enumerate(counts) if upper_rank(setting.level, float(n)) > n * (1.0 + SLACK)]
    if not few:
        return
    who, result, of_class = f"there are {counts[0]:g}", "every set holds all classes", ""
    if setting.by_class:
        who = "there are " + ", ".join(f"{counts[c]:g} of {setting.classes[c].item()!r}" for c in few)
        result, of_class = "these classes are in every set", " of each class"
    warn_caller(
        f"sets of level {float(setting.level):g} need at least {least_rows(setting.level)} rows{of_class} to calibrate "
        f"them, and {who}, so that {result}; give more rows, or ask for a lower level",
        InferenceWarning,
    )


def _guarantee(setting: SetSetting, method: str) -> str:
    """Return what holds, in one sentence: never more."""
    level = f"{float(setting.level):g}"
    known = f"one of the {len(setting.classes)} classes of the fit"
    whose = f"a new row of {known}" + ", whichever it is," * setting.by_class
    own = setting.others is None
    doubt = setting.doubt
    if own and method != "full" and doubt != COPIED:
        doubt = "training rows, each left out, calibrate sets of a fit that they are part of"
    if own and doubt:
        clusters = "" if setting.of.group is None else " in a new cluster"
        return (
            f"Holds the class of {whose}{clusters} with a probability of about {level} for new rows like these, "
            f"without a finite-sample guarantee: {doubt}."
        )
    rows = "training" if own else "calibration"
    these = "those of its class" if setting.by_class else "these"
    promise = f"Holds the class of {whose} with a probability of at least {level} for new rows like these"
    rest = "the fit has seen none of them"
    if own:  # which classes there are depends on the rows that calibrate, and a new row may have another
        subject = "Whichever class a new row has, it" if setting.by_class else "The class of a new row"
        promise = (
            f"{subject} is {known} and not in its set with a probability of at most {float(1 - setting.level):g} for "
            "new rows like these"
        )
        rest = "the bandwidth and the share of the priors were not chosen by them"
    return (
        f"{promise}, on average over new places and {rows} rows, if new rows are exchangeable with {these} and {rest}."
    )
