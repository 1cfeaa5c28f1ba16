"""Gradients over the pairs that matter: blocks of queries and keys in kd order, and which of them reach each other.

How far a query reaches is known here, because its denominator is. What is left out is at most the machine epsilon of
each sum per query, squared distances included, and as much of what such a query can add to a sum per key. There is one
pass for sums per query and one for sums per key, so that no two threads share a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.base import PER_QUERY, Gradients
from kernpool.algorithms.blas import one_thread
from kernpool.algorithms.compiled import CompiledBlocks
from kernpool.algorithms.kd_boxes import boxes_of, distance
from kernpool.algorithms.kd_tree import kd_order
from kernpool.algorithms.threads import cut, run_passes
from kernpool.algorithms.tiles import GAUSSIAN
from kernpool.algorithms.tree_boxes import MARGIN
from kernpool.algorithms.tree_profile import Profile, profile_of
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

Array = NDArray[np.float64]

ROWS = 128  # of a block of queries, or of keys
TINIEST = 5e-324  # beyond where a weight is this, sums without a shift are zero anyway
SLOPE = 1 / 256  # terms have a factor u**2 beside the weight: where weights are an epsilon it is below this reciprocal


def pullback(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Differentiate, block by block."""
    profile = profile_of(problem)
    query, query_order = kd_order(problem.query, profile.scale, ROWS, n_jobs)
    key, key_order = kd_order(problem.key, profile.scale, ROWS, n_jobs)
    blocks = CompiledBlocks(put_in_order(problem, query, query_order, key, key_order))
    part_of = PoolState(state.shift[query_order], state.denominator[query_order], state.numerator[query_order])
    cotangent, reach = cotangent[query_order], find_reach(problem, profile, weakest(problem, part_of))
    queries, keys = boxes_of(query, ROWS), boxes_of(key, ROWS)
    orders = {"query": query_order, "log_bandwidth": query_order, "key": key_order, "value": key_order}
    columns = {name: (problem.value if name == "value" else problem.key).shape[1] for name in wanted}
    sums = {name: np.zeros((len(orders[name]), columns[name])) for name in wanted}

    def add(names: frozenset[str], some_queries: slice, some_keys: slice, own: slice) -> None:
        found = blocks.pullback(some_queries, some_keys, part_of, cotangent, names)._asdict()
        for name in names:
            sums[name][own] += found[name]

    def along_keys(own: slice) -> Iterator[None]:
        b = own.start // ROWS
        near = distance(queries[0][b], queries[1][b], *keys, profile) <= reach[b]
        for piece in pieces_of(near, len(key), blocks.pairs_per_call // ROWS):
            add(wanted & PER_QUERY, own, piece, own)
            yield

    def along_queries(own: slice) -> Iterator[None]:
        b = own.start // ROWS
        near = distance(keys[0][b], keys[1][b], *queries, profile) <= reach
        for piece in pieces_of(near, len(query), blocks.pairs_per_call // ROWS):
            add(wanted - PER_QUERY, piece, own, own)
            yield

    per_query = cut(len(query) if wanted & PER_QUERY else 0, ROWS)
    per_key = cut(len(key) if wanted - PER_QUERY else 0, ROWS)
    with one_thread() if blocks.gradients_use_blas else nullcontext():
        run_passes([(along_keys, per_query), (along_queries, per_key)], n_jobs, progress)
    result = {}
    for name in wanted:
        result[name] = np.empty_like(sums[name])
        result[name][orders[name]] = sums[name]
    return Gradients(**result)


def put_in_order(
    problem: Problem, query: Array, query_order: NDArray[np.int64], key: Array, key_order: NDArray[np.int64]
) -> Problem:
    """Return the same problem with queries and keys in order."""
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
    """Return a state whose denominators are the least of the sums that must keep their digits, for `find_reach`.

    With moments that may be the mean square of an offset: where the nearest keys are at the very place of the query, a
    slope is determined by the next ones, however small their share.
    """
    if not problem.moments:
        return state
    least = np.minimum(state.denominator, mean_squares(problem, state).min(axis=1))
    return PoolState(state.shift, np.where(state.denominator > 0.0, np.maximum(least, TINIEST), 0.0), state.numerator)


def mean_squares(problem: Problem, state: PoolState) -> Array:
    """Return the sums of squared offsets, column by column."""
    diagonal = np.equal(*np.triu_indices(problem.key.shape[1]))
    return np.asarray(state.numerator[:, problem.layout.second][:, diagonal])


def find_reach(problem: Problem, profile: Profile, state: PoolState) -> Array:
    """How far a query of each block reaches at most, in bandwidths; -1 if all are empty."""
    occupied = state.denominator > 0
    if profile.infinite:
        least = state.shift + np.log(state.denominator, where=occupied, out=np.zeros(len(occupied)))
        decades = np.maximum(math.log(problem.total_weight / (np.finfo(float).eps * SLOPE)) - least, 0.0)
        reach = np.sqrt(2.0 * decades) if profile.code == GAUSSIAN else decades
    else:
        reach = np.ones(len(occupied))
    return np.maximum.reduceat(np.where(occupied, reach * (1.0 + MARGIN), -1.0), np.arange(0, len(occupied), ROWS))


def pieces_of(near: NDArray[np.bool_], rows: int, most: int) -> Iterator[slice]:
    """Cut the rows of near blocks, those that follow each other together, into slices of at most so many."""
    edges = np.flatnonzero(np.diff(near.astype(np.int8), prepend=0, append=0)) * ROWS
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        for piece in cut(min(last, rows) - first, most):
            yield slice(first + piece.start, first + piece.stop)
