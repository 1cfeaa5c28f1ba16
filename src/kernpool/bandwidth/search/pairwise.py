"""The same criterion by a quicker way for few rows: every pair once, for both of its rows, in one compiled loop.

A search evaluates a hundred bandwidths. With a thousand rows the engine spends most of its time around the sums, and
sums every pair twice. What is found here is evaluated once more by the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.evaluation import Evaluation, Tried, log_factor, penalise
from kernpool.bandwidth.search.objective import Objective
from kernpool.bandwidth.search.quick import LN_2, PER_BANDWIDTH, QuickObjective

Array = NDArray[np.float64]

LONGEST_REACH = 36.0  # bandwidths: the weight of a row there is 5e-282
SMALLEST_SUM = 1e-260  # of the largest weight of a row: far above what is out of reach, all rows together
LOG_SHARE = 40.0  # what weighs less than exp(-40) of a row's nearest neighbour, 4e-18, does not show in its sums


@dataclass(frozen=True)
class PairwiseEvaluation:
    """A criterion at one place, with all that its derivatives need; what is not said here is as in `Evaluation`.

    Parameters
    ----------
    theta, penalised, error, residual, penalty_slope
        As there.
    prediction : ndarray of shape (n, c)
        From the others, or from all, as the criterion wants.
    denominator : ndarray of shape (n,)
        Sum of the weights behind it; infinite where a row of one column is alone, and its slopes are not asked for.
    """

    theta: Array
    penalised: float
    error: float
    residual: Array
    penalty_slope: float
    prediction: Array
    denominator: Array


class PairwiseObjective(QuickObjective):
    """A criterion of few rows, local constant, Gaussian, without categories, as a function of log bandwidths.

    Parameters
    ----------
    engine : Objective
        The same by the engine, for places where rows have no neighbours within reach.
    """

    def __init__(self, engine: Objective) -> None:
        from kernpool.bandwidth.loops.pairs import add_moved, add_others, sum_nearest

        super().__init__(engine)
        self._add_others: Callable[..., None] = add_others
        self._add_moved: Callable[..., None] = add_moved
        self._sum_nearest: Callable[..., None] = sum_nearest
        rows, self._value = engine.rows, engine.problem.value
        self._share = np.sqrt(rows.weight / rows.total)[:, None]
        self._columns = np.ascontiguousarray(rows.X.T)
        counted = np.vstack([np.ones(len(rows.X)), self._value.T])
        self._weighted = rows.weight * counted
        # Of a row itself one unit is left out, or nothing.
        unit = np.minimum(rows.weight, 1.0) if engine.criterion.exclude_self else 0.0
        self._own = (rows.weight - unit) * counted
        gap = np.concatenate([[np.inf], np.diff(self._columns[0]), [np.inf]])
        self._gap = np.minimum(gap[:-1], gap[1:])
        self._log_share = LOG_SHARE + float(np.log(rows.weight.max() / rows.weight.min()))

    def evaluate(self, theta: Array) -> Evaluation | PairwiseEvaluation:
        """Return the criterion, to twelve digits or so, and remember it in `tried`."""
        at = self._evaluate(theta)
        if at is None:
            return self.engine.evaluate(theta)
        self.tried.append(Tried(theta, at.penalised, at.error, 0))
        return at

    def jacobian(self, at: Evaluation | PairwiseEvaluation) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p)."""
        if isinstance(at, Evaluation):
            return self.engine.jacobian(at)
        scaled, reach = self._scaled(at.theta)
        (d, n), row = scaled.shape, (np.empty(scaled.shape[1]), np.empty(scaled.shape[1]))
        sums = np.zeros((d, *self._weighted.shape))
        self._add_moved(scaled, self._weighted, reach, sums, *row)
        moved = np.moveaxis(sums, 0, 2) / (PER_BANDWIDTH**2 * at.denominator[:, None])
        weight, value = moved[0], np.moveaxis(moved[1:], 0, 1)
        factor = np.exp(0.5 * log_factor(at.penalised, at.error)) * self._share
        result = -factor[:, :, None] * (value - at.prediction[:, :, None] * weight[:, None])
        # The diagonal of the hat matrix is one over the denominator.
        share = self.rows.weight / at.denominator
        result += at.residual[:, :, None] * (-0.5 * at.penalty_slope * (share @ weight))
        if self.engine.regularity is not None:
            result += self.engine.regularity.moved(at.residual, at.theta, self.rows.number)
        return np.asarray(result.reshape(n * at.residual.shape[1], d))

    def _evaluate(self, theta: Array) -> PairwiseEvaluation | None:
        """Return the criterion; None where rows of several columns are alone."""
        rows = self.rows
        scaled, reach = self._scaled(theta)
        sums = self._own.copy()
        self._add_others(scaled, self._weighted, reach, sums, np.empty(len(rows.X)))
        if len(theta) > 1:
            if np.any(sums[0] <= SMALLEST_SUM * rows.weight.max()):
                return None
            alone = np.zeros(len(rows.X), dtype=bool)
        else:
            # Decide by distance, not by the sum: near the end of the reach part of the weight is already dropped.
            far = (self._gap * np.exp(-theta[0])) ** 2 > LONGEST_REACH**2 - 2.0 * self._log_share
            alone = far & (self._own[0] == 0.0)
            if alone.any():
                self._sum_nearest(scaled, self._weighted, alone, self._log_share / LN_2, sums)
        prediction = (sums[1:] / sums[0]).T
        denominator = np.where(alone, np.inf, sums[0])
        residual = (self._value - prediction) * self._share
        penalised, error, residual, slope = penalise(self.engine.criterion, residual, rows.weight, 1.0 / denominator)
        if self.engine.regularity is not None:
            penalised, residual = self.engine.regularity.put_on(penalised, residual, theta, rows.number)
        return PairwiseEvaluation(theta, penalised, error, residual, slope, prediction, denominator)

    def _scaled(self, theta: Array) -> tuple[Array, float]:
        """Return the columns in units of the loops, and how far the first one reaches."""
        reach = LONGEST_REACH
        if len(theta) == 1:
            reach = min(reach, float(np.hypot(self._gap.max() / np.exp(theta[0]), np.sqrt(2.0 * self._log_share))))
        return self._columns * (PER_BANDWIDTH * np.exp(-theta))[:, None], float(reach * PER_BANDWIDTH)
