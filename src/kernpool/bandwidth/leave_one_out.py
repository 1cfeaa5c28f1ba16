"""Leave-one-out: how well each row is predicted from all the others, and the bandwidth that does it best.

Always a sum over ``j != i``. The shortcut through the diagonal of the hat matrix divides by ``1 - K(0)/D_i``, which
cancels near isolated rows and has false minima at tiny bandwidths.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.rules import column_spread
from kernpool.kernels import Kernel
from kernpool.plan import choose
from kernpool.pool import fill_empty
from kernpool.problem import Problem
from kernpool.progress import Progress

Array = NDArray[np.float64]

GRID_SIZE = 64
FINE_GRID_SIZE, FINE_GRID_ROWS = 256, 1000  # for compact kernels, whose error has kinks
STEP_ROWS = 64  # for the boxcar: up to 2016 distances, each tried
REFINED_MINIMA = 3
_EVALUATIONS_TO_REFINE = 40  # for the progress report only


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out predictions of the training rows.

    Parameters
    ----------
    prediction : ndarray of shape (n, c)
        Row i predicted from the other rows.
    error : float
        Weighted mean over rows of the squared error, summed over outputs.
    empty_windows : int
        Rows without a neighbour inside the kernel's support; they are predicted by the weighted mean of the others.
    """

    prediction: Array
    error: float
    empty_windows: int


@dataclass(frozen=True)
class BandwidthSearch:
    """Outcome of a search over one common factor on the column spreads.

    Parameters
    ----------
    bandwidth : ndarray of shape (d,)
        The best found.
    error : float
        Its leave-one-out error.
    empty_windows : int
        Rows with an empty leave-one-out window at this bandwidth.
    factor : float
        The common factor on the spreads of the columns.
    factors, errors : ndarray of shape (k,)
        Everything that was evaluated, by increasing factor.
    """

    bandwidth: Array
    error: float
    empty_windows: int
    factor: float
    factors: Array
    errors: Array


def leave_one_out(
    problem: Problem, *, algorithm: str = "auto", n_jobs: int | None = None, progress: Progress | None = None
) -> LeaveOneOut:
    r"""Predict every row from the others, and measure the error.

    .. math:: CV(h) = \sum_i w_i \lVert y_i - \hat y_{-i}(x_i) \rVert^2 \Big/ \sum_i w_i

    Parameters
    ----------
    problem : Problem
        With the training rows as queries and as keys, and ``exclude_self=True``.
    algorithm, n_jobs, progress
        As in `pool`.

    Returns
    -------
    LeaveOneOut
        Predictions, error and number of empty windows.

    Examples
    --------
    >>> import kernpool
    >>> x = [[0.0], [1.0], [2.0]]
    >>> problem = kernpool.Problem.from_arrays(x, x, [0.0, 3.0, 6.0], kernel="constant", exclude_self=True)
    >>> leave_one_out(problem).error
    13.5
    """
    state = choose(problem, algorithm).reduce(problem, n_jobs=n_jobs, progress=progress)
    prediction = state.finalize("mean", lambda rows: fill_empty(problem, rows, "mean", n_jobs))
    squared = np.sum((problem.value + problem.value_center - prediction) ** 2, axis=1)
    weight = problem.key_weight
    error = squared.mean() if weight is None else weight @ squared / weight.sum()
    return LeaveOneOut(prediction, float(error), int(np.count_nonzero(state.denominator == 0)))


def search_common_factor(
    X: Array,
    value: Array,
    weight: Array | None,
    *,
    kernel: Kernel,
    composition: str = "radial",
    algorithm: str = "auto",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> BandwidthSearch:
    """Find the global minimum of the leave-one-out error over one common factor on the spreads of the columns.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Inputs.
    value : ndarray of shape (n, c)
        Outputs.
    weight : ndarray of shape (n,) or None
        Frequencies.
    kernel, composition, algorithm, n_jobs
        As in `pool`.
    progress : callable, optional
        Called as ``progress(done, total)``, in queries over all evaluations expected.

    Returns
    -------
    BandwidthSearch
        The best bandwidth, its error, and the path of all evaluations.

    Notes
    -----
    The criterion has several local minima as a rule, and kinks or steps for compact kernels. So it is evaluated on a
    grid of 64 factors (256 for compact kernels on up to 1000 rows), equally spaced in logarithm, from a tenth of a
    typical distance between nearest neighbours (below it a Gaussian window holds one row and nothing changes) to ten
    times the diameter (above it all rows weigh the same). The best three local minima of the grid are then refined by
    Brent's method to 1e-7 in log h, and the best of all evaluations wins; of equal ones the largest bandwidth. About
    120 passes of O(n^2 d). A minimum narrower than the spacing of the grid can be missed; for the boxcar on up to 64
    rows, where the error is a step function, every step is tried and none can.
    """
    X, value, weight = _canonical(X, value, weight)
    spread = column_spread(X, weight)
    problem = Problem.from_arrays(
        X, X, value, kernel=kernel, bandwidth=spread, composition=composition, key_weight=weight, exclude_self=True
    )
    found: dict[float, LeaveOneOut] = {}

    def error(log_factor: float) -> float:
        factor = float(np.exp(log_factor))
        scaled = problem.with_kernel(kernel, factor)
        report = None if progress is None else partial(_report, progress, len(found), len(grid))
        result = leave_one_out(scaled, algorithm=algorithm, n_jobs=n_jobs, progress=report)
        found[factor] = replace(result, prediction=result.prediction[:0])  # n numbers per evaluation are not kept
        return result.error

    grid = np.log(_candidates(X / spread, kernel, composition))
    _refine(error, grid, np.array([error(point) for point in grid]))
    factors = np.array(sorted(found))
    errors = np.array([found[factor].error for factor in factors])
    best = float(factors[::-1][np.argmin(errors[::-1])])
    return BandwidthSearch(best * spread, found[best].error, found[best].empty_windows, best, factors, errors)


def _report(progress: Progress, before: int, grid_size: int, done: int, total: int) -> None:
    evaluations = max(before + 1, grid_size + _EVALUATIONS_TO_REFINE)
    progress(before * total + done, evaluations * total)


def _canonical(X: Array, value: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """Drop rows of weight zero, merge equal rows, fix the order: repeated and weighted rows become one problem."""
    weight = np.ones(len(X)) if weight is None else weight
    kept = weight > 0
    rows = np.hstack([X, value])[kept] + 0.0  # minus zero becomes zero
    rows, inverse = np.unique(rows, axis=0, return_inverse=True)
    d = X.shape[1]
    return rows[:, :d], rows[:, d:], np.bincount(inverse.ravel(), weights=weight[kept]).astype(np.float64)


def _candidates(scaled: Array, kernel: Kernel, composition: str) -> Array:
    """Return the factors of the grid, increasing."""
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


def _refine(error: Callable[[float], float], grid: Array, errors: Array) -> None:
    from scipy.optimize import minimize_scalar

    padded = np.concatenate([[np.inf], errors, [np.inf]])
    minima = np.flatnonzero((errors <= padded[:-2]) & (errors <= padded[2:]))
    for i in minima[np.argsort(errors[minima], kind="stable")][:REFINED_MINIMA]:
        bounds = grid[max(i - 1, 0)], grid[min(i + 1, len(grid) - 1)]
        minimize_scalar(error, bounds=bounds, method="bounded", options={"xatol": 1e-7})
