"""Sums for local linear fits and gradients, over blocks of queries and keys within each other's reach.

Both are in kd order, and only blocks that reach each other are visited, in the tiles of brute force. How far a query
reaches depends on its sum of weights, which the tree finds first, without moments. What is left out is at most the
machine epsilon of each sum per query, squared distances included, and at most that fraction of what such a query can
add to a sum per key. Gradients take one pass for sums per query and one for sums per key, so that no two threads
share a sum.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from kernpool._arrays import Array, Flags, Integers
from kernpool.algorithms.algorithm import Gradients
from kernpool.algorithms.brute.tiles import CompiledBlocks
from kernpool.algorithms.loops.kernel_weights import GAUSSIAN
from kernpool.algorithms.tree.kd_tree import Profile, boxes_of, distance, kd_order, profile_of
from kernpool.algorithms.tree.loops.traversal import MARGIN
from kernpool.core import PoolState, Problem, empty_state, merge
from kernpool.execution import Progress, cut, run_blocks

THIN = 1e-3  # mean squared offset, in bandwidths, whose digits may depend on keys below epsilon of the weight


def pool_moments(problem: Problem, weights: PoolState, n_jobs: int, progress: Progress | None) -> PoolState:
    """Compute the moment sums of local linear fits over keys of non-negligible weight, given sums of weights."""
    # Only keys in reach of some query of a block are visited. Squares of offsets may be so small compared with the
    # weights that omitted keys matter for them: such queries are summed again, with the reach that they need.
    state = _within_reach(problem, weights, n_jobs, progress)
    if problem.similarity.kernel.is_compact:
        return state
    thin = (square_sums(problem, state) < THIN * state.denominator[:, None]).any(axis=1)
    rows = np.flatnonzero(thin & (state.denominator > 0.0))
    if rows.size:
        part = problem.block(rows)
        again = _within_reach(part, weakest(part, state.rows(rows)), n_jobs, None)
        state.put(rows, again)
    return state


def _within_reach(problem: Problem, weights: PoolState, n_jobs: int, progress: Progress | None) -> PoolState:
    near, result = NearBlocks(problem, weights, n_jobs), empty_state(len(problem.query), problem.layout.width)

    def work(own: slice) -> Iterator[None]:
        state = empty_state(own.stop - own.start, problem.layout.width)
        for keys in near.keys_of(own):
            state = merge(state, near.blocks.sum_block(own, keys))
            yield
        rows = near.query_order[own]
        result.put(rows, state)

    run_blocks(work, cut(len(problem.query), ROWS), n_jobs, progress)
    return result


def differentiate_near(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of pooling over keys of non-negligible weight, by blocks of queries and keys."""
    near = NearBlocks(problem, weakest(problem, state), n_jobs)
    orders, pieces = (near.query_order, near.key_order), (near.keys_of, near.queries_of)
    sums, cotangent = state.rows(near.query_order), cotangent[near.query_order]
    return near.blocks.differentiate(problem, orders, sums, cotangent, wanted, ROWS, pieces, n_jobs, progress)


ROWS = 128  # of a block of queries, or of keys


class NearBlocks:
    """Queries and keys in kd order, in blocks of neighbours, and which blocks are near enough to matter."""

    def __init__(self, problem: Problem, weights: PoolState, n_jobs: int) -> None:
        self.profile = profile_of(problem)
        query, self.query_order = kd_order(problem.query, self.profile.scale, ROWS, n_jobs)
        key, self.key_order = kd_order(problem.key, self.profile.scale, ROWS, n_jobs)
        self.blocks = CompiledBlocks(put_in_order(problem, query, self.query_order, key, self.key_order))
        self.queries, self.keys = boxes_of(query, ROWS), boxes_of(key, ROWS)
        self.reach = find_reach(problem, self.profile, weights.rows(self.query_order))

    def keys_of(self, queries: slice) -> Iterator[slice]:
        """Return slices of the keys that are near a block of queries."""
        b, (low, high) = queries.start // ROWS, self.queries
        near = distance(low[b], high[b], *self.keys, self.profile) <= self.reach[b]
        return pieces_of(near, len(self.key_order), self.blocks.pairs_per_call // ROWS)

    def queries_of(self, keys: slice) -> Iterator[slice]:
        """Return slices of the queries that are near a block of keys."""
        b, (low, high) = keys.start // ROWS, self.keys
        near = distance(low[b], high[b], *self.queries, self.profile) <= self.reach
        return pieces_of(near, len(self.query_order), self.blocks.pairs_per_call // ROWS)


TINIEST = 5e-324  # beyond where a weight is this, sums without a shift are zero anyway
SLOPE = 1 / 256  # terms are the weight times u**2, which is below the reciprocal of this where weights are an epsilon


def put_in_order(problem: Problem, query: Array, query_order: Integers, key: Array, key_order: Integers) -> Problem:
    """Return the problem with its queries and keys rearranged in kd order."""
    own = None
    if problem.self_index is not None:
        place = np.empty(len(key), dtype=np.int64)
        place[key_order] = np.arange(len(key))
        own = problem.self_index[query_order]
        own = np.where(own >= 0, place[own], -1)
    return replace(
        problem,
        query=query,
        key=key,
        value=problem.value[key_order],
        key_weight=None if problem.key_weight is None else problem.key_weight[key_order],
        self_index=own,
    )


def weakest(problem: Problem, state: PoolState) -> PoolState:
    """Return kernel sums with each query's sum of weights replaced by its smallest sum that has to be precise."""
    # It is for `find_reach`. With moments that may be the mean square of an offset: where the nearest keys coincide
    # with the query, the next ones determine the slope, however small their weight.
    if not problem.degree:
        return state
    least = np.minimum(state.denominator, square_sums(problem, state).min(axis=1))
    return PoolState(state.shift, np.where(state.denominator > 0.0, np.maximum(least, TINIEST), 0.0), state.numerator)


def square_sums(problem: Problem, state: PoolState) -> Array:
    """Return each query's weighted sums of squared offsets of keys, one for each column of the keys."""
    diagonal = np.equal(*np.triu_indices(problem.key.shape[1]))
    return state.numerator[:, problem.layout.second][:, diagonal]


def find_reach(problem: Problem, profile: Profile, state: PoolState) -> Array:
    """Return per block of queries the distance, in bandwidths, beyond which no key matters; -1 if all sums are zero."""
    occupied = state.denominator > 0
    if profile.infinite:
        least = state.shift + np.log(state.denominator, where=occupied, out=np.zeros(len(occupied)))
        decades = np.maximum(math.log(problem.total_weight / (np.finfo(float).eps * SLOPE)) - least, 0.0)
        reach = np.sqrt(2.0 * decades) if profile.code == GAUSSIAN else decades
    else:
        reach = np.ones(len(occupied))
    return np.maximum.reduceat(np.where(occupied, reach * (1.0 + MARGIN), -1.0), np.arange(0, len(occupied), ROWS))


def pieces_of(near: Flags, rows: int, most: int) -> Iterator[slice]:
    """Yield slices of at most `most` rows that cover the blocks flagged as near."""
    edges = np.flatnonzero(np.diff(near.astype(np.int8), prepend=0, append=0)) * ROWS
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        for piece in cut(min(last, rows) - first, most):
            yield slice(first + piece.start, first + piece.stop)
