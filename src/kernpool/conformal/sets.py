"""Conformal prediction sets of classes, and the table in which they are returned.

    C(q) = { c : s_c(q) <= S_(k) },   k = ceil((1 - alpha) (n + 1))

with the scores below, where S_(k) is the k-th smallest score of the true classes of n calibration
rows. Rows that the model has not seen calibrate by its probabilities, training rows by leave-one-out probabilities.

======== ======================================================== =================================
name     score of class c                                         source
======== ======================================================== =================================
lac      1 - p_c                                                  Sadinle, Lei and Wasserman [1]_
aps      sum of the p_b with p_b > p_c, plus U p_c                Romano, Sesia and Candes [2]_
======== ======================================================== =================================

U is uniform, one number per row. Among equally probable classes the first comes first.

References
----------
.. [1] M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error levels", JASA
   114 (2019), 223-234.
.. [2] Y. Romano, M. Sesia and E. J. Candes, "Classification with valid and adaptive coverage", NeurIPS (2020), eq.
   5.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array, Flags, Index, Integers
from kernpool.conformal.calibration import COPIED, SLACK, least_rows, upper_rank, upper_statistic
from kernpool.execution import ROWS, PrintedResult, frame_of, names_of, printed_table, warn_caller
from kernpool.execution.text_table import listed
from kernpool.inference import InferenceWarning
from kernpool.smoother import Smoother

MOST_UNITS = 1000  # units of one row that have their own draws
MOST_ROWS = 1 << 20  # of units in all, unless there are more rows: tables of scores are as long


@dataclass(frozen=True, eq=False)
class ClassRows:
    """Class probabilities and true classes of calibration rows."""

    probability: Array  # shape (n, k): from other rows
    number: Index  # shape (n,): index of the true class
    weight: Array  # shape (n,): frequencies, positive

    @property
    def total(self) -> float:
        """Number of rows, each counted by its frequency weight."""
        return float(self.weight.sum())

    def units(self) -> ClassRows:
        """Return rows repeated by their frequency weights, so that each unit has its own random draw.

        A row is repeated 1000 times at most, and its weight divided among the repetitions.
        """
        if np.all(self.weight == 1.0):
            return self
        most = min(MOST_UNITS, max(1, MOST_ROWS // len(self.weight)))
        times = np.clip(np.ceil(self.weight), 1, most).astype(np.intp)
        of = np.repeat(np.arange(len(times)), times)
        return ClassRows(self.probability[of], self.number[of], (self.weight / times)[of])


def adaptive_mass(probability: Array, draw: Array) -> Array:
    """Return APS nonconformity scores: probability of likelier classes plus a random fraction of the class's own."""
    return mass_before(probability) + draw[:, None] * probability


