"""Inputs and results of prediction interval methods: calibration rows, settings, and bounds.

`ConformalProblem` and `Calibration` are what every method receives; it returns lower and upper limits.

The functions predict at new points, and each training row without itself or without its cluster; planes are not
clipped here. Others find what makes training rows and a new row not exchangeable: a category that a single training
row or only new rows have, copies of rows, and weights that are no whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth import TrainingRows, count_copies
from kernpool.core import Exclusion
from kernpool.smoother.linear_smoother import EvaluationPoints, Smoother

Array = NDArray[np.float64]
Codes = NDArray[np.int64]

COPIED = "rows are repeated or have weights above one, so that their own copies predict them; a new row has no copy"
WIDENED = "windows follow the rows in them, and a new row is not counted there as the training rows are"
FRACTIONS = "weights are no whole numbers of rows"
LONELY = "some level of a categorical column is that of one training row alone, or of new rows only"


def are_copied(smoother: Smoother, value: Array) -> bool:
    """Return whether more training rows are copies than chance explains: duplicates, or weights above one."""
    rows = TrainingRows.from_arrays(smoother.training.query, value, smoother.weight, smoother.training.code)
    rows = rows.take(np.flatnonzero(rows.weight > 0))
    return count_copies(rows, None if np.all(rows.weight == 1.0) else rows.weight) > 0


def lonely_levels(
    code: Codes | None,
    new: Codes | None,
    weight: Array,
    group: Codes | None = None,
    which: NDArray[np.intp] | None = None,
) -> bool:
    """Return whether some category occurs in fewer than two training rows (or clusters), or in new rows only."""
    # such a held-out row keeps its category in the table, a new one is unlike all: they are not exchangeable
    if code is None or new is None:
        return False
    if which is None:
        (which,) = np.nonzero(weight > 0)
    for column, asked in zip(code.T, new.T, strict=True):
        if group is None:
            rows = np.bincount(column, weights=weight)
        else:
            pairs = np.unique(np.column_stack([column, group])[weight > 0], axis=0)
            rows = np.bincount(pairs[:, 0], minlength=int(column.max()) + 1).astype(float)
        if np.any(asked < 0) or np.any(rows[column[which]] < 2.0):
            return True
    return False


Integers = NDArray[np.int64]


Origin = Literal["given", "found", "unsearched", "repeated"]
Bounds = tuple[Array, Array]  # lower and upper limits, of shape (m, c); infinite where unbounded, never NaN


@dataclass(frozen=True, eq=False)
class Calibration:
    """Calibration rows of a conformal method: inputs, outputs, predictions and positive frequency weights.

    Parameters
    ----------
    places : EvaluationPoints
        Their inputs.
    value : ndarray of shape (n, c)
        Their outputs.
    prediction : ndarray of shape (n, c)
        For training rows, leave-one-out or leave-cluster-out predictions; for other rows, predictions of the fit. NaN
        where the window is empty and the policy of the model is ``"nan"`` or ``"raise"``.
    weight : ndarray of shape (n,)
        Frequencies, in unit rows.
    which : ndarray of int, shape (n,), or None
        Indices if these are training rows; None for other rows.
    group : ndarray of int64, shape (n,), or None
        Number of the cluster of each row.
    """

    places: EvaluationPoints
    value: Array
    prediction: Array
    weight: Array
    which: NDArray[np.intp] | None = None
    group: Integers | None = None

    @property
    def own(self) -> bool:
        """Whether training rows calibrate."""
        return self.which is not None

    @property
    def training(self) -> NDArray[np.intp]:
        """Indices of the training rows that calibrate, for methods that have no other calibration rows."""
        assert self.which is not None
        return self.which

    @property
    def score(self) -> Array:
        """Nonconformity scores: absolute residuals, of shape (n, c); plus infinity where a prediction is NaN."""
        return np.where(np.isnan(self.prediction), np.inf, np.abs(self.value - self.prediction))

    @property
    def rows(self) -> float:
        """Number of calibration rows, each counted by its frequency weight."""
        return float(self.weight.sum())

    @property
    def unit_weight(self) -> Array | None:
        """Frequency weights of the calibration rows, for order statistics; None if all are one."""
        return None if np.all(self.weight == 1.0) else self.weight

    @property
    def clusters(self) -> int:
        """Number of clusters among the calibration rows; zero if rows are not clustered."""
        return 0 if self.group is None else len(np.unique(self.group))


@dataclass(frozen=True, eq=False)
class ConformalProblem:
    """Inputs of a prediction interval method: fit, evaluation points, coverage level and calibration rows.

    Parameters
    ----------
    smoother : Smoother
        The fit; its recipe has the policy for empty windows.
    places : EvaluationPoints
        Points of the intervals.
    level : Fraction
        Coverage level, from `kernpool.conformal.order_statistics.as_fraction`.
    calibration : Calibration
        Calibration rows.
    random : numpy.random.Generator
        For methods that draw.
    bandwidth : {"given", "found", "unsearched", "repeated"}
        Origin of the bandwidth: a number, a search on the calibration rows, or a search on other training rows, some of
        which have copies if it is ``"repeated"``.
    known : ndarray of shape (n, c), or None
        Value of `left_out`, if already computed.
    center : ndarray of shape (m, c), or None
        Value of `prediction`, if already computed: for a robust fit, whose `smoother` is the one without robustness
        weights, and for a fit whose rows are not in memory; `smoother` then has a sample of them.
    refit : callable
        Takes the smoother with the weights of a fold held out, and returns the fit of the other rows. By default the
        smoother itself; for robust fits the one with the robustness weights of these rows.
    """

    smoother: Smoother
    places: EvaluationPoints
    level: Fraction
    calibration: Calibration
    random: np.random.Generator = field(repr=False)
    bandwidth: Origin = "given"
    known: Array | None = field(default=None, repr=False)
    center: Array | None = field(default=None, repr=False)
    refit: Callable[[Smoother], Smoother] = field(default=lambda smoother: smoother, repr=False)

    @cached_property
    def prediction(self) -> Array:
        """Predictions at the evaluation points, of shape (m, c); reports empty windows as the model does."""
        if self.center is not None:
            return self.center
        return self.smoother.predict(self.smoother.problem(self.places), report=True)

    @cached_property
    def left_out(self) -> Array:
        """Leave-one-out predictions of the training rows, of shape (n, c).

        Leave-cluster-out if clustered training rows calibrate.
        """
        if self.known is not None:
            return self.known
        return self.smoother.fit_left_out(self.exclusion).values()[0]

    @property
    def exclusion(self) -> Exclusion | None:
        """Which training rows are left out together: those of a cluster if clustered training rows calibrate."""
        calibration = self.calibration
        if calibration.group is None or calibration.which is None:
            return self.smoother.exclusion
        code = np.zeros(len(self.smoother.value), dtype=np.int64)  # also of rows of weight zero
        code[calibration.which] = calibration.group
        return Exclusion(code)

    @cached_property
    def doubt(self) -> str:
        """Reason why the coverage guarantee is only approximate, as part of a sentence; empty if it holds."""
        if not self.calibration.own:
            return ""
        smoother = self.smoother
        if smoother.exclusion is not None and smoother.exclusion.gap:
            return "rows next to each other share noise, and are left out together, but are not exchangeable"
        if self.calibration.own and self.calibration.group is None and are_copied(smoother, smoother.value):
            return COPIED
        if self.bandwidth == "found":
            return "the bandwidth was found on the rows that calibrate the interval"
        if self.bandwidth == "repeated":
            return "rows are repeated, and the search for the bandwidth has seen all copies of some"
        if self.calibration.own and self.calibration.group is None and smoother.widens:
            return WIDENED
        levels = smoother.key_code, self.places.code
        clusters = None if self.exclusion is None else self.exclusion.clusters
        if lonely_levels(*levels, smoother.weight, clusters, self.calibration.which):
            return LONELY
        whole = np.all(self.calibration.weight == np.floor(self.calibration.weight))
        return "" if whole else FRACTIONS
