"""Conditional distribution functions, densities and quantiles smoothed in y by a normal kernel.

With the kernel weights alpha_j(q), values v_j and a bandwidth h_y in y::

    F(y | q) = sum_j alpha_j(q) Phi((y - v_j) / h_y),    f(y | q) = sum_j alpha_j(q) phi((y - v_j) / h_y) / h_y

`run_over_queries` runs the compiled loops over all pairs of a query and a key, without a table of weights;
`dense_weights_of` yields blocks of weights where there is no loop.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from kernpool.core.problem import Problem
from kernpool.distribution.weighted_quantile import FAR, LN_2, can_select, known_quantiles
from kernpool.execution.threads import resolve_n_jobs, run_blocks
from kernpool.pooling import Recipe, algorithm_within, choose, weight_rows

Array = NDArray[np.float64]
Index = NDArray[np.intp]

FEW_PAIRS = 100_000  # that tables handle before loops are loaded
PAIRS = 1 << 21  # of a block, which Ctrl-C waits for
# Receives the leading arguments of a loop and the indices of its queries.
Look = Callable[[tuple[Any, ...], Index], None]


def run_over_queries(recipe: Recipe, problem: Problem, look: Look) -> tuple[Index, NDArray[np.bool_]]:
    """Run a compiled loop over blocks of queries; return queries left over, and at which queries any key has weight.

    Parameters
    ----------
    recipe : Recipe
        Algorithm of the total weights, and number of threads.
    problem : Problem
        Queries and keys; its values are ignored.
    look : callable
        Calls the loop with the leading arguments that it is passed.

    Returns
    -------
    rest : ndarray of int
        Queries for which it was not called: too few pairs, no loop for the kernel, or too far from all keys for a
        common unit of all weights.
    occupied : ndarray of bool, shape (m,)
        Which windows are not empty; true for all queries in `rest`, which `dense_weights_of` updates.
    """
    m, n = problem.shape
    bare = replace(problem, value=np.zeros((n, 1)), value_center=np.zeros(1), degree=0)
    everyone = np.arange(m)
    if m * n <= FEW_PAIRS or not can_select(bare):
        return everyone, np.ones(m, dtype=bool)
    if bare.key_weight is not None and not bare.key_weight.any():
        return everyone[:0], np.zeros(m, dtype=bool)
    state = choose(bare, "auto", reuse=True).reduce(bare, n_jobs=recipe.n_jobs)
    occupied, unit, near = state.denominator > 0, np.zeros(m), state.denominator > 0
    if not bare.similarity.kernel.is_compact:
        mass = np.where(occupied, state.log_denominator, 0.0) - np.log(bare.weight_unit)
        near, unit = occupied & (np.abs(mass) < FAR), np.rint(mass / LN_2)
    rows = np.flatnonzero(near)
    arguments = _arguments(bare, unit)

    def work(block: slice) -> Iterator[None]:
        look(arguments(rows[block]), rows[block])
        yield

    at_once = max(1, PAIRS // n)
    blocks = [slice(i, min(i + at_once, len(rows))) for i in range(0, len(rows), at_once)]
    run_blocks(work, blocks, resolve_n_jobs(recipe.n_jobs), None)
    return np.flatnonzero(occupied & ~near), occupied


def dense_weights_of(problem: Problem, rest: Index, occupied: NDArray[np.bool_]) -> Iterator[tuple[Index, Array]]:
    """Yield dense weights, in batches, of the queries that no compiled loop handled, and update `occupied`.

    Parameters
    ----------
    problem : Problem
        The problem of all queries.
    rest, occupied
        Results of `run_over_queries`; `occupied` is updated for queries in `rest`.
    """
    for some, share in weight_rows(problem.block(rest)):
        rows = rest[some]
        occupied[rows] = share.any(axis=1)
        yield rows[occupied[rows]], share[occupied[rows]]


def _arguments(problem: Problem, unit: Array) -> Callable[[Index], tuple[Any, ...]]:
    from kernpool.algorithms.brute.matrix_products import read_only
    from kernpool.algorithms.brute.tiles import kernel_of  # with code that loads Numba

    code, tables = np.empty((0, len(problem.key)), dtype=np.int64), np.empty((0, 1, 1))
    if problem.factors is not None:
        code, tables = problem.factors.key_code.T, problem.factors.stacked_tables()
    key, key_weight = problem.key.T, np.empty(0) if problem.key_weight is None else problem.key_weight
    key, key_weight, code, tables = (read_only(array) for array in (key, key_weight, code, tables))
    how = kernel_of(problem)
    mask, own, own_weight = problem.attn_mask, problem.self_index, problem.own_weight

    def of(rows: Index) -> tuple[Any, ...]:
        levels = np.empty((len(rows), 0), dtype=np.int64)
        each = (
            np.empty((0, 0), dtype=bool) if mask is None else mask[rows],
            np.full(len(rows), -1) if own is None else own[rows],
            own_weight[rows],
            levels if problem.factors is None else problem.factors.query_code[rows],
        )
        masks = [read_only(array) for array in each]
        return read_only(problem.query[rows]), key, key_weight, *masks, code, tables, *how, read_only(unit[rows])

    return of


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
    """Return a distribution function or density smoothed in y, and which queries have a key of positive weight.

    It is NaN in empty windows.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        The problem with the weights.
    value : ndarray of shape (n,)
        Values that the weights apply to.
    threshold : ndarray of shape (1, t) or (m, t)
        A single row applies to all queries.
    width : float
        The bandwidth in y.
    density : bool, default=False
        Whether to return the density.
    center : ndarray of shape (m,), optional
        Added to the values at each query.

    Returns
    -------
    found : ndarray of shape (m, t)
        Sums of terms that are not negative, so small ones have all of their digits.
    occupied : ndarray of bool, shape (m,)
        Which windows are not empty.

    Notes
    -----
    Thresholds common to all queries give columns of smoothed values, which are pooled as usual. Otherwise, and where
    centers make thresholds differ, compiled loops visit all pairs: O(m n t).
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
    """Compute functions smoothed in y at thresholds common to all queries, by pooling one column per threshold.

    Thresholds are handled in batches.
    """
    algorithm = algorithm_within(problem, recipe.algorithm)
    found, occupied = np.full((len(problem.query), len(threshold)), np.nan), np.zeros(len(problem.query), dtype=bool)
    at_once = max(1, COLUMN_NUMBERS // len(value))
    for start in range(0, len(threshold), at_once):
        some = slice(start, start + at_once)
        column = profile((threshold[some] - value[:, None]) / width)
        # A constant column has to be zero, for algorithms that work in units of its range.
        first = column[0] * (np.ptp(column, axis=0) == 0)
        part = replace(problem, value=column - first, value_center=np.zeros(column.shape[1]), degree=0)
        if part.key_weight is not None and not part.key_weight.any():
            break
        state = choose(part, algorithm, reuse=True).reduce(part, n_jobs=recipe.n_jobs)
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
    """Compute functions smoothed in y at thresholds that differ between queries, by sums over all pairs.

    They run in compiled loops if possible, otherwise by tables for batches of queries.
    """
    m, t = len(problem.query), threshold.shape[1]
    away = np.broadcast_to(threshold, (m, t)) - (0.0 if center is None else center[:, None])
    found = np.full((m, t), np.nan)

    def look(arguments: tuple[Any, ...], rows: Index) -> None:
        from kernpool.algorithms.brute.matrix_products import read_only  # with code that loads Numba
        from kernpool.distribution.loops.ordered_values import smooth_block

        sums = np.empty((len(rows), t))
        loop: Any = smooth_block
        loop(*arguments, read_only(value), read_only(away[rows]), float(width), density, sums)
        found[rows] = sums

    rest, occupied = run_over_queries(recipe, problem, look)
    profile = normal_density if density else ndtr
    for here, share in dense_weights_of(problem, rest, occupied):
        for b in range(t):
            found[here, b] = np.einsum("ij,ij->i", share, profile((away[here, b, None] - value) / width))
    return found, occupied


def known_smooth_quantiles(
    recipe: Recipe, problem: Problem, value: Array, level: Array, width: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Return quantiles of distribution functions smoothed in y, and which queries have a key of positive weight.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        The problem with the weights.
    value : ndarray of shape (n,)
        Values that the weights apply to.
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
    Newton steps on the distribution function, whose derivative is the density, safeguarded by a bracket that is halved
    where a step would leave it or convergence is slow. Quantiles lie between the least and the largest value plus the
    quantile of the normal error, which gives the bracket. Steps start at the quantile of the values. About eight
    passes over all pairs per quantile order.
    """
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
    """Return the root of a function for each query within its bracket, by safeguarded Newton steps.

    The steps start from the second array of `bracket`, whose first and last are the ends.
    """
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
