"""Inputs of prediction interval methods, and the order statistics of scores that bound intervals.

`ConformalProblem` and `Calibration` are what every method receives. The bound of n scores is that of rank

    k = ceil((1 - alpha) (n + 1))

where a row of weight 3 counts three times. The confidence level is read as the decimal number that was written, since
``0.9 * 100`` in floats is not 90. Where a rank exceeds n the interval is infinite.

Where rows come in larger units, such as the visits of a patient, each counts as one row, and its weight is divided
equally among its rows. With G units of N_g rows the scores have the distribution

    sum_g sum_{i in g} delta(S_gi) / ((G + 1) N_g) + delta(infinity) / (G + 1),

whose quantile covers a row of a new unit with at least the confidence level, if units are exchangeable, and rows
within each [1]_. One row drawn from each unit has the same guarantee and a coverage that varies more [2]_.

References
----------
.. [1] Y. Lee, R. F. Barber and R. Willett, "Distribution-free inference with hierarchical data", arXiv:2306.06342,
   sections 3 and 4.
.. [2] R. Dunn, L. Wasserman and A. Ramdas, "Distribution-free prediction sets for two-layer hierarchical models",
   JASA 118 (2023), 2491-2502.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.core import SINGLE_ROWS, Units
from kernpool.execution import as_level
from kernpool.smoother import EvaluationPoints, Smoother

Origin = Literal["given", "found", "unsearched", "repeated"]
Bounds = tuple[Array, Array, Array]  # centers, lower and upper limits, (m, c); limits are infinite where unbounded

SLACK = 1e-12  # of a sum of fractions of rows, which equals a rank up to rounding

COPIED = "rows are repeated or have weights above one, so that their own copies predict them; a new row has no copy"
ORDERED = "rows next to each other share noise, and are left out together, but are not exchangeable"
FOUND = "the bandwidth was found on the rows that calibrate the interval"
REPEATED = "rows are repeated, and the search for the bandwidth has seen all copies of some"
WIDENED = "windows follow the rows in them, and a new row is not counted there as the training rows are"
LONELY = "some level of a categorical column is that of one training row alone, or of new rows only"
FRACTIONS = "weights are no whole numbers of rows"


def as_fraction(level: Any) -> Fraction:
    """Convert a coverage level to the exact fraction of its decimal digits, such as 0.9 to 9/10."""
    return Fraction(str(as_level(level)))


def upper_rank(level: Fraction, n: float) -> float:
    """Return the rank of the order statistic that bounds an interval: ``level * (n + 1)``, of whole rows the next."""
    rank = level * (Fraction(n) + 1)
    return float(math.ceil(rank) if float(n).is_integer() else rank)


def least_rows(level: Fraction) -> int:
    """Return the least number of calibration rows for which intervals of a coverage level are finite."""
    return math.ceil(level / (1 - level))


def upper_statistic(values: Array, weight: Array | None, rank: float) -> Array:
    """Return the order statistic of a given rank, counted from the smallest value, along the last axis."""
    # plus infinity beyond the last row
    n = values.shape[-1]
    total = float(n) if weight is None else float(weight.sum())
    if rank > total * (1.0 + SLACK) or not n:
        return np.full(values.shape[:-1], np.inf)
    if weight is None or np.all(weight == 1.0):
        place = max(math.ceil(rank) - 1, 0)
        return np.partition(values, place, axis=-1)[..., place]
    order = np.argsort(values, axis=-1)
    reached = np.cumsum(weight[order], axis=-1) >= rank * (1.0 - SLACK)
    reached[..., -1] = True
    first = np.argmax(reached, axis=-1)
    at = np.take_along_axis(order, first[..., None], axis=-1)
    return np.take_along_axis(values, at, axis=-1)[..., 0]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration rows of a conformal method: inputs, outputs, predictions and positive frequency weights.

    Parameters
    ----------
    places : EvaluationPoints
        Their inputs.
    value : ndarray of shape (n, c)
        Their outputs.
    weight : ndarray of shape (n,)
        Frequencies, in unit rows.
    prediction : ndarray of shape (n, c), or None
        Predictions of fits that have not seen the row; NaN where the window is empty and the policy of the model is
        ``"nan"`` or ``"raise"``. None for the leave-one-out predictions of training rows.
    which : ndarray of int, shape (n,), or None
        Indices if these are training rows; None for other rows.
    units : Units
        By what they are counted.
    """

    places: EvaluationPoints
    value: Array
    weight: Array
    prediction: Array | None = None
    which: Index | None = None
    units: Units = SINGLE_ROWS

    @property
    def training(self) -> Index:
        """Indices of the training rows that calibrate, for methods that have no other calibration rows."""
        assert self.which is not None
        return self.which

    @cached_property
    def count(self) -> float:
        """Number of units: of larger ones, or of rows, each counted by its frequency weight."""
        return self.units.number(float(self.weight.sum()))

    def rank(self, level: Fraction) -> float:
        """Return the rank of the score that bounds an interval, a sum of weights of rows where these are fractions."""
        if self.units.code is None:
            return upper_rank(level, self.count)
        return float(level * (Fraction(self.count) + 1))

    @cached_property
    def unit_weight(self) -> Array:
        """Weight of each row in units: its frequency, or its fraction of the weight of its unit."""
        return self.units.weight(self.weight)


