"""Search for the number of neighbors to which windows reach, by leave-one-out or a penalised in-sample error.

There is one whole number to find, and no derivative by it. A grid of numbers, each at least 1.15 times the one before,
goes from the least that determines a fit to all other rows; then all whole numbers between the neighbours of the best
are tried, or, where these are many, the outer third with the larger criterion is dropped until few are left.

Each row is predicted from the others, in a window of the others: what a fit without the row would do. Of more than 5000
rows as many are drawn, by a fixed seed, and predicted from all others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.criteria import Criterion, leave_one_out
from kernpool.core import Problem
from kernpool.execution.warnings import warn_caller
from kernpool.pooling.recipe import Recipe, Sums, sum_problem
from kernpool.pooling.widths import least_neighbors, width_finder, with_widths

Array = NDArray[np.float64]

RATIO, MOST_STEPS = 1.15, 40  # of the grid
SCANNED, LAST = 64, 12  # numbers that are all tried, and that are left of more
MOST_ROWS = 5000  # that are predicted


def minimise_over_whole_numbers(
    criterion: Callable[[int], float], least: int, most: int, seconds: float | None = None
) -> int:
    """Find the whole number from `least` to `most` with the smallest criterion, as the docstring of the module says.

    Parameters
    ----------
    criterion : callable
        Function of one number.
    least, most : int
        Range, `least` at most `most`.
    seconds : float, optional
        After which the search stops, with a warning.

    Returns
    -------
    int
        The largest of those with the smallest criterion.

    Examples
    --------
    >>> minimise_over_whole_numbers(lambda k: (k - 1234) ** 2, 3, 10_000)
    1234
    """
    tried: dict[int, float] = {}
    start = time.perf_counter()

    def is_late() -> bool:
        return seconds is not None and bool(tried) and time.perf_counter() - start > seconds

    def best_of(numbers: Iterable[int]) -> int:
        """Try numbers and return the best, of equal ones the largest, among all that were tried."""
        for k in numbers:
            if k not in tried and not is_late():
                value = criterion(k)
                tried[k] = math.inf if math.isnan(value) else value
        return min(tried, key=lambda k: (tried[k], -k))

    ratio, grid = max(RATIO, (most / least) ** (1.0 / MOST_STEPS)), [least]
    if most - least <= SCANNED:
        grid = list(range(least, most + 1))
    while grid[-1] < most:
        grid.append(min(most, max(grid[-1] + 1, math.floor(grid[-1] * ratio))))
    place = grid.index(best_of(grid))
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    many = high - low > SCANNED
    while many and high - low > LAST and not is_late():
        left, right = low + (high - low) // 3, high - (high - low) // 3
        best_of([left, right])
        if tried.get(left, math.inf) < tried.get(right, math.inf):
            high = right
        else:
            low = left
    best = best_of(range(low, high + 1))
    if is_late():
        warn_caller(
            f"the search for k was stopped after {seconds:g} seconds, with {len(tried)} numbers tried; give "
            "search={'seconds': ...} more, or Nearest(k)"
        )
    return best


def search_neighbors(problem: Problem, criterion: Criterion, recipe: Recipe, seconds: float | None = None) -> int:
    """Find the number of neighbors by a criterion of the training rows.

    Parameters
    ----------
    problem : Problem
        The training rows as queries and as keys, each left out of its own fit if the criterion says so.
    criterion : Criterion
        Which error; of those with a penalty on degrees of freedom the fits are in-sample.
    recipe : Recipe
        Its algorithm, its threads and its ridge.
    seconds : float, optional
        After which the search stops, with a warning.

    Returns
    -------
    int
        Takes some sixty passes over the pairs.
    """
    n, total = len(problem.query), problem.total_weight * problem.weight_unit
    some = None
    if n > MOST_ROWS:
        some = np.sort(np.random.default_rng(0).permutation(n)[:MOST_ROWS])
        problem = problem.block(some)
    find = width_finder(problem)
    least = least_neighbors(problem.similarity.kernel, problem.key.shape[1], problem.degree)
    most = max(least, math.floor(total + 1e-9) - int(criterion.exclude_self))

    def value(k: int) -> float:
        widened = with_widths(problem, find(k))
        if criterion.exclude_self:
            ridge = recipe.ridge_weight(problem.key.shape[1])
            algorithm, n_jobs = recipe.algorithm, recipe.n_jobs
            return leave_one_out(widened, rows=some, algorithm=algorithm, n_jobs=n_jobs, ridge=ridge).error
        return _penalised(widened, criterion, recipe, total, some)

    return minimise_over_whole_numbers(value, least, most, seconds)


def _penalised(
    problem: Problem, criterion: Criterion, recipe: Recipe, total: float, rows: NDArray[np.intp] | None
) -> float:
    """Return the penalised mean square of in-sample residuals, from the trace of the hat matrix."""
    assert criterion.log_penalty is not None
    state = sum_problem(problem.without_center(), recipe)
    fit = Sums(state, problem.layout, problem.value_center).fit(recipe.ridge_weight(problem.key.shape[1]))
    which = slice(None) if rows is None else rows
    weight = np.ones(len(fit.base)) if problem.key_weight is None else problem.key_weight[which] * problem.weight_unit
    hat = np.exp(problem.similarity.log_peak - state.log_denominator) * fit.base
    residual = problem.value[which] + problem.value_center - fit.intercept
    trace = float(weight @ hat) * total / float(weight.sum())
    square = float(weight @ np.sum(residual**2, axis=1)) / float(weight.sum())
    penalty = criterion.log_penalty(trace, total)[0]
    return square * math.exp(penalty) if penalty < 700.0 else math.inf
