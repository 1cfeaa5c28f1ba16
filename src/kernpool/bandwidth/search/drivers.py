"""The two drivers of a search: one factor common to all bandwidths, and one bandwidth per column.

`search_one_factor` evaluates the criterion on a grid and refines its valleys by Brent's method. The grid reaches from
the narrowest windows (`narrowest` in `objective.py`) to ten diameters of the data, so the minimum is the global one on
that interval up to the resolution of the grid. With many rows the grid runs on a sample, and its best factor is refined
on all rows.

`search_per_column` takes Gauss-Newton steps from several starts, and removes irrelevant columns. Criteria usually have
several local minima, more of them the more columns there are. Starts are: the best common factors on the spreads, with
categorical columns kept apart, smoothed and ignored; the best of these with one column after the other smoothed away;
and the best of random points around it. All starts descend for a few steps, on a sample if there are many rows; the
best go on to the end. From there each bandwidth is scanned alone over its whole range.

With many columns that costs too much: a start without each of p columns, and a scan along each, take p times as
long as a descent, in every round. Then starts are a few common factors, and the best of them without the least useful
columns; the best start descends, and the most promising columns are scanned once. The derivatives of the residuals at
one point select these columns. A column enters a fit by u = h^-2, so that the residuals without it are, to first order
in u::

    r - u dr/du = r + (1/2) dr / d(log h)

For a smoothing the extrapolation to the end of its box is linear.

The ridge on the slopes of local linear fits is searched for, too: bandwidths are found at a moderate ridge first, and
from there bandwidths and ridge descend together, from three values of the ridge. A criterion has minima of wide windows
without a ridge, and of narrow windows with a large one.

Descents are damped Gauss-Newton steps with box constraints. The Hessian of S = sum_i r_i^2 is
2 (J'J + sum_i r_i hess(r_i)). Residuals of a regression are noise and do not vanish, so the second term matters. It is
learned from step to step by the secant rule of Dennis, Gay and Welsch, "An adaptive nonlinear least-squares algorithm",
ACM TOMS 7 (1981), 348-368, eq. 2.8 (NL2SOL).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.rules_of_thumb import rate_factor
from kernpool.bandwidth.search.objective import STEPS, Evaluation, Objective, SearchObjective, narrowest
from kernpool.bandwidth.search.setup import SearchOptions, TrainingRows

Array = NDArray[np.float64]

GRID_SIZE = 64
FINE_GRID_SIZE, FINE_GRID_ROWS = 256, 1000  # for compact kernels, whose error has kinks
MANY_ROWS = 500  # whose means by a smooth kernel need a third of the grid
STEP_ROWS = 64  # for the boxcar: up to 2016 distances, each tried
# Minima on the grid that are higher than the lowest by more than this are not refined: between neighbours on the grid
# criteria change less (336 fits end at the same bandwidth).
PROMISING = 1.25
UNDEFINED = 1e100  # instead of infinity, whose differences are not numbers
# On all rows of a large problem, where an evaluation takes as long as sorting twice, by polynomials, until one promises
# to lower the criterion by less than this fraction of it, errors of its own included.
LARGE_TOLERANCE, STRIDE, MOST_EVALUATIONS = 1e-8, 0.2, 40
NARROWEST = 1e-6  # in log h: kinks and noise need no closer look


def search_one_factor(objectives: Sequence[SearchObjective], spread: Array, options: SearchOptions) -> str:
    """Minimise a criterion over one factor common to all bandwidths: on a grid, then by local refinement.

    Parameters
    ----------
    objectives : sequence of SearchObjective
        Criteria of the rows that the grid is tried on, and of all rows: the same, or a sample.
    spread : ndarray of shape (d,)
        Bandwidths at the factor one.
    options : SearchOptions
        Options of the search.

    Returns
    -------
    str
        Reason why the search ended; the evaluated points are recorded in the objectives.
    """
    from scipy.optimize import minimize_scalar

    first, objective = objectives[0], objectives[-1]
    grid = np.log(candidates(first.rows, spread, options))
    penalised = partial(_penalised, first, np.log(spread))
    if not options.degree and not options.kernel.is_compact and len(first.rows.X) >= MANY_ROWS:
        grid = np.unique(np.append(grid[::3], grid[-1]))
    values = np.array([penalised(point) for point in grid])
    if first.rejected < values.min():
        # The nearest rows beyond the gap predict better than any window of many rows: wide windows miss the curve, and
        # of those that are judged the narrow ones see it best. Of the fits of sin(t / 5) in `lies_within_gap` 43
        # percent, and not 25, had twice the least error with the lowest criterion of all candidates.
        end = end_of_first_valley(grid, values)
        first.widest = float(np.log(spread)[0] + end)
        values = np.where(grid <= end, values, UNDEFINED)
    first.starts = len(grid)
    # Where the engine evaluates, and more rows follow, the grid is enough.
    if first is objective or first.is_quick:
        for bounds in valleys_on_grid(grid, values, first.refined_minima):
            minimize_scalar(penalised, bounds=bounds, method="bounded", options={"xatol": first.tolerance})
        first.confirm(first.best)
    if first is objective:
        return "the best of a grid, refined" if len(grid) > 1 else "no column varies"
    rate = rate_factor(len(first.rows.X), len(objective.rows.X), len(spread), options.degree)
    minimise_near(objective, spread, np.exp(first.best.theta[0]) / spread[0] * rate)
    if len(spread) == 1:
        objective.smallest = objective.box[0][0]
    objective.confirm(objective.best)
    return f"the best of a grid on {len(first.rows.X)} rows, refined on all"


def candidates(rows: TrainingRows, spread: Array, options: SearchOptions) -> Array:
    """Return a grid of common bandwidth factors, from below the distances between rows to well above them.

    From `narrowest` of one column, or .6 of a small nearest-neighbour distance of several, to ten diameters of the
    data. Below, a window holds one row and nothing changes; above, all rows weigh the same.

    Parameters
    ----------
    rows : TrainingRows
        Of the search.
    spread : ndarray of shape (bandwidths,)
        Bandwidths at the factor one.
    options : SearchOptions
        Kernel.

    Returns
    -------
    ndarray of shape (k,)
        Equally spaced in logarithm; for the boxcar on few rows one for every step of its error; a single one if no
        column varies.
    """
    from scipy.spatial import KDTree
    from scipy.spatial.distance import pdist

    scaled = replace(rows, X=rows.X / rows.geometry.per_column(spread))
    points, diameter = np.unique(scaled.X, axis=0), float(np.linalg.norm(scaled.extent))
    if diameter == 0:  # all rows at one point: every bandwidth gives the mean
        return np.ones(1)
    kernel = options.kernel
    if kernel.profile_name == "boxcar" and len(points) <= STEP_ROWS:
        # The error is a step function of h, which changes where h passes a distance: one candidate per step.
        steps = np.unique(pdist(points, "chebyshev" if kernel.composition == "product" else "euclidean"))
        return np.concatenate([[0.5 * steps[0]], np.sqrt(steps[:-1] * steps[1:]), [2.0 * steps[-1]]])
    size = FINE_GRID_SIZE if kernel.is_compact and len(points) <= FINE_GRID_ROWS else GRID_SIZE
    if len(spread) == 1:
        low = float(narrowest(rows, kernel)[0] / spread[0])
    else:
        low = STEPS * float(np.quantile(KDTree(points).query(points, k=2)[0][:, 1], 0.1))
    return np.asarray(np.exp(np.linspace(np.log(low), np.log(10.0 * diameter), size)))


def minimise_near(
    objective: Any,
    spread: Array,
    factor: float,
    *,
    tolerance: float = LARGE_TOLERANCE,
    max_evaluations: int = MOST_EVALUATIONS,
) -> None:
    """Refine, on all rows, a common bandwidth factor that was found on a sample.

    Parameters
    ----------
    objective : object
        Criterion of all rows: ``evaluate(log_bandwidths).penalised``.
    spread : ndarray of shape (d,)
        Bandwidths at the factor one.
    factor : float
        Expected minimum.
    tolerance : float, default=1e-8
        End where an evaluation promises to lower the criterion by less than this fraction of it.
    max_evaluations : int, default=40
        Evaluations at most.
    """
    penalised = partial(_penalised, objective, np.log(spread))
    logs = [np.log(factor) + step for step in (-STRIDE, 0.0, STRIDE)]
    values = [penalised(point) for point in logs]
    while len(logs) < max_evaluations:
        best = int(np.argmin(values))
        if 0 < best < len(logs) - 1:
            place, promised = _predicted_minimum(logs, values, best)
            if promised <= tolerance * values[best]:
                break
        else:
            place = logs[best] + (STRIDE if best else -STRIDE)
        where = int(np.searchsorted(logs, place))
        logs.insert(where, place)
        values.insert(where, penalised(place))


def _predicted_minimum(logs: list[float], values: list[float], best: int) -> tuple[float, float]:
    """Return the log factor to evaluate next, by polynomial interpolation, and a bound on the criterion's decrease.

    The factor is the minimum of a polynomial around the lowest point: a parabola through the point and its neighbours,
    bent by one more point to a cubic if there is one. Its neglected next derivative, in units of the second, is assumed
    to be what it is where squared bias and variance are powers of the bandwidth: then the error of the minimum is at
    most the product of the distances to the other points.
    """
    b, others = logs[best], [best - 1, best + 1]
    others += sorted({*range(len(logs))} - {best, *others}, key=lambda i: abs(logs[i] - b))[:1]
    distance = np.array([logs[i] - b for i in others])
    height = np.array([values[i] - values[best] for i in others])
    slope, half_bend, *cubic = np.linalg.solve(distance[:, None] ** np.arange(1, len(others) + 1), height)
    step = -0.5 * slope / half_bend if half_bend > 0 else np.inf
    for third in 3 * cubic:  # Newton's method, for the root of the derivative
        bend = 2.0 * half_bend + 6.0 * third * step
        step -= (slope + 2.0 * half_bend * step + 3.0 * third * step**2) / bend if bend > 0 else 0.0
    low, high, promised = distance[0], distance[1], np.inf
    if half_bend > 0 and 0.9 * low <= step <= 0.9 * high:
        promised = half_bend * (step**2 + np.prod(distance) ** 2)
    if not np.isfinite(promised) or abs(step) < NARROWEST:  # a kink, or noise
        step = 0.5 * (high if high > -low else low)
        promised = min(promised, np.inf if high - low > NARROWEST else 0.0)
    return float(b + step), float(promised)


def valleys_on_grid(logs: Array, values: Array, most: int) -> list[tuple[float, float]]:
    """Return the intervals of log factors around the lowest local minima of a criterion on a grid, so many at most."""
    padded = np.concatenate([[np.inf], values, [np.inf]])
    lowest = (values <= padded[:-2]) & (values <= padded[2:]) & (values < UNDEFINED)
    minima = np.flatnonzero(lowest & (values <= PROMISING * values.min()))
    best = minima[np.argsort(values[minima], kind="stable")][:most]
    ends = [(float(logs[max(i - 1, 0)]), float(logs[min(i + 1, len(logs) - 1)])) for i in best]
    return [(low, high) for low, high in ends if low < high]


def end_of_first_valley(logs: Array, values: Array) -> float:
    """Return the log factor where a criterion first rises, or the last one.

    Examples
    --------
    >>> end_of_first_valley(np.arange(5.0), np.array([UNDEFINED, 3.0, 2.0, 4.0, 1.0]))
    3.0
    """
    defined = np.flatnonzero(values < UNDEFINED)
    rises = np.flatnonzero(np.diff(values[defined]) > 0)
    return float(logs[defined[rises[0] + 1]] if rises.size else logs[-1])


def _penalised(objective: Any, log_spread: Array, log_factor: float) -> float:
    penalised = objective.evaluate(log_spread + log_factor).penalised
    return penalised if np.isfinite(penalised) else UNDEFINED


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


by_criterion = attrgetter("penalised")
MOST_TRIED_ONE_BY_ONE = 8  # columns: up to so many, all of them are
# On 17 tables of 10 to 36 columns, planes and constants, such a search has the R^2 of new rows of one with three times
# as many starts, finalists and places, random starts and five rounds (.726 and .731 in the mean, better on 12 and worse
# on 7 by more than .001), in a quarter of the time. Without any scan products of columns are missed (.67 for .72).
BATCHES, LINES, PLACES = 2, 10, 4


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


def without_batches(objective: Objective, at: Evaluation, wide: Array) -> list[Evaluation]:
    """Return the best few evaluations with the 1, 2, 4 and so on least useful columns smoothed nearly away."""
    order = np.argsort(-gain_without(objective, at, objective.jacobian(at)), kind="stable")
    best: list[Evaluation] = []  # no more than are wanted: an evaluation of planes has n d^2 / 2 numbers
    size = 1
    while size < len(order):
        theta = at.theta.copy()
        theta[order[:size]] = wide[order[:size]]
        best = nsmallest(BATCHES, [*best, objective.evaluate(theta)], key=by_criterion)
        size *= 2
    return best


def promising(objective: Objective, at: Evaluation) -> NDArray[np.intp]:
    """Return, in order, the columns whose bandwidths are worth scanning; about half of them are relevant so far.

    These are the relevant columns whose removal costs least, and the smoothed-away columns whose slopes correlate most
    with the residuals.
    """
    _, high, flat = objective.box
    jacobian = objective.jacobian(at)
    gain = gain_without(objective, at, jacobian)
    size = np.sqrt(np.einsum("ij,ij->j", jacobian, jacobian))
    along = np.divide(jacobian.T @ at.residual.ravel(), size, where=size > 0, out=np.zeros_like(size))
    unused = at.theta > np.where(np.isinf(flat), high - 1e-9, flat)
    used = np.flatnonzero(~unused)
    missed = used[np.argsort(-gain[used], kind="stable")]
    missing = np.flatnonzero(unused)[np.argsort(-along[unused], kind="stable")]
    chosen = [*missed[: max(LINES // 2, LINES - len(missing))], *missing[: max(LINES // 2, LINES - len(missed))]]
    return np.sort(np.array(chosen, dtype=np.intp))


LADDER, LADDER_OF_MANY = 24, 8  # common factors, to begin with
DRAWN, DRAWN_STARTS = 32, 4  # points, and the best of them
FIRST_SMOOTHINGS = (0.02, 0.3, 1.0)  # of the boxes of categorical columns
MOST_VALLEYS = 4
LINE = 10  # points along each bandwidth


def starts(objective: Objective, spread: Array, grid: Array, generator: Any) -> Iterator[Evaluation]:
    """Yield evaluated starting points of a search over all bandwidths, the most promising first.

    Parameters
    ----------
    objective : Objective
        The criterion, for finding the best common factor.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    grid : ndarray
        Common factors on the spreads to consider, increasing; only the ends are used. A single one if no numeric column
        varies.
    generator : numpy.random.RandomState
        For random starting points.

    Yields
    ------
    Evaluation
        Whether or not the criterion is finite there.
    """
    low, high, flat = objective.box
    d, p, numeric = len(spread), len(high), np.isfinite(flat)
    many = p > MOST_TRIED_ONE_BY_ONE
    size = LADDER_OF_MANY if many else LADDER
    ladder = np.log(np.geomspace(grid[0] * 0.5, grid[-1], size) if len(grid) > 1 else grid)
    middles = [np.append(np.log(spread), share * high[d:]) for share in (FIRST_SMOOTHINGS if p > d else (0.0,))]
    common = (
        valleys_of(objective.evaluate(np.clip(middle + numeric * log_factor, low, high)) for log_factor in ladder)
        for middle in middles
    )
    valleys = nsmallest(MOST_VALLEYS, chain.from_iterable(common), key=by_criterion)
    if not valleys:
        return
    objective.starts = len(valleys)
    yield from valleys
    best = valleys[0]
    wide = np.where(numeric, np.minimum(best.theta + 3.0, high), high)
    if many:
        objective.starts += BATCHES
        yield from without_batches(objective, best, wide)
        return
    for a in range(p):
        objective.starts += 1
        yield objective.evaluate(np.where(np.arange(p) == a, wide, best.theta))
    drawn = best.theta + generator.uniform(-1.5, 3.0, (DRAWN, p))
    drawn = np.clip(np.where(numeric, drawn, high * generator.uniform(size=(DRAWN, p))), low, high)
    objective.starts += DRAWN_STARTS
    yield from nsmallest(DRAWN_STARTS, map(objective.evaluate, drawn), key=by_criterion)


def valleys_of(points: Iterable[Evaluation]) -> Iterator[Evaluation]:
    """Yield the local minima among evaluations along a line; of equal neighbours, the last one.

    At most two evaluations are held at a time: one of planes in d columns has n d^2 / 2 numbers.
    """
    before, here = np.inf, None
    for point in points:
        if here is not None:
            if here.penalised <= before and here.penalised < point.penalised:
                yield here
            before = here.penalised
        here = point
    if here is not None and here.penalised <= before and here.penalised < np.inf:
        yield here


FIRST_STEPS, FINALISTS = 4, 3
MOST_ROUNDS, ROUNDS_OF_MANY = 5, 1
EDGES, NEAR, MOST_LOOKS = (0.4, -0.8), 0.02, 30  # of simplices, in log bandwidths; evaluations for each column
FIRST_TOLERANCE, SECOND_TOLERANCE, TOLERANCE = 1e-3, 1e-5, 1e-11
STEPS_ON_MANY_ROWS = 30
# Minima of many columns lie in long flat valleys, and a step on three times as many rows takes nine times as long: for
# 20 000 rows of five columns this way takes half the time of going on with all of them at once.
GROWTH, TOLERANCE_BETWEEN, TOLERANCE_ON_ALL = 3, 1e-5, 1e-6
# Last gains, relative. At the end one of 2e-4 is followed by less than 7e-5 in all; the standard error of the criterion
# itself is 1e-2 with 20 000 rows. From the last sample to all rows the minimum moves by some 5e-3, so that a rough one
# will do; where steps are cheap, before that, they are worth what they teach of the curvature.
ENOUGH_ON_FEW, ENOUGH_ON_MOST, ENOUGH_ON_ALL = 1e-4, 1e-3, 2e-4


def search_per_column(
    objectives: list[Objective], spread: Array, generator: Any, objective_of: Callable[[TrainingRows], Objective]
) -> str:
    """Search for one bandwidth per column: descend from several starts on a sample of rows, then on ever more rows.

    Parameters
    ----------
    objectives : list of Objective
        Criteria of the rows that starts are tried on, and of all rows: the same, or a sample. Those of samples between
        are added to the list.
    spread : ndarray of shape (d,)
        Spreads of the columns.
    generator : numpy.random.RandomState
        For random rows and starting points.
    objective_of : callable
        Criterion of a sample.

    Returns
    -------
    str
        Reason why the search ended; the evaluated points are recorded in the objectives.
    """
    first, last = objectives[0], objectives[-1]
    options, (low, high, _) = first.options, first.box
    grid = candidates(first.rows, spread, options)
    # Points at which each log bandwidth or smoothing is scanned while the others stay fixed.
    size = LINE if len(low) <= MOST_TRIED_ONE_BY_ONE else PLACES
    steps = np.log(np.geomspace(grid[0] * 0.5, grid[-1], size))
    lines = [np.unique(np.clip(np.log(unit) + steps, low[a], high[a])) for a, unit in enumerate(spread)]
    lines += [np.linspace(0.0, 1.0, size) ** 2 * end for end in high[len(spread) :]]
    best = _best_from(first, starts(first, spread, grid, generator))
    if best is None:
        return "undefined everywhere"
    # Starts miss minima that differ in one bandwidth, so each valley along a line through the best point is a new
    # start, as long as that finds something better.
    for _ in range(MOST_ROUNDS if len(lines) <= MOST_TRIED_ONE_BY_ONE else ROUNDS_OF_MANY):
        found = _best_from(first, _valleys_around(first, best.end, lines))
        if found is None or found.end.penalised >= best.end.penalised * (1.0 - SECOND_TOLERANCE):
            break
        best = found
    best = descend(first, best, TOLERANCE)
    if options.kernel.is_compact:
        best = descend_without_slopes(first, best)
    best = flatten(first, best)
    if options.ridge is None:
        best = flatten(first, find_ridge(first, best))
    first.confirm(best.end)
    if first is last:
        return best.reason
    sizes = sizes_between(len(first.rows.X), len(last.rows.X))
    objectives[1:-1] = [objective_of(last.rows.draw(size, generator)) for size in sizes]
    for fewer, objective in pairwise(objectives):
        objective.ridge = first.ridge
        is_last = objective is last
        tolerance = TOLERANCE_ON_ALL if is_last else TOLERANCE_BETWEEN
        enough = ENOUGH_ON_ALL if is_last else ENOUGH_ON_MOST if objective is objectives[-2] else ENOUGH_ON_FEW
        start = objective.evaluate(objective.expected_minimum(fewer, best.end.theta, options.degree))
        best = replace(best, end=start)
        best = descend(objective, best, tolerance, max_steps=STEPS_ON_MANY_ROWS, enough=enough)
        if is_last:
            best = flatten(objective, best, tolerance, enough)
        objective.confirm(best.end)
    return f"{best.reason}, from the best of {len(objectives[-2].rows.X)} rows"


def _best_from(objective: Objective, from_starts: Iterable[Evaluation]) -> GaussNewton | None:
    """Descend from all starts and return the best result; None if the criterion is finite at none of them."""
    # Criterion, end and curvature alone: evaluations hold large arrays.
    begun: list[tuple[float, Array, Array | None]] = []
    for start in from_starts:
        if np.isfinite(start.penalised):
            one = descend(objective, GaussNewton(start), FIRST_TOLERANCE, max_steps=FIRST_STEPS)
            begun.append((one.end.penalised, one.end.theta, one.curvature))
    finalists: list[tuple[Array, Array | None]] = []
    for _, theta, curvature in sorted(begun, key=itemgetter(0)):
        if all(np.abs(theta - other).max() > 0.05 for other, _ in finalists):
            finalists.append((theta, curvature))
    best: GaussNewton | None = None
    for theta, curvature in finalists[: FINALISTS if len(objective.box[0]) <= MOST_TRIED_ONE_BY_ONE else 1]:
        found = descend(objective, GaussNewton(objective.evaluate(theta), "", curvature), SECOND_TOLERANCE)
        best = found if best is None or found.end.penalised < best.end.penalised else best
    return best


def _valleys_around(objective: Objective, at: Evaluation, lines: list[Array]) -> Iterator[Evaluation]:
    """Yield the local minima, other than the point itself, along the line of each bandwidth through a point."""
    for a in range(len(lines)) if len(lines) <= MOST_TRIED_ONE_BY_ONE else promising(objective, at):
        thetas = np.tile(at.theta, (len(lines[a]), 1))
        thetas[:, a] = lines[a]
        here = int(np.searchsorted(lines[a], at.theta[a]))
        left, right = (map(objective.evaluate, part) for part in (thetas[:here], thetas[here:]))
        yield from (point for point in valleys_of(chain(left, [at], right)) if point is not at)


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
    if not 0 < len(free) <= MOST_TRIED_ONE_BY_ONE:
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


def sizes_between(few: int, all_rows: int) -> list[int]:
    """Return increasing sample sizes between a first sample and all rows.

    Parameters
    ----------
    few, all_rows : int
        The first and the last number, neither of them part of the result.

    Returns
    -------
    list of int
        Each three times the one before, the last at most half of all.

    Examples
    --------
    >>> sizes_between(1024, 20_000)
    [3072, 9216]
    """
    sizes, size = [], few * GROWTH
    while 2 * size <= all_rows:
        sizes.append(size)
        size *= GROWTH
    return sizes


RIDGES = (0.03, 0.3, 3.0)  # keys at the query, to start from
SMALLEST_RIDGE, LARGEST_RIDGE = 1e-4, 1e3
FIRST_STEPS_OF_RIDGE, STEPS_OF_RIDGE = 12, 60
FIRST_TOLERANCE_OF_RIDGE, TOLERANCE_OF_RIDGE = 1e-4, 1e-9


def find_ridge(objective: Objective, descent: GaussNewton) -> GaussNewton:
    """Minimise a criterion over bandwidths and ridge together, from bandwidths that were found at a fixed ridge.

    Parameters
    ----------
    objective : Objective
        Criterion of local linear fits; its ridge is set to the one found.
    descent : GaussNewton
        Result of a descent at a fixed ridge.

    Returns
    -------
    GaussNewton
        The bandwidths and smoothings that are best with the ridge found.
    """
    unit = objective.rows.unit
    ends = (np.log(SMALLEST_RIDGE * unit), np.log(LARGEST_RIDGE * unit), np.inf)
    low, high, flat = (np.append(bounds, end) for bounds, end in zip(objective.box, ends, strict=True))
    box = (low, high, flat)
    begun: list[GaussNewton] = []
    for ridge in RIDGES:
        start = objective.evaluate(np.append(descent.end.theta, np.log(ridge * unit)))
        if np.isfinite(start.penalised):
            one = GaussNewton(start)
            one = descend(objective, one, FIRST_TOLERANCE_OF_RIDGE, max_steps=FIRST_STEPS_OF_RIDGE, box=box)
            begun.append(one)
    best = min(begun, key=attrgetter("end.penalised"))
    end = descend(objective, best, TOLERANCE_OF_RIDGE, max_steps=STEPS_OF_RIDGE, box=box).end
    objective.ridge = end.ridge
    return replace(descent, end=replace(end, theta=end.theta[:-1]))
