"""Conditional distribution functions and densities, for pairs in arrays and in chunks.

Chunks and partitions take one pass: each chunk sums its weights on either side of the thresholds (smoothed in y: it
pools columns of smoothed values), and these sums add up. Empty windows, and queries far from all rows, take one
more pass each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from kernpool.core import PoolState, Problem
from kernpool.core.state import Empty
from kernpool.data.chunks.base import Chunk, Chunks
from kernpool.distribution.chunk_queries import bare_problem
from kernpool.distribution.multipass_quantile import Ask, MultipassQuantile
from kernpool.distribution.ordered_sums import FAR
from kernpool.distribution.scoring_rules import check_y_bandwidth
from kernpool.distribution.smoothed_cdf import known_smooth, normal_density
from kernpool.distribution.weighted_cdf import (
    TwoSidedSums,
    as_thresholds,
    filled,
    finalize_cdf,
    keep_order,
    known_cdf,
    ranks,
    rows_of,
    two_sided_sums,
)
from kernpool.execution.error_messages import abbreviate, explain_calls
from kernpool.execution.progress import Progress
from kernpool.execution.warnings import underflow_is_zero
from kernpool.kernels import Kernel, get_kernel
from kernpool.pooling import ArrayPairs, Recipe, as_pairs, choose
from kernpool.pooling.out_of_core import ChunkPairs
from kernpool.pooling.stored_pairs import QueryBatch, merge_states, read_queries

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Function:
    """Conditional distribution function or density of each value column, to be evaluated at given thresholds.

    Parameters
    ----------
    threshold : ndarray of shape (1, c, t) or (m, c, t)
        A single row applies to all queries.
    widths : ndarray of shape (c,), optional
        Bandwidths in y; None for a step function.
    density : bool, default=False
        Whether to compute densities, which need bandwidths.
    """

    threshold: Array
    widths: Array | None = None
    density: bool = False

    @property
    def at_zero(self) -> Array:
        """Values of the function at the thresholds for an outcome that is always zero, (1, c, t) or (m, c, t)."""
        if self.widths is None:
            return np.asarray(self.threshold >= 0, dtype=np.float64)
        u = self.threshold / self.widths[:, None]
        return normal_density(u) / self.widths[:, None] if self.density else np.asarray(ndtr(u))

    def at(self, rows: Index) -> Function:
        """Return the function with only the thresholds of the queries with these indices."""
        return replace(self, threshold=rows_of(self.threshold, rows))

    def checked(self, chunk: Chunk) -> Chunk:
        """Return a chunk unchanged, or raise ValueError if its number of value columns is wrong."""
        given, asked = chunk.value.shape[1], self.threshold.shape[1]
        if given != asked:
            raise ValueError(f"value must be {'one column' if asked == 1 else f'{asked} columns'}, got {given}")
        return chunk

    def known(self, recipe: Recipe, problem: Problem, value: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Evaluate the function, (m, c, t), on arrays; also return which queries have a key of positive weight."""
        found = [self.known_of(number, recipe, problem, column) for number, column in enumerate(value.T)]
        return np.stack([one for one, _ in found], axis=1), found[0][1]

    def known_of(
        self,
        number: int,
        recipe: Recipe,
        problem: Problem,
        value: Array,
        center: Array | None = None,
        dtype: Any = np.float64,
    ) -> tuple[Array, NDArray[np.bool_]]:
        """Evaluate the function of one value column, (m, t).

        A center of shape (m,) is added to the values at each query; sums are rounded to `dtype` (`known_cdf`).
        """
        threshold = self.threshold[:, number]
        if self.widths is None:
            return known_cdf(recipe, problem, value, threshold, center, dtype)
        width = float(self.widths[number])
        return known_smooth(recipe, problem, value, threshold, width, density=self.density, center=center)


@dataclass(frozen=True, eq=False)
class WeightBelow:
    """Map-reduce query for the sums of weights up to each threshold and above it: `TwoSidedSums` per value column."""

    asked: QueryBatch
    function: Function

    def of(self, chunk: Chunk) -> tuple[TwoSidedSums, ...]:
        """Sum the weights of one chunk up to each threshold, and above it, separately for each value column."""
        chunk, sides = self.function.checked(chunk.counted), []
        problem = bare_problem(self.asked, chunk, np.arange(len(chunk.key)))
        for number, value in enumerate(chunk.value.T):
            order = np.argsort(value, kind="stable")
            rank = ranks(value[order], self.function.threshold[:, number])
            sides.append(two_sided_sums(self.asked.recipe, problem, order, rank))
        return tuple(sides)

    def joined(self, one: tuple[TwoSidedSums, ...], other: tuple[TwoSidedSums, ...]) -> tuple[TwoSidedSums, ...]:
        """Add the sums of weights of two disjoint sets of rows."""
        return tuple(a.joined(b) for a, b in zip(one, other, strict=True))

    def result(self, answer: tuple[TwoSidedSums, ...]) -> tuple[Array, Array]:
        """Return fractions of weight up to each threshold, of shape (m, c, t), and each query's log total weight.

        Fractions are NaN for empty windows.
        """
        shares = [sides.share() for sides in answer]
        for number, share in enumerate(shares):
            keep_order(share, self.function.threshold[:, number])
        first = answer[0]
        with np.errstate(divide="ignore"):
            return np.stack(shares, axis=1), first.unit[:, 0] + np.log(first.below[:, 0] + first.above[:, 0])


