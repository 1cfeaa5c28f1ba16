r"""Conditional distributions that are smoothed in y: each value is a normal distribution around itself.

.. math:: F(y \mid q) = \sum_j \alpha_j(q)\, \Phi\Big(\frac{y - v_j}{h_y}\Big), \qquad
          f(y \mid q) = \sum_j \frac{\alpha_j(q)}{h_y}\, \varphi\Big(\frac{y - v_j}{h_y}\Big)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from kernpool.core.problem import Problem
from kernpool.distribution.arrays import known_quantiles
from kernpool.distribution.pairs import look_through, tables_of
from kernpool.pooling.choice import choose
from kernpool.pooling.plan import algorithm_within
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Profile = Callable[[Array], Array]

COLUMN_NUMBERS = 1 << 22  # in the columns of one pass
STEPS = 100  # of Newton or bisection; forty halvings and some
CLOSE = 4 * float(np.finfo(np.float64).eps)


def normal_density(u: Array) -> Array:
    """Return the density of the standard normal distribution."""
    return np.asarray(np.exp(-0.5 * u * u) / np.sqrt(2 * np.pi))


def known_smooth(
    recipe: Recipe,
    problem: Problem,
    value: Array,
    threshold: Array,
    width: float,
    *,
    density: bool = False,
    center: Array | None = None,
) -> tuple[Array, NDArray[np.bool_]]:
    """Return a smoothed distribution function or its density, NaN where windows are empty, and which are not.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        Whose weights.
    value : ndarray of shape (n,)
        What they are of.
    threshold : ndarray of shape (1, t) or (m, t)
        One row is for all queries.
    width : float
        The bandwidth in y.
    density : bool, default=False
        Whether the density is wanted.
    center : ndarray of shape (m,), optional
        What is added to the values at each query.

    Returns
    -------
    found : ndarray of shape (m, t)
        Sums of terms that are not negative, so small ones have all of their digits.
    occupied : ndarray of bool, shape (m,)
        Which windows are not empty.

    Notes
    -----
    Thresholds that all queries have in common are columns of values, which are pooled as any others. Else, and where
    centers make them differ, all pairs are looked at in compiled loops: O(m n t).
    """
    profile = normal_density if density else ndtr
    if len(threshold) == 1 and center is None:
        found, occupied = _pooled(recipe, problem, value, threshold[0], width, profile)
    else:
        found, occupied = _by_pairs(recipe, problem, value, threshold, width, density, center)
    return (found / width if density else np.clip(found, 0.0, 1.0)), occupied


def _pooled(
    recipe: Recipe, problem: Problem, value: Array, threshold: Array, width: float, profile: Profile
) -> tuple[Array, NDArray[np.bool_]]:
    """Pool columns, some thresholds at a time."""
    algorithm = algorithm_within(problem, recipe.algorithm)
    found, occupied = np.full((len(problem.query), len(threshold)), np.nan), np.zeros(len(problem.query), dtype=bool)
    at_once = max(1, COLUMN_NUMBERS // len(value))
    for start in range(0, len(threshold), at_once):
        some = slice(start, start + at_once)
        column = profile((threshold[some] - value[:, None]) / width)
        # A column that is constant has to be zero, for algorithms that count in its range.
        first = column[0] * (np.ptp(column, axis=0) == 0)
        part = replace(problem, value=column - first, value_center=np.zeros(column.shape[1]), degree=0)
        if part.key_weight is not None and not part.key_weight.any():
            break
        state = choose(part, algorithm, often=True).reduce(part, n_jobs=recipe.n_jobs)
        occupied = state.denominator > 0
        mean = state.numerator[occupied] / state.denominator[occupied, None]
        found[occupied, some] = np.maximum(mean, 0.0) + first
    return found, occupied


def _by_pairs(
    recipe: Recipe,
    problem: Problem,
    value: Array,
    threshold: Array,
    width: float,
    density: bool,
    center: Array | None,
) -> tuple[Array, NDArray[np.bool_]]:
    """Sum over all pairs: in compiled loops where there are some, else some queries at a time by tables."""
    m, t = len(problem.query), threshold.shape[1]
    away = np.broadcast_to(threshold, (m, t)) - (0.0 if center is None else center[:, None])
    found = np.full((m, t), np.nan)

    def look(arguments: tuple[Any, ...], rows: Index) -> None:
        from kernpool.algorithms.brute.precision import read_only  # with what loads Numba
        from kernpool.distribution.loops.foretold import smooth_block

        sums = np.empty((len(rows), t))
        loop: Any = smooth_block
        loop(*arguments, read_only(value), read_only(away[rows]), float(width), density, sums)
        found[rows] = sums

    rest, occupied = look_through(recipe, problem, look)
    profile = normal_density if density else ndtr
    for here, share in tables_of(problem, rest, occupied):
        for b in range(t):
            found[here, b] = np.einsum("ij,ij->i", share, profile((away[here, b, None] - value) / width))
    return found, occupied


def known_smooth_quantiles(
    recipe: Recipe, problem: Problem, value: Array, level: Array, width: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the inverse of the smoothed distribution function.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        Whose weights.
    value : ndarray of shape (n,)
        What they are of.
    level : ndarray of shape (l,)
        Between 0 and 1.
    width : float
        The bandwidth in y.

    Returns
    -------
    found : ndarray of shape (m, l)
        Minus infinity and infinity at the levels 0 and 1; NaN where windows are empty.
    occupied : ndarray of bool, shape (m,)
        Which windows are not empty.

    Notes
    -----
    Newton's steps on the distribution function, whose slope is the density, kept in a bracket that is halved where they
    would leave it or are slow. A value plus a normal error is at most the largest value plus that error, so quantiles
    lie between the least value and the largest, plus those of the error. They begin at the quantile of the values.
    About eight looks at all pairs per level.
    """
    found = np.full((len(problem.query), len(level)), np.nan)
    start, occupied = known_quantiles(recipe, problem, value[:, None], level)
    some = np.flatnonzero(occupied)
    found[some] = np.where(level > 0.5, np.inf, -np.inf)
    for number in np.flatnonzero((level > 0.0) & (level < 1.0)):
        # Weights that count for nothing beside all others are no ends of quantiles, but have a part in the sums.
        normal = width * float(ndtri(level[number]))
        low, high = (np.full(len(some), end + normal) for end in (value.min(), value.max()))
        function = partial(_excess, recipe, problem.block(some), value, width, float(level[number]))
        found[some, number] = _solved(function, width, (low, start[some, 0, number], high))
    return found, occupied


