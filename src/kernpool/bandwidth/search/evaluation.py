"""What is known of a criterion at one place: residuals, and what their derivatives need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.criteria import Criterion
from kernpool.bandwidth.leverage import Counted
from kernpool.core.local_fit import LocalFit
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState

Array = NDArray[np.float64]

LARGEST_LOG_PENALTY = 500.0


class Tried(NamedTuple):
    """What remains of an evaluation.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Logarithms of the bandwidths, and the smoothings of categorical columns.
    penalised : float
        Mean of squares times penalty.
    error : float
        Mean of squares.
    empty_windows : int
        Rows that have no other row in their window, and are predicted by the weighted mean of the others.
    ridge : float, default=0.0
        On the slopes of planes.
    """

    theta: Array
    penalised: float
    error: float
    empty_windows: int
    ridge: float = 0.0


def best_of(tried: list[Tried]) -> Tried:
    """Return the smallest of all that was tried; of equal ones that with the largest bandwidths."""
    return min(tried, key=lambda one: (one.penalised, -one.theta.sum()))


def cost_of_empty(empty: NDArray[np.bool_], weight: Array) -> float:
    r"""Return what empty leave-one-out windows add to the logarithm of a mean of squares.

    .. math:: -2 \log\big(\max(1 - f, 1 / (N + 1))\big)

    with f the fraction of the N rows whose window holds no other row. All that predicts such a row is the mean of the
    others, so without a cost bandwidths that leave all windows empty would tie with those that smooth everything away.
    The factor is that of generalised cross-validation, with one degree of freedom for each empty window. As a factor on
    the squares, and not a square of its own, it lets one isolated row of many hardly matter, however little noise
    there is.

    Parameters
    ----------
    empty : ndarray of bool, shape (n,)
        Which windows are.
    weight : ndarray of shape (n,)
        Frequencies of rows.

    Examples
    --------
    >>> round(cost_of_empty(np.array([True, False, False, False]), np.ones(4)), 2)
    0.58
    """
    if not empty.any():
        return 0.0
    total = float(weight.sum())
    occupied, least = 1.0 - float(weight @ empty) / total, 1.0 / (max(total, float(len(weight))) + 1.0)
    return -2.0 * math.log(max(occupied, least))


def penalise(
    criterion: Criterion, residual: Array, weight: Array, hat: Array, cost: float = 0.0
) -> tuple[float, float, Array, float]:
    """Put the penalty of a criterion on residuals.

    Parameters
    ----------
    criterion : Criterion
        Whose penalty.
    residual : ndarray of shape (n, c)
        Residuals times the roots of the shares of their weights.
    weight, hat : ndarray of shape (n,)
        Frequencies of rows, and the diagonal of the hat matrix; not looked at without a penalty.
    cost : float, default=0.0
        Of empty windows, added to the logarithm of the penalty.

    Returns
    -------
    penalised, error : float
        Mean of squares with and without penalty.
    residual : ndarray of shape (n, c)
        Times the root of the penalty.
    slope : float
        Derivative of the logarithm of the penalty by the trace of the hat matrix.
    """
    error, log_penalty, slope = float(np.sum(residual**2)), 0.0, 0.0
    if criterion.log_penalty is not None:
        log_penalty, slope = criterion.log_penalty(float(weight @ hat), float(weight.sum()))
    log_penalty += cost
    # Beyond, the penalty is no number, and nothing but an interpolation has it.
    if log_penalty >= LARGEST_LOG_PENALTY:
        return np.inf, error, np.full_like(residual, np.inf), slope
    residual = residual * np.exp(0.5 * log_penalty)
    return float(np.sum(residual**2)), error, residual, slope


def log_factor(penalised: float, error: float) -> float:
    """Return the logarithm of a penalty that was put on."""
    return float(np.log(penalised / error)) if error > 0 else 0.0


@dataclass(frozen=True)
class Evaluation:
    """A criterion at one place, with all that its derivatives need.

    Parameters
    ----------
    theta : ndarray of shape (p,)
        Logarithms of the bandwidths, and the smoothings of categorical columns.
    penalised, error : float
        See `Tried`.
    residual : ndarray of shape (n, c)
        Residuals times the roots of their weights and of the penalty: their squares add up to `penalised`.
    problem, state, fit
        How the rows were fitted.
    hat : ndarray of shape (n,)
        Diagonal of the hat matrix; empty for criteria that do not look at it.
    penalty_slope : float
        Derivative of the logarithm of the penalty by the trace of the hat matrix.
    counted : Counted
        What counted as residuals, before the penalty.
    ridge : float, default=0.0
        On the slopes of planes.
    """

    theta: Array
    penalised: float
    error: float
    residual: Array
    problem: Problem
    state: PoolState
    fit: LocalFit
    hat: Array
    penalty_slope: float
    counted: Counted
    ridge: float = 0.0

    @property
    def tried(self) -> Tried:
        """What is remembered of it."""
        return Tried(self.theta, self.penalised, self.error, int(np.count_nonzero(~self.fit.occupied)), self.ridge)