@dataclass(frozen=True, eq=False)
class SmoothWeight:
    """Map-reduce query for the kernel sums behind distribution functions or densities smoothed in y."""

    asked: QueryBatch
    function: Function

    def of(self, chunk: Chunk) -> PoolState:
        """Return the kernel sums of one chunk for distribution functions or densities smoothed in y."""
        chunk = self.function.checked(chunk.counted)
        state = self.asked.state(chunk._replace(value=np.zeros((len(chunk.key), 1))), np.zeros(1))
        problem = bare_problem(self.asked, chunk, np.arange(len(chunk.key)))
        found, occupied = self.function.known(self.asked.recipe, problem, chunk.value)
        mean = np.where(occupied[:, None, None], found, 0.0).reshape(len(found), -1)
        return replace(state, numerator=state.denominator[:, None] * mean)

    def joined(self, one: PoolState, other: PoolState) -> PoolState:
        """Merge the kernel sums of two disjoint sets of rows."""
        return merge_states(one, other, None)

    def result(self, answer: PoolState) -> tuple[Array, Array]:
        """Return smoothed functions at thresholds, of shape (m, c, t), and each query's log total weight.

        Functions are NaN for empty windows.
        """
        sums, total = answer.numerator, answer.denominator[:, None]
        mean = np.divide(sums, total, where=total > 0, out=np.full(sums.shape, np.nan))
        return mean.reshape(len(mean), self.function.threshold.shape[1], -1), answer.log_denominator


def chunk_functions(
    recipe: Recipe, query: ArrayLike, chunks: Chunks, function: Function, progress: Progress | None = None
) -> Array:
    """Compute conditional distribution functions or densities of pairs in chunks, at given thresholds.

    Parameters
    ----------
    recipe : Recipe
        Weights, and the policy for empty windows; of degree 0.
    query : array_like of shape (m,) or (m, d)
        Queries.
    chunks : Chunks
        The pairs; they are read again if empty windows are to be filled, or queries are far from all rows.
    function : Function
        The function to evaluate, for all value columns.
    progress : callable, optional
        As of `chunk_quantiles`.

    Returns
    -------
    ndarray of shape (m, c, t)
        With empty windows filled by the recipe's policy.
    """
    pairs = ChunkPairs(chunks)
    ask = partial(pairs.ask, progress=progress)
    return counted_functions(pairs.asked(recipe, query), ask, function, again=chunks.again)


def counted_functions(asked: QueryBatch, ask: Ask, function: Function, *, again: bool = True) -> Array:
    """Compute conditional distribution functions or densities at thresholds, by map-reduce queries.

    Empty windows are filled by the recipe's policy.

    Parameters
    ----------
    asked : QueryBatch
        Queries, and how to sum weights.
    ask : callable
        As of `MultipassQuantile`.
    function : Function
        The function to evaluate.
    again : bool, default=True
        Whether more than one pass over the chunks is possible.

    Returns
    -------
    ndarray of shape (m, c, t)
        Values of the function.
    """
    recipe = asked.recipe
    found, mass = _answers(asked, ask, function)
    occupied = ~np.isneginf(mass)
    far = np.flatnonzero(occupied & (np.abs(np.where(occupied, mass, 0.0)) >= FAR))

    def once_more(why: str) -> None:
        if not again:
            raise ValueError(
                f"{why} go through the pairs once more, which an iterator does not allow; give a list, an array or a "
                "file, or leave such queries out"
            )

    if len(far) and not recipe.kernel.is_compact:
        once_more("queries that are far from all rows")
        found[far] = MultipassQuantile(asked, ask).nearest(
            far, None, lambda p, v: function.at(far).known(recipe, p, v)[0]
        )

    def fill(rows: Index) -> Array:
        once_more(f"empty windows, with empty={recipe.empty!r},")
        if recipe.empty == "nearest":
            some = function.at(rows)
            counting = MultipassQuantile(asked, ask)
            return counting.nearest(rows, "nearest", lambda p, v: array_functions(recipe, p, v, some)).reshape(
                len(rows), -1
            )
        one = replace(asked.at(rows), recipe=replace(recipe, kernel=get_kernel("constant")))
        return _answers(one, ask, function.at(rows))[0].reshape(len(rows), -1)

    return filled(recipe, found, occupied, function.at_zero, fill)


def _answers(asked: QueryBatch, ask: Ask, function: Function) -> tuple[Array, Array]:
    """Evaluate a function by one map-reduce query; return its values, (m, c, t), and each query's log total weight."""
    if function.widths is None:
        below = WeightBelow(asked, function)
        return below.result(ask(below))
    smooth = SmoothWeight(asked, function)
    return smooth.result(ask(smooth))


