"""Descents from one point: damped Gauss-Newton steps in a box, and how they end at kinks, far away and with a ridge.

The Hessian of S = sum_i r_i^2 is 2 (J'J + sum_i r_i hess(r_i)). Residuals of a regression are noise and do not vanish,
so the second term matters. It is learned from step to step by the secant rule of Dennis, Gay and Welsch, "An adaptive
nonlinear least-squares algorithm", ACM TOMS 7 (1981), 348-368, eq. 2.8 (NL2SOL).

The ridge on the slopes of local linear fits is searched for, too: bandwidths are found at a moderate ridge first, and
from there bandwidths and ridge descend together, from three values of the ridge. A criterion has minima of wide windows
without a ridge, and of narrow windows with a large one.
"""

from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from kernpool._arrays import Array, Index
from kernpool.bandwidth.search.objective import Evaluation, Objective

MOST_STEPS = 100
LARGEST_STEP = 1.5  # in log bandwidths: the quadratic model is useless farther away
WITHOUT_EFFECT = 1e-24  # squared slopes of all residuals, relative to their squares
STEEPEST_DAMPING, SLIGHT_DAMPING = 1e8, 1e-2
SHORTEST_SHARE = 0.1  # of a step that failed
FAST = 0.25  # of the gain before: all that follow gain a third of it
LARGE_GAIN = 1e-3  # of the sum of squares: after such a step other columns may matter than before


@dataclass(frozen=True)
class GaussNewton:
    """Point of a Gauss-Newton descent, why it ended there, and the second-order term of the Hessian learned so far."""

    end: Evaluation
    reason: str = ""
    curvature: Array | None = None


def descend(
    objective: Objective,
    start: GaussNewton,
    tolerance: float,
    *,
    max_steps: int = MOST_STEPS,
    enough: float = 0.0,
    box: tuple[Array, Array, Array] | None = None,
) -> GaussNewton:
    """Minimise a sum of squares from one starting point by damped Gauss-Newton steps within bounds.

    Parameters
    ----------
    objective : Objective
        Residuals, their derivatives, and the box to stay in.
    start : GaussNewton
        Point inside the box, with the curvature that an earlier descent has learned nearby, if any.
    tolerance : float
        Stop when a step promises to lower the sum of squares by less than this fraction of it.
    max_steps : int, default=100
        Steps at most, failed leaps to infinity and back included.
    enough : float, default=0.0
        Stop also after a step that went as predicted and lowered the sum of squares by less than this fraction of it,
        and by less than a quarter of what the previous step did: all later steps together gain at most a third of
        that, and slopes, which cost up to three evaluations, would only confirm it.
    box : tuple of three ndarrays of shape (p,), optional
        Box of the parameters, where it is not that of the objective.

    Returns
    -------
    GaussNewton
        Never worse than the start.
    """
    low, high, flat = objective.box if box is None else box
    at, jacobian = start.end, objective.jacobian(start.end)
    curvature = np.zeros((len(low), len(low))) if start.curvature is None else start.curvature
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
            longer, damping = damping, max(8.0 * damping, 1e-2)
            if enough:  # one evaluation is costly; where they are cheap it takes as many of them in all
                # To the minimum of a parabola along the step.
                rise, slope = tried.penalised - at.penalised, 2.0 * float(gradient @ step)
                damping = max(damping, (1.0 + longer) / max(0.5 * slope / (slope - rise), SHORTEST_SHARE) - 1.0)
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


def _positive(hessian: Array, normal: Array, free: Index, unit: Array) -> tuple[Array, Array]:
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


def gain_without(objective: Objective, at: Evaluation, jacobian: Array) -> Array:
    """Return, for each column, the predicted decrease of the sum of squares if that column alone is removed.

    Parameters
    ----------
    objective : Objective
        The criterion, for its bounds.
    at : Evaluation
        The evaluated point.
    jacobian : ndarray of shape (size of residual, p)
        Derivatives of the residuals there.

    Returns
    -------
    ndarray of shape (p,)
        Minus infinity where it is smoothed away already.
    """
    _, high, flat = objective.box
    length = np.where(np.isfinite(flat), 0.5, high - at.theta)
    squares = np.einsum("ij,ij->j", jacobian, jacobian)
    gain = -2.0 * length * (jacobian.T @ at.residual.ravel()) - length**2 * squares
    return np.where(at.theta >= high, -np.inf, gain)


TOLERANCE = 1e-11
MOST_COLUMNS = 8  # up to so many, each has its starts and its line
EDGES, NEAR, MOST_LOOKS = (0.4, -0.8), 0.02, 30  # of simplices, in log bandwidths; evaluations for each column