def _excess(
    recipe: Recipe, problem: Problem, value: Array, width: float, level: float, which: Index, here: Array
) -> tuple[Array, Array]:
    """Return the distribution function less a level, and the density, of some queries."""
    part = problem.block(which)
    share, slope = (
        known_smooth(recipe, part, value, here[:, None], width, density=density)[0][:, 0] for density in (False, True)
    )
    return share - level, slope


def _solved(
    function: Callable[[Index, Array], tuple[Array, Array]], width: float, bracket: tuple[Array, Array, Array]
) -> Array:
    """Solve for one level in some rows, between the ends of brackets, from the places in their middle."""
    low, start, high = bracket
    here = np.clip(start, low, high)
    last = high - low
    waiting = np.flatnonzero(high > low)
    for _ in range(STEPS):
        if not waiting.size:
            break
        excess, slope = function(waiting, here[waiting])
        high[waiting] = np.where(excess >= 0, here[waiting], high[waiting])
        low[waiting] = np.where(excess <= 0, here[waiting], low[waiting])
        with np.errstate(over="ignore"):  # of a density that is next to nothing: then the bracket is halved
            step = -np.divide(excess, slope, where=slope > 0, out=np.full(len(slope), np.inf))
        new = here[waiting] + step
        outside = ~((new > low[waiting]) & (new < high[waiting])) | (2 * np.abs(step) > np.abs(last[waiting]))
        new = np.where(outside, 0.5 * (low[waiting] + high[waiting]), new)
        new = np.where(excess == 0, here[waiting], new)
        last[waiting] = new - here[waiting]
        here[waiting] = new
        size = CLOSE * (np.abs(new) + width)
        waiting = waiting[(np.abs(last[waiting]) > size) & (excess != 0)]
    return here
