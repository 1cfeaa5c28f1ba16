"""The ridge on the slopes of local planes as one more number that a criterion finds, along its own slope.

Bandwidths are found at a moderate ridge first. From there all of them go on together, from three ridges: a criterion
has valleys of wide windows without a ridge and of narrow ones with much of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.search.evaluation import Evaluation
from kernpool.bandwidth.search.gauss_newton import Descent, SumOfSquares, descend
from kernpool.bandwidth.search.objective import Objective

Array = NDArray[np.float64]

FIRST_RIDGE = 0.3  # keys at the query
STARTS = (0.03, 0.3, 3.0)
SMALLEST, LARGEST = 1e-4, 1e3
FIRST_STEPS, MOST_STEPS = 12, 60
FIRST_TOLERANCE, TOLERANCE = 1e-4, 1e-9


@dataclass(frozen=True)
class Joint:
    """A place of bandwidths and a ridge, and the evaluation there."""

    theta: Array
    at: Evaluation

    @property
    def residual(self) -> Array:
        """What is squared."""
        return self.at.residual

    @property
    def penalised(self) -> float:
        """The sum of squares."""
        return self.at.penalised


class WithRidge:
    """A criterion as a function of log bandwidths, smoothings and the logarithm of the ridge.

    Parameters
    ----------
    objective : SumOfSquares
        The same at the ridge of the engine, by the engine or by a quicker way.
    engine : Objective
        Whose ridge is changed.
    """

    def __init__(self, objective: SumOfSquares, engine: Objective) -> None:
        self.objective, self.engine = objective, engine
        low, high, flat = objective.box
        self.unit = engine.rows.unit
        self.box = (
            np.append(low, np.log(SMALLEST * self.unit)),
            np.append(high, np.log(LARGEST * self.unit)),
            np.append(flat, np.inf),
        )

    def evaluate(self, theta: Array) -> Joint:
        """Return the place."""
        self.engine.ridge = float(np.exp(theta[-1]))
        return Joint(theta, self.objective.evaluate(theta[:-1]))

    def jacobian(self, at: Joint) -> Array:
        """Return the derivatives of the residuals, of shape (n c, p + 1)."""
        return np.column_stack([self.objective.jacobian(at.at), self.engine.by_log_ridge(at.at)])


def find_ridge(objective: SumOfSquares, engine: Objective, theta: Array) -> tuple[Array, float]:
    """Go on from bandwidths that were found at one ridge to the best bandwidths at the best ridge.

    Parameters
    ----------
    objective : SumOfSquares
        Of planes, by the engine or by a quicker way.
    engine : Objective
        Its ridge is the one found, afterwards.
    theta : ndarray of shape (p,)
        Log bandwidths and smoothings.

    Returns
    -------
    theta : ndarray of shape (p,)
        Log bandwidths and smoothings.
    ridge : float
        In keys at the query.
    """
    joint = WithRidge(objective, engine)
    begun: list[Descent] = []
    for ridge in STARTS:
        start = joint.evaluate(np.append(theta, np.log(ridge * joint.unit)))
        if np.isfinite(start.penalised):
            begun.append(descend(joint, start, max_steps=FIRST_STEPS, tolerance=FIRST_TOLERANCE))
    best = min(begun, key=lambda one: float(one.end.penalised))
    best = descend(joint, best.end, max_steps=MOST_STEPS, tolerance=TOLERANCE, curvature=best.curvature)
    ridge = float(np.exp(best.end.theta[-1]))
    engine.ridge = ridge
    return best.end.theta[:-1], ridge