def array_functions(recipe: Recipe, problem: Problem, value: Array, function: Function) -> Array:
    """Compute conditional distribution functions or densities of values in arrays, of shape (m, c, t).

    Parameters are those of `Function.known`, and the function. Empty windows are filled by the recipe's policy.
    """

    def known(some: Problem, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
        return function.at(rows).known(recipe, some, value)

    return finalize_cdf(recipe, problem, known, function.at_zero)


@underflow_is_zero
@explain_calls
def pool_cdf(
    query: ArrayLike,
    key: ArrayLike | Chunks,
    value: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    y_bandwidth: float | None = None,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    key_weight: ArrayLike | None = None,
    attn_mask: ArrayLike | None = None,
    exclude_self: bool = False,
    self_index: ArrayLike | None = None,
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Array:
    r"""Return the conditional distribution function: the fraction of weight on values at or below thresholds.

    .. math:: F(y \mid q) = \sum_{j:\, v_j \le y} \alpha_j(q)

    with the weights alpha of `pool`. It is the inverse of `pool_quantile`. Smoothed in y it is

    .. math:: F(y \mid q) = \sum_j \alpha_j(q)\, \Phi\big((y - v_j) / h_y\big).

    Parameters
    ----------
    query, key : array_like
        As in `pool`, chunks and large memory maps included.
    value : array_like of shape (..., n)
        One value per key; None for chunks, which include values.
    y : float, or array_like of shape (t,) or (m, t)
        Thresholds: the same for all queries, or a row for each query.
    y_bandwidth : float, optional
        Standard deviation of a normal distribution around each value, in units of the value; by default no smoothing.
    kernel, bandwidth, composition, key_weight, attn_mask, exclude_self, self_index, tol
        As in `pool`.
    algorithm : str, default="auto"
        How sums over many keys are organised, as in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        What a query without any key of positive weight gets: NaN with one warning, the distribution of the nearest
        keys, that of all keys that are included, that of a value of zero, or an error.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.
    progress : callable, optional
        Called as ``progress(done, total)`` in rows of chunks, if their number is known.

    Returns
    -------
    ndarray of shape (..., m) or (..., m, t)
        Between 0 and 1, nondecreasing in the threshold; exactly 0 below and 1 above all keys of positive weight,
        unless smoothed. With a last axis for thresholds unless `y` is one number.

    Raises
    ------
    TypeError, ValueError
        As in `pool`, and if `y` contains NaN or its shape is invalid, or `value` has several columns.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    See Also
    --------
    pool_quantile : The inverse.

    Notes
    -----
    Keys are sorted by value once, and those between two thresholds are summed together: with the same thresholds for
    all queries, one pass over all keys suffices, whatever the number of thresholds. With separate thresholds for each
    query, keys are bisected until a threshold lies among few: about log2(n / 512) passes, or one over all pairs where
    that is less. Memory is O(n + m t). Both sides of a threshold are summed, so that small fractions keep their digits.

    Examples
    --------
    >>> import kernpool
    >>> kernpool.pool_cdf([0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 7.0, 8.0], [2.0, 3.0, 8.0]).round(3)
    array([[0.   , 0.622, 1.   ],
           [0.   , 0.   , 1.   ]])
    """
    recipe = Recipe.of(
        kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=n_jobs
    )
    if y is None:
        raise TypeError("y must be given: the thresholds, such as y=0.0")
    width = None if y_bandwidth is None else _as_width(y_bandwidth)
    pairs = as_pairs(key, value, key_weight, attn_mask, exclude_self, self_index)
    if not isinstance(pairs, ArrayPairs):
        opened = pairs.opened(query)
        m = opened.leading[-1] if opened.leading else len(read_queries(opened.query).array)
        threshold, with_axis = as_thresholds(y, m)
        if opened.leading and len(threshold) > 1:  # every item of a batch has the same thresholds
            threshold = np.tile(threshold, (int(np.prod(opened.leading[:-1])), 1, 1))
        found = chunk_functions(recipe, opened.query, opened.chunks, Function(threshold, width), progress)[:, 0]
        found = found if with_axis else found[:, 0]
        return found.reshape(*(opened.leading or found.shape[:1]), *found.shape[1:])
    batch, tables = pairs.batch(recipe, query), []
    for i in range(len(batch)):
        problem, values = batch.problem(i), batch.values(i)
        choose(problem, recipe.algorithm)  # raises for what it does not support
        if values.shape[1] != 1:
            raise ValueError(f"value must be one column, got {values.shape[1]}; call pool_cdf for one after the other")
        threshold, with_axis = as_thresholds(y, len(problem.query))
        found = array_functions(recipe, problem, values, Function(threshold, width))[:, 0]
        tables.append(found if with_axis else found[:, 0])
    return np.stack(tables).reshape(*batch.shape, *tables[0].shape)


def _as_width(y_bandwidth: Any) -> Array:
    width = check_y_bandwidth(y_bandwidth, 1)
    if isinstance(width, str):
        raise TypeError(
            f"y_bandwidth must be a positive number here, "
            f"got {abbreviate(y_bandwidth)}; the y_bandwidth method of a fitted "
            "regressor finds one"
        )
    return width
