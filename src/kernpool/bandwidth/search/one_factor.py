"""Search for one factor common to all bandwidths: a grid, whose valleys are refined by Brent's method.

The grid (`candidates` in `setup.py`) reaches from the narrowest windows to ten diameters of the data, so the minimum is
the global one on that interval up to the resolution of the grid. With many rows the grid runs on a sample, and its best
factor is refined on all rows.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from kernpool._arrays import Array
from kernpool.bandwidth.rules_of_thumb import rate_factor
from kernpool.bandwidth.search.objective import SearchObjective
from kernpool.bandwidth.search.setup import SearchOptions, candidates

# Minima on the grid that are higher than the lowest by more than this are not refined: between neighbours on the grid
# criteria change less (336 fits end at the same bandwidth).
PROMISING = 1.25
MANY_ROWS = 500  # whose means by a smooth kernel need a third of the grid
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
    grid = np.log(candidates(first.rows, spread, options, np.exp(first.box[0])))
    penalised = along(first, spread)
    smooth = not options.degree or options.objective is not None
    if smooth and not options.kernel.is_compact and len(first.rows.X) >= MANY_ROWS:
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
    factor, least = np.exp(first.best.theta[0]) / spread[0] * rate, float(objective.box[0][0] - np.log(spread[0]))
    minimise_near(objective, spread, factor, least=least)
    objective.confirm(objective.best)
    return f"the best of a grid on {len(first.rows.X)} rows, refined on all"


def minimise_near(
    objective: Any,
    spread: Array,
    factor: float,
    *,
    least: float = -np.inf,
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
    least : float, default=-inf
        Smallest log factor.
    tolerance : float, default=1e-8
        End where an evaluation promises to lower the criterion by less than this fraction of it.
    max_evaluations : int, default=40
        Evaluations at most.
    """
    penalised = along(objective, spread)
    logs = [max(np.log(factor), least + STRIDE) + step for step in (-STRIDE, 0.0, STRIDE)]
    values = [penalised(point) for point in logs]
    while len(logs) < max_evaluations:
        best = int(np.argmin(values))
        if 0 < best < len(logs) - 1:
            place, promised = _predicted_minimum(logs, values, best)
            if promised <= tolerance * values[best]:
                break
        else:
            place = max(logs[best] + (STRIDE if best else -STRIDE), least)
            if place == logs[best]:
                break
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
    powers = np.linalg.solve(distance[:, None] ** np.arange(1, len(others) + 1), height)
    slope, half_bend, third = np.append(powers, 0.0)[:3]
    step, (low, high), promised = np.inf, distance[:2], np.inf
    if half_bend > 0:  # the root of the derivative that is a minimum
        step = -slope / (half_bend + np.sqrt(max(half_bend**2 - 3.0 * third * slope, 0.0)))
    if 0.9 * low <= step <= 0.9 * high:
        promised = half_bend * (step**2 + np.prod(distance) ** 2)
    if not np.isfinite(promised) or abs(step) < NARROWEST:  # a kink, or noise
        step = 0.5 * (high if high > -low else low)
        promised = min(promised, np.inf if high - low > NARROWEST else 0.0)
    return float(b + step), float(promised)


def valleys_on_grid(logs: Array, values: Array, most: int) -> list[tuple[float, float]]:
    """Return the intervals of log factors around the lowest local minima of a criterion on a grid, so many at most."""
    beside, ends = np.pad(values, 1, constant_values=np.inf), np.pad(logs, 1, mode="edge")
    highest = min(PROMISING * values.min(), 0.5 * UNDEFINED)
    lowest = (values <= beside[:-2]) & (values <= beside[2:]) & (values <= highest)
    best = np.flatnonzero(lowest)[np.argsort(values[lowest], kind="stable")][:most]
    return list(zip(ends[best], ends[best + 2], strict=True)) if len(logs) > 1 else []


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


def along(objective: Any, spread: Array) -> Callable[[float], float]:
    """Return the criterion as a function of the logarithm of a factor common to all bandwidths."""

    def penalised(log_factor: float) -> float:
        value = float(objective.evaluate(np.log(spread) + log_factor).penalised)
        return value if np.isfinite(value) else UNDEFINED

    return penalised