@dataclass(frozen=True, eq=False)
class ConformalProblem:
    """Inputs of a prediction interval method: fit, evaluation points, coverage level and calibration rows.

    Parameters
    ----------
    smoother : Smoother
        The fit; its recipe has the policy for empty windows, and its exclusion says which training rows are left out
        together.
    places : EvaluationPoints
        Points of the intervals.
    level : Fraction
        Coverage level, from `as_fraction`.
    calibration : Calibration
        Calibration rows.
    random_state : int, RandomState, Generator or None
        Seed of methods that draw.
    bandwidth : {"given", "found", "unsearched", "repeated"}
        Origin of the bandwidth: a number, a search on the calibration rows, or a search on other training rows, some of
        which have copies if it is ``"repeated"``.
    center : ndarray of shape (m, c), or None
        Predictions at the points, if they are not those of `smoother`: of re-weighted rows, whose `smoother` is the
        one of their frequencies; of a stack; or of rows that are not in memory, with a sample of them in `smoother`.
    scale : Smoother, optional
        Smoother of absolute residuals; by default that of the smoother itself.
    refit : callable
        Takes the smoother with the weights of a fold held out, and returns the fit of the other rows. By default the
        smoother itself; with re-weighting the one of the weights that these rows have among themselves.
    """

    smoother: Smoother
    places: EvaluationPoints
    level: Fraction
    calibration: Calibration
    random_state: Any = 0
    bandwidth: Origin = "given"
    center: Array | None = field(default=None, repr=False)
    scale: Smoother | None = field(default=None, repr=False)
    refit: Callable[[Smoother], Smoother] | None = field(default=None, repr=False)

    @cached_property
    def prediction(self) -> Array:
        """Predictions at the evaluation points, of shape (m, c); reports empty windows as the model does."""
        if self.center is not None:
            return self.center
        return self.smoother.predict(self.smoother.problem(self.places), report=True)

    @cached_property
    def score(self) -> Array:
        """Nonconformity scores: absolute residuals of the calibration rows, (n, c); infinite where one is NaN."""
        calibration = self.calibration
        prediction, which = calibration.prediction, calibration.which
        if prediction is None and which is not None:
            prediction = self.smoother.left_out[0][which]
        assert prediction is not None
        return np.where(np.isnan(prediction), np.inf, np.abs(calibration.value - prediction))

    def bound(self, score: Array) -> Array:
        """Return the quantile of scores, along the last axis, that bounds intervals; infinite if rows are too few."""
        calibration = self.calibration
        return upper_statistic(score, calibration.unit_weight, calibration.rank(self.level))

    @cached_property
    def doubt(self) -> str:
        """Reason why the coverage guarantee is only approximate, as part of a sentence; empty if it holds."""
        smoother, calibration = self.smoother, self.calibration
        exclusion = smoother.exclusion
        if calibration.which is None:
            return ""
        if exclusion is not None and exclusion.units.code is None:
            return ORDERED
        if exclusion is None and smoother.has_copies:
            return COPIED
        if self.bandwidth == "found":
            return FOUND
        if self.bandwidth == "repeated":
            return REPEATED
        if exclusion is None and smoother.window != "fixed":
            return WIDENED
        if self._has_lonely_categories():
            return LONELY
        whole = np.all(calibration.weight == np.floor(calibration.weight))
        return "" if whole else FRACTIONS

    def _has_lonely_categories(self) -> bool:
        """Return whether some category occurs in fewer than two units of training rows, or in new rows only."""
        # such a held-out row keeps its category in the table, a new one is unlike all: they are not exchangeable
        smoother, which = self.smoother, self.calibration.training
        if smoother.key_code is None or self.places.code is None:
            return False
        for code, new in zip(smoother.key_code.T, self.places.code.T, strict=True):
            if smoother.exclusion is None:
                rows = np.bincount(code, weights=smoother.weight)
            else:
                pairs = np.column_stack([code, smoother.exclusion.code])[smoother.weight > 0]
                rows = np.bincount(np.unique(pairs, axis=0)[:, 0], minlength=int(code.max()) + 1).astype(float)
            if np.any(new < 0) or np.any(rows[code[which]] < 2.0):
                return True
        return False