def mass_before(probability: Array) -> Array:
    """Return the total probability of the classes before each one in the order of decreasing probability."""
    order = np.argsort(-probability, axis=1, kind="stable")
    ordered = np.take_along_axis(probability, order, axis=1)
    mass = np.zeros_like(ordered)
    np.cumsum(ordered[:, :-1], axis=1, out=mass[:, 1:])
    before = np.empty_like(mass)
    np.put_along_axis(before, order, mass, axis=1)
    return before


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
        rows.
    level : float
        Nominal coverage: probability that the set contains the class of a new row.
    method : {"lac", "aps"}
        Name of the method.
    guarantee : str
        Coverage statement, one sentence.
    n_calibration : float
        Number of calibration rows in unit rows: a row of weight 3 is three.
    by_class : bool
        Whether coverage is class-conditional.
    index : optional
        Labels of the points, those of a frame of pandas.

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

    member: Flags
    classes: AnyArray
    threshold: Array
    level: float
    method: str
    guarantee: str
    n_calibration: float
    by_class: bool
    index: Any = None

    @property
    def size(self) -> Integers:
        """Number of classes in each set, of shape (m,)."""
        return np.asarray(self.member.sum(axis=1), dtype=np.int64)

    @property
    def labels(self) -> list[list[Any]]:
        """Labels of the classes in each set, as a list of lists."""
        return [self.classes[row].tolist() for row in self.member]

    def to_frame(self) -> Any:
        """Return the sets as a data frame with a column of truth values for each class, labelled as the points are.

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = dict(zip(map(str, self.classes), self.member.T, strict=True))
        return frame_of(columns, self.index)

    def __str__(self) -> str:
        sizes, counts = np.unique(self.size, return_counts=True)
        facts = {
            "points": f"{len(self.member)}",
            "level": f"{self.level:g}" + ", of each class" * self.by_class,
            "method": f"{self.method}, calibrated by {self.n_calibration:g} rows",
            "threshold": listed(self.threshold if self.by_class else self.threshold[:1]),
            "sizes": ", ".join(f"{size}: {count}" for size, count in zip(sizes, counts, strict=True)),
            "guarantee": self.guarantee,
        }
        names = names_of(self.index, len(self.member))
        rows = [
            [f"{names[i]}", str(int(row.sum())), ", ".join(map(str, self.classes[row])) or "none"]
            for i, row in enumerate(self.member[:ROWS])
        ]
        return printed_table(facts, ["point", "size", "classes"], rows, more=len(self.member) > len(rows))


SCORES = ("lac", "aps")


def _scores(method: str, probability: Array, draw: Array) -> Array:
    """Return nonconformity scores of all classes, (m, k), from probabilities and uniform numbers (m,)."""
    return 1.0 - probability if method == "lac" else adaptive_mass(probability, draw)


TIES = 1e-12  # scores are sums of probabilities: those that differ by less are equal but for rounding


def find_sets(
    probability: Array,
    rows: ClassRows,
    classes: AnyArray,
    level: Fraction,
    method: str,
    random: Any,
    *,
    of: Smoother | None,
    by_class: bool,
    allow_empty: bool,
) -> PredictionSet:
    """Compute conformal prediction sets by probabilities (m, k): calibrated by the rows of a smoother, or by others.

    With `by_class` coverage is class-conditional; unless `allow_empty`, a set has at least the most probable class.
    """
    n, draw, there = rows.total, np.zeros(len(rows.number)), np.zeros(len(probability))
    if method != "lac":
        rows = rows.units()
        draw, there = random.uniform(size=len(rows.number)), random.uniform(size=len(probability))
    own = _scores(method, rows.probability, draw)[np.arange(len(draw)), rows.number]
    parts = [rows.number == c for c in range(len(classes))] if by_class else [slice(None)]
    counts = [float(rows.weight[part].sum()) for part in parts]
    _warn_of_few(level, counts, classes if by_class else None)
    bounds = [
        float(upper_statistic(own[part], rows.weight[part], upper_rank(level, count)))
        for part, count in zip(parts, counts, strict=True)
    ]
    threshold = np.array(bounds if by_class else bounds * len(classes))
    member = _scores(method, probability, there) <= threshold + TIES
    if not allow_empty:
        member[np.arange(len(member)), np.argmax(probability, axis=1)] = True
    whose = f"a new row of one of the {len(classes)} classes of the fit" + ", whichever it is," * by_class
    if of is not None:
        guarantee = _guarantee_of_fit(of, whose, level)
    else:
        these = "those of its class" if by_class else "these"
        guarantee = (
            f"Holds the class of {whose} with a probability of at least {float(level):g} for new rows like these, on "
            f"average over new points and calibration rows, if new rows are exchangeable with {these} and the fit has "
            "seen none of them."
        )
    return PredictionSet(member, classes, threshold, float(level), method, guarantee, n, by_class)


def _warn_of_few(level: Fraction, counts: list[float], classes: AnyArray | None) -> None:
    """Warn if calibration rows, of all classes together or of some class, are too few for the coverage level."""
    few = [c for c, n in enumerate(counts) if upper_rank(level, n) > n * (1.0 + SLACK)]
    if not few:
        return
    who, result, of_class = f"there are {counts[0]:g}", "every set holds all classes", ""
    if classes is not None:
        who = "there are " + ", ".join(f"{counts[c]:g} of {classes[c].item()!r}" for c in few)
        result, of_class = "these classes are in every set", " of each class"
    warn_caller(
        f"sets of level {float(level):g} need at least {least_rows(level)} rows{of_class} to calibrate them, and "
        f"{who}, so that {result}; give more rows, or ask for a lower level",
        InferenceWarning,
    )


def _guarantee_of_fit(of: Smoother, whose: str, level: Fraction) -> str:
    """Return the coverage statement of prediction sets that the training rows calibrate."""
    where, why = f" in a new {of.units.name}", "the training rows calibrate sets of a fit to these same rows"
    if of.exclusion is None:
        where, why = "", COPIED if of.has_copies else why
    return (
        f"Holds the class of {whose}{where} with a probability of about {float(level):g} for new rows like these, "
        f"without a finite-sample guarantee: {why}."
    )
