"""One common factor on the spreads of the columns: the global minimum of a criterion on a stated interval."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.objective import Objective, Tried
from kernpool.bandwidth.quick_path import QuickPath
from kernpool.kernels import Kernel

Array = NDArray[np.float64]

GRID_SIZE = 64
FINE_GRID_SIZE, FINE_GRID_ROWS = 256, 1000  # for compact kernels, whose error has kinks
STEP_ROWS = 64  # for the boxcar: up to 2016 distances, each tried
REFINED_MINIMA = 3
TOLERANCE = 1e-7  # in log h
UNDEFINED = 1e100  # instead of infinity, whose differences are not numbers
# On all rows of a large problem, where an evaluation takes as long as sorting twice, by parabolas. Minima are flat: at
# this tolerance the criterion is right to 1e-6 of its curvature, far below the standard error of the minimiser.
LARGE_TOLERANCE, STRIDE, MOST_EVALUATIONS = 2e-3, 0.2, 40


def candidates(scaled: Array, kernel: Kernel, composition: str) -> Array:
    """Return factors from a tenth of a typical distance of nearest neighbours to ten diameters, increasing.

    Below, a Gaussian window holds one row and nothing changes; above, all rows weigh the same.

    Parameters
    ----------
    scaled : ndarray of shape (n, d)
        Rows in units of the spreads of their columns.
    kernel, composition
        As in `pool`.

    Returns
    -------
    ndarray of shape (k,)
        Equally spaced in logarithm; for the boxcar on few rows one for every step of its error.
    """
    from scipy.spatial import KDTree
    from scipy.spatial.distance import pdist

    points = np.unique(scaled, axis=0)
    diameter = float(np.linalg.norm(points.max(axis=0) - points.min(axis=0)))
    if diameter == 0:  # all rows at one place: every bandwidth gives the mean
        return np.array([0.5, 1.0, 2.0])
    if kernel.name == "boxcar" and len(points) <= STEP_ROWS:
        # The error is a step function of h, which changes where h passes a distance: one candidate per step.
        steps = np.unique(pdist(points, "chebyshev" if composition == "product" else "euclidean"))
        return np.concatenate([[0.5 * steps[0]], np.sqrt(steps[:-1] * steps[1:]), [2.0 * steps[-1]]])
    nearest = KDTree(points).query(points, k=2)[0][:, 1]
    size = FINE_GRID_SIZE if kernel.is_compact and len(points) <= FINE_GRID_ROWS else GRID_SIZE
    low = 0.1 * float(np.quantile(nearest, 0.1))
    grid: Array = np.exp(np.linspace(np.log(low), np.log(10.0 * diameter), size))
    return grid


def scan(objective: Objective, spread: Array, grid: Array) -> Array:
    """Evaluate a grid of factors.

    Parameters
    ----------
    objective : Objective
        Of log bandwidths.
    spread : ndarray of shape (d,)
        Bandwidths at the factor one.
    grid : ndarray of shape (k,)
        Factors, increasing.

    Returns
    -------
    ndarray of shape (k,)
        The penalised mean of squares at each.
    """
    return np.array([_penalised(objective, np.log(spread), float(np.log(factor))) for factor in grid])


def minimise(objective: Objective, spread: Array, grid: Array) -> None:
    """Evaluate a grid of factors, and refine its best local minima by Brent's method; `objective.tried` has it all.

    Parameters
    ----------
    objective, spread, grid
        As in `scan`.
    """
    penalised = partial(_penalised, objective, np.log(spread))
    for low, high in _valleys(np.log(grid), scan(objective, spread, grid)):
        _bounded(penalised, low, high, TOLERANCE)


def minimise_quickly(objective: Objective, spread: Array, grid: Array) -> None:
    """Do as `minimise`, by way of a quick path; the engine has the last word on the best of each valley.

    Parameters
    ----------
    objective, spread, grid
        As in `minimise`, of a problem that `QuickPath` can do.
    """
    path, logs, shift = QuickPath(objective), np.log(grid), float(np.log(spread[0]))
    seen: list[Tried] = []

    def penalised(log_factor: float) -> float:
        seen.append(path(shift + log_factor))
        if objective.progress is not None:
            objective.progress(len(objective.rows.X), len(objective.rows.X))
        return min(seen[-1].penalised, UNDEFINED)

    ends = []
    for low, high in _valleys(logs, np.array([penalised(point) for point in logs])):
        before = len(seen)
        _bounded(penalised, low, high, TOLERANCE)
        ends.append(min(seen[before:], key=lambda one: one.penalised).theta)
    exact = [objective.evaluate(theta).penalised for theta in ends or [shift + logs[-1:]]]
    # What is within rounding of the best must not be taken for better.
    objective.tried[:0] = [one._replace(penalised=max(one.penalised, np.nextafter(min(exact), np.inf))) for one in seen]


def minimise_near(objective: Objective, spread: Array, factor: float) -> None:
    """Refine a factor that was found on fewer rows.

    Parameters
    ----------
    objective : Objective
        Of all rows.
    spread : ndarray of shape (d,)
        Bandwidths at the factor one.
    factor : float
        Where the minimum is expected.
    """
    penalised = partial(_penalised, objective, np.log(spread))
    logs = [np.log(factor) + step for step in (-STRIDE, 0.0, STRIDE)]
    values = [penalised(point) for point in logs]
    while len(logs) < MOST_EVALUATIONS:
        best = int(np.argmin(values))
        if 0 < best < len(logs) - 1:
            place = _vertex(logs[best - 1 : best + 2], values[best - 1 : best + 2])
            if min(abs(place - known) for known in logs) < LARGE_TOLERANCE:
                break
        else:
            place = logs[best] + (STRIDE if best else -STRIDE)
        where = int(np.searchsorted(logs, place))
        logs.insert(where, place)
        values.insert(where, penalised(place))


def _vertex(logs: list[float], values: list[float]) -> float:
    """Return where a parabola through three points is smallest, of which the middle one is the lowest."""
    (a, b, c), (fa, fb, fc) = logs, values
    left, right = (b - a) * (fb - fc), (b - c) * (fb - fa)
    return b - 0.5 * ((b - a) * left - (b - c) * right) / (left - right) if left != right else b


def _valleys(logs: Array, values: Array) -> list[tuple[float, float]]:
    """Return the neighbours on the grid of its best local minima."""
    padded = np.concatenate([[np.inf], values, [np.inf]])
    minima = np.flatnonzero((values <= padded[:-2]) & (values <= padded[2:]) & (values < UNDEFINED))
    best = minima[np.argsort(values[minima], kind="stable")][:REFINED_MINIMA]
    return [(float(logs[max(i - 1, 0)]), float(logs[min(i + 1, len(logs) - 1)])) for i in best]


def _penalised(objective: Objective, log_spread: Array, log_factor: float) -> float:
    penalised = objective.evaluate(log_spread + log_factor).penalised
    return penalised if np.isfinite(penalised) else UNDEFINED


def _bounded(function: Callable[[float], float], low: float, high: float, tolerance: float) -> float:
    from scipy.optimize import minimize_scalar

    return float(minimize_scalar(function, bounds=(low, high), method="bounded", options={"xatol": tolerance}).x)
