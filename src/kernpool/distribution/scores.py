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
from kernpool.distribution.arrays import known_quantiles
from kernpool.distribution.below import shares_below
from kernpool.distribution.settled import ranks
from kernpool.pooling.recipe import Recipe
from kernpool.pooling.weights import weight_rows

Array = NDArray[np.float64]

MOST_PAIRS = 1 << 30  # whose weights are looked at one by one: half a minute
LEVELS = (np.arange(99) + 0.5) / 99  # of pinball losses beyond


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
    Exact up to 2**30 pairs. Beyond, twice the mean pinball loss of 99 quantiles, which is a proper score too.
    """
    away = y if center is None else y - center
    if problem.shape[0] * problem.shape[1] > MOST_PAIRS:
        return _by_quantiles(recipe, problem, value, away)
    found, occupied = np.full(len(y), np.nan), np.zeros(len(y), dtype=bool)
    order = np.argsort(value, kind="stable")
    values = value[order]
    gap, places = np.diff(values), np.arange(len(values) - 1)
    for rows, share in weight_rows(problem.block(slice(None), order)):
        here = share.any(axis=1)
        occupied[rows] = here
        at, share = away[rows][here], share[here]
        rank = np.searchsorted(values, at, side="right")
        below = np.cumsum(share, axis=1)[:, :-1]
        above = np.cumsum(share[:, ::-1], axis=1)[:, -2::-1]
        # The gap that holds y is cut in two; values beyond y are short of it, and y may be beyond all of them.
        side = np.where(places < rank[:, None] - 1, below, above) ** 2
        inside = np.flatnonzero((rank > 0) & (rank < len(values)))
        split = rank[inside] - 1
        side[inside, split] = 0.0
        score = side @ gap
        score[inside] += below[inside, split] ** 2 * (at[inside] - values[split])
        score[inside] += above[inside, split] ** 2 * (values[split + 1] - at[inside])
        score += np.maximum(values[0] - at, 0.0) + np.maximum(at - values[-1], 0.0)
        found[np.arange(len(y))[rows][here]] = score
    return found, occupied


def _by_quantiles(recipe: Recipe, problem: Problem, value: Array, y: Array) -> tuple[Array, NDArray[np.bool_]]:
    quantile, occupied = known_quantiles(recipe, problem, value[:, None], LEVELS)
    short = y[:, None] - quantile[:, 0]
    return 2 * np.mean(np.maximum(LEVELS * short, (LEVELS - 1) * short), axis=1), occupied
