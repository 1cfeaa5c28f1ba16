"""Conditional distribution functions, densities and quantiles smoothed in y by a normal kernel.

With the kernel weights alpha_j(q), values v_j and a bandwidth h_y in y::

    F(y | q) = sum_j alpha_j(q) Phi((y - v_j) / h_y),    f(y | q) = sum_j alpha_j(q) phi((y - v_j) / h_y) / h_y

Thresholds common to all queries are columns of values, which are pooled; others are sums over all pairs.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from kernpool._arrays import Array, Flags, Index
from kernpool.core import Problem
from kernpool.distribution.weighted_quantile import bare, known_quantiles, sum_over_pairs
from kernpool.pooling import Recipe, sum_problem

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
) -> tuple[Array, Flags]:
    """Return a distribution function or density smoothed in y, and which queries have a key of positive weight."""
    # Common thresholds are pooled as columns of smoothed values; others, and centers, need all pairs: O(m n t).
    profile = normal_density if density else ndtr
    if len(threshold) == 1 and center is None:
        found, occupied = _pooled(recipe, problem, value, threshold[0], width, profile)
    else:
        found, occupied = _by_pairs(recipe, problem, value, threshold, width, density, center)
    return (found / width if density else np.clip(found, 0.0, 1.0)), occupied


def _pooled(
    recipe: Recipe, problem: Problem, value: Array, threshold: Array, width: float, profile: Profile
) -> tuple[Array, Flags]:
    """Compute functions smoothed in y at thresholds common to all queries, by pooling one column per threshold."""
    found, occupied = np.full((len(problem.query), len(threshold)), np.nan), np.zeros(len(problem.query), dtype=bool)
    at_once = max(1, COLUMN_NUMBERS // len(value))
    for start in range(0, len(threshold), at_once):
        some = slice(start, start + at_once)
        column = profile((threshold[some] - value[:, None]) / width)
        # A constant column has to be zero, for algorithms that work in units of its range.
        first = column[0] * (np.ptp(column, axis=0) == 0)
        part = replace(bare(problem), value=column - first, value_center=np.zeros(column.shape[1]))
        if part.key_weight is not None and not part.key_weight.any():
            break
        state = sum_problem(part, recipe, auxiliary=True)
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
) -> tuple[Array, Flags]:
    """Compute functions smoothed in y at thresholds that differ between queries, by sums over all pairs."""
    m, t = len(problem.query), threshold.shape[1]
    away = np.broadcast_to(threshold, (m, t)) - (0.0 if center is None else center[:, None])
    found = np.full((m, t), np.nan)

    profile = normal_density if density else ndtr

    def visit(arguments: tuple[Any, ...], rows: Index, sums: Array) -> None:
        from kernpool.algorithms.brute.fused import read_only  # with code that loads Numba
        from kernpool.distribution.loops.ordered_values import smooth_block

        loop: Any = smooth_block
        loop(*arguments, read_only(value), read_only(away[rows]), float(width), density, sums)

    def table(share: Array, rows: Index) -> Array:
        columns = away[rows].T
        return np.stack([np.einsum("ij,ij->i", share, profile((y[:, None] - value) / width)) for y in columns], axis=1)

    occupied = sum_over_pairs(recipe, problem, found, visit, table)
    return found, occupied


def known_smooth_quantiles(
    recipe: Recipe, problem: Problem, value: Array, level: Array, width: float
) -> tuple[Array, Flags]:
    """Return quantiles of distribution functions smoothed in y, and which queries have a key of positive weight."""
    # Newton steps, safeguarded by a bracket that is halved; about eight passes over all pairs per quantile order.
    found = np.full((len(problem.query), len(level)), np.nan)
    start, occupied = known_quantiles(recipe, problem, value[:, None], level)
    some = np.flatnonzero(occupied)
    found[some] = np.where(level > 0.5, np.inf, -np.inf)
    for number in np.flatnonzero((level > 0.0) & (level < 1.0)):
        # Negligible weights do not bound quantiles, but are included in the sums.
        normal = width * float(ndtri(level[number]))
        low, high = (np.full(len(some), end + normal) for end in (value.min(), value.max()))
        function = partial(_excess, recipe, problem.block(some), value, width, float(level[number]))
        found[some, number] = _solved(function, width, (low, start[some, 0, number], high))
    return found, occupied


def _excess(
    recipe: Recipe, problem: Problem, value: Array, width: float, level: float, which: Index, here: Array
) -> tuple[Array, Array]:
    """Return the smoothed distribution function minus a quantile order, and its density, at one value per query."""
    part = problem.block(which)
    share, slope = (
        known_smooth(recipe, part, value, here[:, None], width, density=density)[0][:, 0] for density in (False, True)
    )
    return share - level, slope


def _solved(
    function: Callable[[Index, Array], tuple[Array, Array]], width: float, bracket: tuple[Array, Array, Array]
) -> Array:
    """Return the root of a function for each query within its bracket, by safeguarded Newton steps."""
    # `bracket` holds the lower ends, the starts and the upper ends
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
        with np.errstate(over="ignore"):  # of a density close to zero: then the bracket is halved
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