def descend_without_slopes(objective: Objective, descent: GaussNewton) -> GaussNewton:
    """Continue a descent by the Nelder-Mead simplex, and from its best point with derivatives again.

    The criterion has a kink where a row enters a compact window, and a jump where the last row leaves it; a descent
    along slopes gets stuck at either.

    Parameters
    ----------
    objective : Objective
        The criterion.
    descent : GaussNewton
        Result of a descent.

    Returns
    -------
    GaussNewton
        Not worse. Unchanged with more than eight relevant columns: a simplex of so many dimensions does not converge.
    """
    from scipy.optimize import minimize

    (low, high, _), free = objective.box, np.flatnonzero(objective.relevant(descent.end.theta))
    if not 0 < len(free) <= MOST_COLUMNS:
        return descent
    lowest: Evaluation = descent.end

    def height(x: Array) -> float:
        nonlocal lowest
        theta = descent.end.theta.copy()
        theta[free] = np.clip(x, low[free], high[free])
        tried = objective.evaluate(theta)
        lowest = tried if tried.penalised < lowest.penalised else lowest
        return float(np.nan_to_num(tried.penalised, posinf=np.finfo(float).max))

    for edge in EDGES:
        start = lowest.theta[free]
        simplex = np.vstack([start, start + edge * np.eye(len(free))])
        options = {"initial_simplex": simplex, "maxfev": MOST_LOOKS * len(free), "xatol": NEAR, "fatol": np.inf}
        minimize(height, start, method="Nelder-Mead", options=options)
    return descent if lowest is descent.end else descend(objective, replace(descent, end=lowest), TOLERANCE)


def flatten(
    objective: Objective, descent: GaussNewton, tolerance: float = TOLERANCE, enough: float = 0.0
) -> GaussNewton:
    """Set each bandwidth that is already wide to its upper bound if this does not increase the criterion.

    Towards an infinite bandwidth the criterion becomes flat, and a descent stops at an arbitrary point.

    Parameters
    ----------
    objective : Objective
        The criterion.
    descent : GaussNewton
        Result of a descent.
    tolerance, enough : float
        As of `descend`, for going on from there.

    Returns
    -------
    GaussNewton
        Not worse; with bandwidths of 1e4 ranges for columns that were smoothed away.
    """
    _, high, far = objective.box
    at, changed = descent.end, False
    wide = (at.theta >= far - 2.0) & (at.theta < high)  # more than a third of the range of the column
    if wide.any():
        # Trying one after the other took most evaluations of searches in a hundred columns. Where the residuals are
        # linear in h^-2, as for wide windows, their derivatives say which of them may go.
        gain = gain_without(objective, at, objective.jacobian(at))
        untried = [np.flatnonzero(wide & (gain >= 0.0))]
        while untried:
            part = untried.pop()
            if not part.size:
                continue
            theta = at.theta.copy()
            theta[part] = high[part]
            flat = objective.evaluate(theta)
            if flat.penalised <= at.penalised * (1.0 + 1e-12):
                at, changed = flat, True
            elif part.size > 1:
                untried += [part[part.size // 2 :], part[: part.size // 2]]
    return descend(objective, replace(descent, end=at), tolerance, enough=enough) if changed else descent


RIDGES = (0.03, 0.3, 3.0)  # keys at the query, to start from
SMALLEST_RIDGE, LARGEST_RIDGE = 1e-4, 1e3
FIRST_STEPS_OF_RIDGE, STEPS_OF_RIDGE = 12, 60
FIRST_TOLERANCE_OF_RIDGE, TOLERANCE_OF_RIDGE = 1e-4, 1e-9


def find_ridge(objective: Objective, descent: GaussNewton, every: Objective) -> GaussNewton:
    """Minimise a criterion over bandwidths and ridge together, from bandwidths that were found at a fixed ridge.

    Parameters
    ----------
    objective : Objective
        Criterion of local linear fits.
    descent : GaussNewton
        Result of a descent at a fixed ridge.
    every : Objective
        The same, or that of all rows as queries, on which the best of the descents from each ridge goes on; its ridge
        is set to the one found.

    Returns
    -------
    GaussNewton
        The bandwidths and smoothings that are best with the ridge found, of `every`.
    """
    unit = objective.rows.unit
    ends = np.log(SMALLEST_RIDGE * unit), np.log(LARGEST_RIDGE * unit)
    low, high, flat = objective.box
    box = np.append(low, ends[0]), np.append(high, ends[1]), np.append(flat, np.inf)
    starts = (objective.evaluate(np.append(descent.end.theta, np.log(ridge * unit))) for ridge in RIDGES)
    begun = (
        descend(objective, GaussNewton(start), FIRST_TOLERANCE_OF_RIDGE, max_steps=FIRST_STEPS_OF_RIDGE, box=box)
        for start in starts
        if np.isfinite(start.penalised)
    )
    tolerance = TOLERANCE_OF_RIDGE
    if every is not objective:  # a gain of 1e-4 is a twentieth of a unit of the log likelihood of 1000 rows
        begun = (replace(one, end=every.evaluate(one.end.theta)) for one in begun)
        tolerance = FIRST_TOLERANCE_OF_RIDGE
    best = min(begun, key=attrgetter("end.penalised"))
    best = descend(every, best, tolerance, max_steps=STEPS_OF_RIDGE, box=box)
    every.ridge = best.end.ridge
    return flatten(every, replace(descent, end=replace(best.end, theta=best.end.theta[:-1])), tolerance)
