"""Gradients of the tree algorithm: sums over blocks of queries and keys near each other.

Both are in kd order, and only blocks that reach each other are visited. Denominators are known here, and with them
how far a query reaches. What is left out is at most the machine epsilon of each sum per query, squared distances
included, and at most that fraction of what such a query can add to a sum per key. There is one pass for sums per
query and one for sums per key, so that no two threads share a sum.
"""

from collections.abc import Iterator
from contextlib import nullcontext

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import PER_QUERY, Gradients
from kernpool.algorithms.brute.staged import CompiledBlocks
from kernpool.algorithms.tree.blocks import ROWS, find_reach, pieces_of, put_in_order, weakest
from kernpool.algorithms.tree.kd_tree import boxes_of, distance, kd_order, profile_of
from kernpool.core import PoolState, Problem
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, one_thread, run_passes

Array = NDArray[np.float64]


def differentiate_near(
    problem: Problem,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Differentiate over the keys within reach, block by block."""
    profile = profile_of(problem)
    query, query_order = kd_order(problem.query, profile.scale, ROWS, n_jobs)
    key, key_order = kd_order(problem.key, profile.scale, ROWS, n_jobs)
    blocks = CompiledBlocks(put_in_order(problem, query, query_order, key, key_order))
    part_of = state.rows(query_order)
    cotangent, reach = cotangent[query_order], find_reach(problem, profile, weakest(problem, part_of))
    queries, keys = boxes_of(query, ROWS), boxes_of(key, ROWS)
    orders = {"query": query_order, "log_bandwidth": query_order, "key": key_order, "value": key_order}
    columns = {name: (problem.value if name == "value" else problem.key).shape[1] for name in wanted}
    sums = {name: np.zeros((len(orders[name]), columns[name])) for name in wanted}

    def add(names: frozenset[str], some_queries: slice, some_keys: slice, own: slice) -> None:
        found = blocks.differentiate_block(some_queries, some_keys, part_of, cotangent, names)._asdict()
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
