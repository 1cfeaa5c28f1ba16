"""Search for bandwidths that are one common factor times the column spreads: a grid, refined by Brent's method.

The grid reaches from a tenth of a typical nearest-neighbour distance to ten diameters of the data, so the minimum
is the global one on that interval up to the resolution of the grid. With many rows the grid runs on a sample, and
its best factor is refined on all rows.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.rules_of_thumb import rate_factor
from kernpool.bandwidth.search.objective import Objective, SearchObjective
from kernpool.bandwidth.search.setup import SearchOptions

Array = NDArray[np.float64]

GRID_SIZE = 64
FINE_GRID_SIZE, FINE_GRID_ROWS = 256, 1000  # for compact kernels, whose error has kinks
STEP_ROWS = 64  # for the boxcar: up to 2016 distances, each tried
# Minima on the grid that are higher than the lowest by more than this are not refined: between neighbours on the grid
# criteria change less (336 fits end at the same bandwidth). Most are of windows of one or two rows, whose sums take
# twice as long as others.
PROMISING = 1.25
UNDEFINED = 1e100  # instead of infinity, whose differences are not numbers
# On all rows of a large problem, where an evaluation takes as long as sorting twice, by polynomials, until one promises
# to lower the criterion by less than this fraction of it, errors of its own included.
LARGE_TOLERANCE, STRIDE, MOST_EVALUATIONS = 1e-8, 0.2, 40
NARROWEST = 1e-6  # in log h: kinks and noise need no closer look


def search(objective: SearchObjective, first: SearchObjective, spread: Array, options: SearchOptions) -> str:
    """Minimise a criterion over one factor common to all bandwidths: on a grid, then by local refinement.

    Parameters
    ----------
    objective, first : SearchObjective
        Criteria of all rows, and of the rows that starts are tried on: the same, or a sample.
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

    grid = candidates(first.rows.X / first.rows.per_column(spread), options)
    first.starts = len(grid)
    logs, penalised = np.log(grid), partial(_penalised, first, np.log(spread))
    values = np.array([penalised(point) for point in logs])
    # Where the engine evaluates, and more rows follow, the grid is enough.
    if first is objective or type(first) is not Objective:
        for bounds in _valleys(logs, values, first.refined_minima):
            minimize_scalar(penalised, bounds=bounds, method="bounded", options={"xatol": first.tolerance})
        first.confirm(first.best)
    if first is objective:
        return "the best of a grid, refined" if len(grid) > 1 else "no column varies"
    rate = rate_factor(len(first.rows.X), len(objective.rows.X), len(spread), options.degree)
    minimise_near(objective, spread, np.exp(first.best.theta[0]) / spread[0] * rate)
    objective.confirm(objective.best)
    return f"the best of a grid on {len(first.rows.X)} rows, refined on all"


def candidates(scaled: Array, options: SearchOptions) -> Array:
    """Return a grid of common bandwidth factors, from well below the distances between rows to well above them.

    From a tenth of a typical nearest-neighbour distance to ten diameters of the data. Below, a Gaussian window holds
    one row and nothing changes; above, all rows weigh the same.

    Parameters
    ----------
    scaled : ndarray of shape (n, d)
        Rows in units of the spreads of their columns.
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

    points = np.unique(scaled, axis=0)
    diameter = float(np.linalg.norm(points.max(axis=0) - points.min(axis=0)))
    if diameter == 0:  # all rows at one point: every bandwidth gives the mean
        return np.ones(1)
    kernel = options.kernel
    if kernel.profile_name == "boxcar" and len(points) <= STEP_ROWS:
        # The error is a step function of h, which changes where h passes a distance: one candidate per step.
        steps = np.unique(pdist(points, "chebyshev" if kernel.composition == "product" else "euclidean"))
        return np.concatenate([[0.5 * steps[0]], np.sqrt(steps[:-1] * steps[1:]), [2.0 * steps[-1]]])
    nearest = KDTree(points).query(points, k=2)[0][:, 1]
    size = FINE_GRID_SIZE if kernel.is_compact and len(points) <= FINE_GRID_ROWS else GRID_SIZE
    low = 0.1 * float(np.quantile(nearest, 0.1))
    grid: Array = np.exp(np.linspace(np.log(low), np.log(10.0 * diameter), size))
    return grid


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


def _valleys(logs: Array, values: Array, most: int) -> list[tuple[float, float]]:
    """Return the intervals of log factors around the lowest local minima of a criterion on a grid, so many at most."""
    padded = np.concatenate([[np.inf], values, [np.inf]])
    lowest = (values <= padded[:-2]) & (values <= padded[2:]) & (values < UNDEFINED)
    minima = np.flatnonzero(lowest & (values <= PROMISING * values.min()))
    best = minima[np.argsort(values[minima], kind="stable")][:most]
    ends = [(float(logs[max(i - 1, 0)]), float(logs[min(i + 1, len(logs) - 1)])) for i in best]
    return [(low, high) for low, high in ends if low < high]


def _penalised(objective: Any, log_spread: Array, log_factor: float) -> float:
    penalised = objective.evaluate(log_spread + log_factor).penalised
    return penalised if np.isfinite(penalised) else UNDEFINED
