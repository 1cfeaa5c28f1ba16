"""Conformal prediction sets of classes, and the table in which they are returned.

    C(q) = { c : s_c(q) <= S_(k) },   k = ceil((1 - alpha) (n + 1))

with the scores of `class_scores.py`, where S_(k) is the k-th smallest score of the true classes of n calibration
rows. Rows that the model has not seen calibrate by its probabilities, training rows by leave-one-out probabilities.
``"full"`` uses the p-values of `class_scores.py` instead of a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.conformal.calibration import COPIED
from kernpool.conformal.order_statistics import SLACK, least_rows, upper_rank, upper_statistic
from kernpool.conformal.sets.class_scores import ClassRows, choose_regularisation, full_p_values, score_of
from kernpool.execution.text_table import ROWS, PrintedResult, listed, printed_table
from kernpool.execution.warnings import warn_caller
from kernpool.inference import InferenceWarning, Probabilities
from kernpool.smoother.linear_smoother import EvaluationPoints

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)  # arrays have no single truth
class PredictionSet(PrintedResult):
    """Prediction sets of classes at m points, with their coverage statement.

    Parameters
    ----------
    member : ndarray of bool, shape (m, k)
        Which classes are in the set of each point.
    classes : ndarray of shape (k,)
        Labels of the columns.
    threshold : ndarray of shape (k,)
        Largest score that is in the set, the same for all classes unless `by_class`; infinite where there are too few
        rows. NaN for ``"full"``, which has p-values.
    level : float
        Nominal coverage: probability that the set contains the class of a new row.
    method : {"lac", "aps", "raps", "full"}
        Name of the method.
    guarantee : str
        Coverage statement, one sentence.
    n_calibration : float
        Number of calibration rows in unit rows: a row of weight 3 is three.
    by_class : bool
        Whether coverage is class-conditional.
    p_value : ndarray of shape (m, k), or None
        For ``"full"``: a class is in the set if its p-value is larger than 1 - level.
    penalty, free_ranks : float and int, or None
        For ``"raps"``: penalty for each rank beyond the first `free_ranks`.

    Examples
    --------
    >>> member = np.array([[True, False], [True, True], [False, False]])
    >>> found = PredictionSet(
    ...     member, np.array(["no", "yes"]), np.array([0.4, 0.4]), 0.9, "lac", "Holds it.", 99.0, False
    ... )
    >>> found.labels, found.size
    ([['no'], ['no', 'yes'], []], array([1, 2, 0]))
    >>> print(found)
    points     3
    level      0.9
    method     lac, calibrated by 99 rows
    threshold  0.4
    sizes      0: 1, 1: 1, 2: 1
    guarantee  Holds it.
    <BLANKLINE>
      point  size  classes
      0      1     no
      1      2     no, yes
      2      0     none
    """

    member: NDArray[np.bool_]
    classes: NDArray[Any]
    threshold: Array
    level: float
    method: str
    guarantee: str
    n_calibration: float
    by_class: bool
    p_value: Array | None = None
    penalty: float | None = None
    free_ranks: int | None = None

    @property
    def size(self) -> NDArray[np.int64]:
        """Number of classes in each set, of shape (m,)."""
        return np.asarray(self.member.sum(axis=1), dtype=np.int64)

    @property
    def labels(self) -> list[list[Any]]:
        """Labels of the classes in each set, as a list of lists."""
        return [self.classes[row].tolist() for row in self.member]

    def __str__(self) -> str:
        sizes, counts = np.unique(self.size, return_counts=True)
        added = "" if self.penalty is None else f", penalty {self.penalty:g} beyond rank {self.free_ranks}"
        facts = {
            "points": f"{len(self.member)}",
            "level": f"{self.level:g}" + ", of each class" * self.by_class,
            "method": f"{self.method}{added}, calibrated by {self.n_calibration:g} rows",
            "threshold": listed(self.threshold if self.by_class else self.threshold[:1]),
            "sizes": ", ".join(f"{size}: {count}" for size, count in zip(sizes, counts, strict=True)),
            "guarantee": self.guarantee,
        }
        if self.p_value is not None:
            del facts["threshold"]
        rows = [
            [str(i), str(int(row.sum())), ", ".join(map(str, self.classes[row])) or "none"]
            for i, row in enumerate(self.member[:ROWS])
        ]
        return printed_table(facts, ["point", "size", "classes"], rows, more=len(self.member) > len(rows))


SET_METHODS = ("lac", "aps", "raps", "full")
TIES = 1e-12  # scores are sums of probabilities: those that differ by less are equal but for rounding


@dataclass(frozen=True, eq=False)
class SetSetting:
    """Inputs of a prediction set method: training rows, evaluation points, level and calibration rows.

    Parameters
    ----------
    of : Probabilities
        The training rows.
    places : EvaluationPoints
        Evaluation points.
    classes : ndarray of shape (k,)
        Labels of the columns.
    level : Fraction
        Coverage level, from `kernpool.conformal.order_statistics.as_level`.
    random : numpy.random.Generator or RandomState
        For scores that draw.
    by_class : bool
        Whether coverage is class-conditional.
    allow_empty : bool
        Whether a set may be empty; otherwise it contains at least the most probable class.
    others : ClassRows or None
        Calibration rows other than the training rows.
    doubt : str
        Reason why statements about training rows are approximate; empty if they hold.
    """

    of: Probabilities
    places: EvaluationPoints
    classes: NDArray[Any]
    level: Fraction
    random: Any = field(repr=False)
    by_class: bool = False
    allow_empty: bool = False
    others: ClassRows | None = None
    doubt: str = ""

    @property
    def training(self) -> ClassRows:
        """Training rows of positive weight, with leave-one-out (or leave-cluster-out) class probabilities."""
        of = self.of
        (kept,) = np.nonzero(of.weight > 0)
        return ClassRows(of.left_out.probability[kept], np.argmax(of.label[kept], axis=1), of.weight[kept])


def find_sets(setting: SetSetting, method: str) -> PredictionSet:
    """Compute conformal prediction sets of classes at the evaluation points, by the method of a given name.

    Parameters
    ----------
    setting : SetSetting
        The inputs.
    method : {"lac", "aps", "raps", "full"}
        Name of the method.

    Returns
    -------
    PredictionSet
        One set per point.

    Warns
    -----
    InferenceWarning
        If there are too few rows for the level, so that sets contain all classes.
    """
    of, by_class = setting.of, setting.by_class
    probability, _ = of.at(setting.places)
    threshold, regularisation, p_value = np.full(len(setting.classes), np.nan), None, None
    if method == "full":
        p_value = full_p_values(of, setting.places, probability, by_class=by_class, ties=TIES)
        _warn_of_few(of.weight @ of.label if by_class else np.array([of.total]), setting)
        n, member = of.total, p_value > float(1 - setting.level) + SLACK
    else:
        own = setting.others is None
        training = setting.training if own or method == "raps" else None
        rows = training if setting.others is None else setting.others
        assert rows is not None
        n, draw, there = rows.total, np.zeros(len(rows.number)), np.zeros(len(probability))
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
    if not setting.allow_empty:
        member[np.arange(len(member)), np.argmax(probability, axis=1)] = True
    penalty, free = (None, None) if regularisation is None else regularisation
    return PredictionSet(
        member, setting.classes, threshold, float(setting.level), method, _guarantee(setting, method), n, by_class,
        p_value, penalty, free,
    )  # fmt: skip


def _thresholds(score: Array, rows: ClassRows, setting: SetSetting) -> Array:
    """Return, for each class, the largest nonconformity score at which a prediction set contains the class."""
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
    """Warn if calibration rows, of all classes together or of some class, are too few for the coverage level."""
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
    """Return the coverage statement of prediction sets: one sentence that claims no more than holds."""
    level = f"{float(setting.level):g}"
    known = f"one of the {len(setting.classes)} classes of the fit"
    whose = f"a new row of {known}" + ", whichever it is," * setting.by_class
    own = setting.others is None
    doubt = setting.doubt
    if own and method != "full" and doubt != COPIED:
        doubt = "the training rows calibrate sets of a fit to these same rows"
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
    if own:  # the set of classes depends on the calibration rows, and a new row may have another class
        subject = "Whichever class a new row has, it" if setting.by_class else "The class of a new row"
        promise = (
            f"{subject} is {known} and not in its set with a probability of at most {float(1 - setting.level):g} for "
            "new rows like these"
        )
        rest = "the bandwidth and the prior share were not chosen by them"
    return (
        f"{promise}, on average over new points and {rows} rows, if new rows are exchangeable with {these} and {rest}."
    )
