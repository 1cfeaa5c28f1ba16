r"""How well a conditional distribution foretold a value: the probability integral transform and the CRPS.

.. math:: \mathrm{CRPS}(F, y) = \int \big(F(z) - 1\{y \le z\}\big)^2 dz
          = \mathrm E|Y - y| - \tfrac12 \mathrm E|Y - Y'|

with Y and Y' independent draws from F. Between two values F is constant, so that the integral is a sum of squares times
gaps: nothing is taken from anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.problem import Problem
from kernpool.distribution.below import shares_below
from kernpool.distribution.pairs import look_through, tables_of
from kernpool.distribution.settled import ranks
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]

Index = NDArray[np.intp]


def known_pit(
    recipe: Recipe,
    problem: Problem,
    value: Array,
    y: Array,
    uniform: Array,
    center: Array | None = None,
    dtype: Any = np.float64,
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the probability integral transform of one value per query, and which windows are not empty.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        Whose weights.
    value : ndarray of shape (n,)
        What they are of.
    y : ndarray of shape (m,)
        One value per query.
    uniform : ndarray of shape (m,)
        Between 0 and 1: which part of the weight of values equal to y is below it.
    center, dtype
        As of `known_cdf`.

    Returns
    -------
    found : ndarray of shape (m,)
        ``F(y-) + uniform (F(y) - F(y-))``; NaN where the window is empty.
    occupied : ndarray of bool, shape (m,)
        Which are not.
    """
    order = np.argsort(value, kind="stable")
    low, high = (ranks(value[order], y[:, None], center, dtype, side) for side in ("left", "right"))
    found, occupied = shares_below(recipe, problem, order, low)
    (tied,) = np.nonzero((high > low)[:, 0])
    if tied.size:
        upper = shares_below(recipe, problem.block(tied), order, high[tied])[0]
        found[tied] += uniform[tied, None] * np.maximum(upper - found[tied], 0.0)
    return found[:, 0], occupied


def known_crps(
    recipe: Recipe, problem: Problem, value: Array, y: Array, center: Array | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the continuous ranked probability score of one value per query, and which windows are not empty.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        Whose weights.
    value : ndarray of shape (n,)
        What they are of.
    y : ndarray of shape (m,)
        One value per query.
    center : ndarray of shape (m,), optional
        What is added to the values at each query.

    Returns
    -------
    found : ndarray of shape (m,)
        In units of y; NaN where the window is empty.
    occupied : ndarray of bool, shape (m,)
        Which are not.

    Notes
    -----
    In compiled loops over all pairs, some nanoseconds each; by tables for masks of numbers, groups, kernels of the
    user's own and queries that are far from all keys.
    """
    away = y if center is None else y - center
    order = np.argsort(value, kind="stable")
    ordered, values = problem.block(slice(None), order), value[order]
    rank = np.searchsorted(values, away, side="right")
    found = np.full(len(y), np.nan)

    def look(arguments: tuple[Any, ...], rows: Index) -> None:
        from kernpool.algorithms.brute.precision import read_only  # with what loads Numba
        from kernpool.distribution.loops.foretold import score_block

        scores = np.empty(len(rows))
        loop: Any = score_block
        loop(*arguments, *(read_only(array) for array in (values, away[rows], rank[rows])), scores)
        found[rows] = scores

    rest, occupied = look_through(recipe, ordered, look)
    for here, share in tables_of(ordered, rest, occupied):
        found[here] = _scores(share, values, away[here], rank[here])
    return found, occupied


def _scores(share: Array, values: Array, away: Array, rank: Index) -> Array:
    """Return the integrals of the squares of distribution functions less steps, from a table."""
    below = np.cumsum(share, axis=1)[:, :-1]
    above = np.cumsum(share[:, ::-1], axis=1)[:, -2::-1]
    # The gap that holds y is cut in two; values beyond y are short of it, and y may be beyond all of them.
    side = np.where(np.arange(len(values) - 1) < rank[:, None] - 1, below, above) ** 2
    inside = np.flatnonzero((rank > 0) & (rank < len(values)))
    split = rank[inside] - 1
    side[inside, split] = 0.0
    score: Array = side @ np.diff(values)
    score[inside] += below[inside, split] ** 2 * (away[inside] - values[split])
    score[inside] += above[inside, split] ** 2 * (values[split + 1] - away[inside])
    score += np.maximum(values[0] - away, 0.0) + np.maximum(away - values[-1], 0.0)
    return score
