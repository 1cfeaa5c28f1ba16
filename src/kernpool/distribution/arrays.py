"""Quantiles of a problem: of values in memory, each column in its order, with what empty windows get."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.distribution.line import narrow
from kernpool.distribution.places import Sums
from kernpool.execution.progress import Progress
from kernpool.pooling.limits import limit_problem
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]


def quantiles(recipe: Recipe, problem: Problem, value: Array, level: Array, progress: Progress | None = None) -> Array:
    """Return the quantiles of a problem, with empty windows as the recipe says.

    Parameters
    ----------
    recipe : Recipe
        How to sum, and what empty windows get.
    problem : Problem
        Whose weights.
    value : ndarray of shape (n, c)
        The values as they came.
    level : ndarray of shape (l,) or (m, l)
        The same for all queries, or each its own.
    progress : callable, optional
        As in `pool_quantile`.

    Returns
    -------
    ndarray of shape (m, c, l)
        Values.
    """
    found, occupied = known_quantiles(recipe, problem, value, level, progress)
    return with_limits(recipe, problem, value, level, found, occupied)


def with_limits(
    recipe: Recipe, problem: Problem, value: Array, level: Array, found: Array, occupied: NDArray[np.bool_]
) -> Array:
    """Return quantiles of shape (m, c, l) in which empty windows have what the recipe says; parameters as above."""

    def fill(rows: NDArray[np.intp]) -> Array:
        limit = limit_problem(problem.block(rows), recipe.empty)
        some = level if level.ndim == 1 else level[rows]
        return known_quantiles(recipe, limit, value, some)[0].reshape(len(rows), -1)

    return recipe.fill_empty(found.reshape(len(found), -1), occupied, fill).reshape(found.shape)


def known_quantiles(
    recipe: Recipe, problem: Problem, value: Array, level: Array, progress: Progress | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Return quantiles of shape (m, c, l), NaN where windows are empty, and which are not; parameters as above."""
    m, c = len(problem.query), value.shape[1]
    level = np.broadcast_to(level, (m, level.shape[-1]))
    sums, total = Sums.of(problem, recipe), max(1, m * level.shape[1] * c)
    found, occupied = np.full((m, c, level.shape[1]), np.nan), np.zeros(m, dtype=bool)
    for number, column in enumerate(value.T):

        def report(done: int, before: int = number * total // c) -> None:
            if progress is not None:
                progress(min(before + done, total - 1), total)

        for rows, place in sums.each(narrow(np.argsort(column, kind="stable")), level, report):
            found[rows, number], occupied[rows] = column[place], True
    if progress is not None:
        progress(total, total)
    return found, occupied
