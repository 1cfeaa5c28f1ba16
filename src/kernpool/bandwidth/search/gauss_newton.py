"""Damped Gauss-Newton for nonlinear least squares with box constraints.

The Hessian of S = sum_i r_i^2 is 2 (J'J + sum_i r_i hess(r_i)). Residuals of a regression are noise and do not
vanish, so the second term matters. It is learned from step to step by the secant rule of Dennis, Gay and Welsch,
"An adaptive nonlinear least-squares algorithm", ACM TOMS 7 (1981), 348-368, eq. 2.8 (NL2SOL).
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LARGEST_STEP = 1.5  # in log bandwidths: the quadratic model is useless farther away
WITHOUT_EFFECT = 1e-24  # squared slopes of all residuals, relative to their squares
STEEPEST_DAMPING, SLIGHT_DAMPING = 1e8, 1e-2
SHORTEST_SHARE = 0.1  # of a step that failed
FAST = 0.25  # of the gain before: all that follow gain a third of it
LARGE_GAIN = 1e-3  # of the sum of squares: after such a step other columns may matter than before


class Iterate(Protocol):
    """Evaluation of a sum of squares at one parameter vector."""

    @property
    def theta(self) -> Array:
        """Parameter vector of the evaluation, of shape (p,)."""

    @property
    def residual(self) -> Array:
        """Residuals whose squares are summed, of any shape."""

    @property
    def penalised(self) -> float:
        """Sum of the squared residuals."""


class SumOfSquares(Protocol):
    """Objective of a nonlinear least-squares search within bounds."""

    @property
    def box(self) -> tuple[Array, Array, Array]:
        """Lower and upper bounds of the parameters, and thresholds beyond which the objective is nearly flat.

        Steps beyond a threshold go to the upper bound.
        """

    def evaluate(self, theta: Array) -> Any:
        """Evaluate the sum of squares at a parameter vector."""

    def jacobian(self, at: Any) -> Array:
        """Return the derivatives of the residuals at an evaluated point, of shape (size of residual, p)."""


@dataclass(frozen=True)
class GaussNewton:
    """Result of a Gauss-Newton descent: final point, reason for stopping, and learned second-order Hessian term."""

    end: Any
    reason: str
    curvature: Array


def descend(
    objective: SumOfSquares,
    start: Iterate,
    *,
    max_steps: int,
    tolerance: float,
    enough: float = 0.0,
    curvature: Array | None = None,
) -> GaussNewton:
    """Minimise a sum of squares from one starting point by damped Gauss-Newton steps within bounds.

    Parameters
    ----------
    objective : SumOfSquares
        Residuals, their derivatives, and the box to stay in.
    start : Iterate
        Evaluation at a point inside the box.
    max_steps : int
        Steps at most, failed leaps to infinity and back included.
    tolerance : float
        Stop when a step promises to lower the sum of squares by less than this fraction of it.
    enough : float, default=0.0
        Stop also after a step that went as predicted and lowered the sum of squares by less than this fraction of it,
        and by less than a quarter of what the previous step did: all later steps together gain at most a third of
        that, and slopes, which cost up to three evaluations, would only confirm it.
    curvature : ndarray of shape (p, p), optional
        Second-order term learned by an earlier descent to about the same point.

    Returns
    -------
    GaussNewton
        Never worse than the start.
    """
    (low, high, flat), at, jacobian = objective.box, start, objective.jacobian(start)
    curvature = np.zeros((len(low), len(low))) if curvature is None else curvature
    # Columns for which a leap to infinity failed continue by steps; those for which a leap back failed stay there.
    damping, walking, resting = 1e-3, np.zeros(len(low), dtype=bool), np.zeros(len(low), dtype=bool)
    gained = np.inf
    for _ in range(max_steps):
        gradient = jacobian.T @ at.residual.ravel()
        stuck = ((at.theta <= low) & (gradient > 0)) | ((at.theta >= high) & (gradient < 0))
        normal = jacobian.T @ jacobian
        free = np.flatnonzero(~stuck & ~resting & (np.diagonal(normal) > WITHOUT_EFFECT * at.penalised))
        if not free.size:
            return GaussNewton(at, "no bandwidth matters any more", curvature)
        # In units of the normal equations: at a smoothing of zero one slope may be 1e30, and another 1.
        unit = np.sqrt(np.diagonal(normal)[free])
        hessian, scaled = _positive(normal + curvature, normal, free, unit)
        while True:
            step = np.zeros_like(gradient)
            damped = scaled + damping * np.diag(np.diagonal(scaled))
            step[free] = -np.linalg.lstsq(damped, gradient[free] / unit, rcond=None)[0] / unit
            target = np.clip(at.theta + np.clip(step, -LARGEST_STEP, LARGEST_STEP), low, high)
            step = target - at.theta
            promised = -2.0 * gradient @ step - step[free] @ hessian @ step[free]
            if promised <= tolerance * at.penalised:
                return GaussNewton(at, "converged", curvature)
            # On the flat part steps of any length change nothing: go to its upper end, or back to where it begins.
            away, back = (target > flat) & (step > 0.0) & ~walking, (at.theta > flat) & (step < 0.0) & ~walking
            target = np.where(away, high, np.where(back, np.minimum(target, flat), target))
            step = target - at.theta
            tried = objective.evaluate(target)
            if tried.penalised < at.penalised or np.any(away | back):
                break
            shorter = 0.0
            if enough:  # one evaluation is costly; where they are cheap it takes as many of them in all
                shorter = _damping_for(damping, tried.penalised - at.penalised, 2.0 * float(gradient @ step))
            damping = max(8.0 * damping, 1e-2, shorter)
            if damping > STEEPEST_DAMPING:
                return GaussNewton(at, "converged to rounding", curvature)
        if not tried.penalised < at.penalised:
            walking |= away
            resting |= back
            continue
        gain = at.penalised - tried.penalised
        as_promised = 0.5 * promised < gain and damping <= SLIGHT_DAMPING and not np.any(away | back)
        if as_promised and gain < min(enough * at.penalised, FAST * gained):
            return GaussNewton(tried, "converged", curvature)
        gained = gain
        if promised > LARGE_GAIN * at.penalised:
            walking[:] = resting[:] = False
        damping = damping / 10.0 if gain > 0.5 * promised else 2.0 * damping
        before, jacobian = jacobian, objective.jacobian(tried)
        residual = tried.residual.ravel()
        curvature = _learn(curvature, step, (jacobian - before).T @ residual, jacobian.T @ residual - gradient)
        at = tried
    return GaussNewton(at, f"{max_steps} steps", curvature)


def _damping_for(damping: float, rise: float, slope: float) -> float:
    """Return the damping that shortens a failed step to the minimum of a parabola fitted along the step."""
    share = -slope / (2.0 * (rise - slope)) if np.isfinite(rise) else 0.0
    return (1.0 + damping) / max(share, SHORTEST_SHARE) - 1.0


def _positive(hessian: Array, normal: Array, free: NDArray[np.intp], unit: Array) -> tuple[Array, Array]:
    """Return the Hessian of the free parameters, unscaled and scaled, or J'J if it is not clearly positive definite.

    J'J is Gauss-Newton's Hessian, without the learned second-order term. The scaled Hessian is clearly positive
    definite if its eigenvalues are at least 1e-3.
    """
    part: Array = hessian[np.ix_(free, free)]
    scaled: Array = part / unit / unit[:, None]
    if np.linalg.eigvalsh(scaled)[0] < 1e-3:
        part = normal[np.ix_(free, free)]
        scaled = part / unit / unit[:, None]
    return part, scaled


def _learn(curvature: Array, step: Array, of_residuals: Array, of_gradient: Array) -> Array:
    """Return the second-order term of the Hessian, updated by the secant rule of NL2SOL."""
    along = float(of_gradient @ step)
    if along <= 0.0:
        return np.zeros_like(curvature)
    before = float(step @ curvature @ step)
    sized = curvature * min(1.0, abs(float(step @ of_residuals)) / abs(before)) if before else curvature
    missing = of_residuals - sized @ step
    slope = of_gradient / along  # not at the end: the square of `along` vanishes where a fit is nearly perfect
    outer = np.outer(missing, slope)
    learned = sized + (outer + outer.T) - float(missing @ step) * np.outer(slope, slope)
    # Where slopes are practically infinite nothing can be learned.
    return np.asarray(learned) if np.all(np.isfinite(learned)) else np.zeros_like(curvature)
