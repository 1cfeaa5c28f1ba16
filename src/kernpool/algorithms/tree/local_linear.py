"""Sums of a local linear fit over near pairs: a tree for the weights, then blocks in kd order.

How far a query reaches depends on its sum of weights, which the tree finds first, without moments. Then every block
of queries is summed with the blocks of keys in its reach, in the tiles of brute force. What is left out is at most
the machine epsilon of each sum, squared distances included.
"""

from collections.abc import Iterator

import numpy as np

from kernpool.algorithms.brute.staged import CompiledBlocks
from kernpool.algorithms.tree.blocks import ROWS, find_reach, mean_squares, pieces_of, put_in_order, weakest
from kernpool.algorithms.tree.kd_tree import boxes_of, distance, kd_order, profile_of
from kernpool.core import PoolState, Problem, empty_state, merge
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks

THIN = 1e-3  # mean squared offset, in bandwidths, whose digits may depend on keys below epsilon of the weight


def pool_moments(problem: Problem, weights: PoolState, n_jobs: int, progress: Progress | None) -> PoolState:
    """Sum with moments, given the state without; only keys in reach of some query of a block are visited.

    Squares of offsets may be so small compared with the weights that omitted keys matter for them: such queries are
    summed again, with the reach that they need.
    """
    state = _within_reach(problem, weights, n_jobs, progress)
    if problem.similarity.kernel.is_compact:
        return state
    thin = (mean_squares(problem, state) < THIN * state.denominator[:, None]).any(axis=1)
    rows = np.flatnonzero(thin & (state.denominator > 0.0))
    if rows.size:
        part = problem.block(rows)
        again = _within_reach(part, weakest(part, state.rows(rows)), n_jobs, None)
        state.put(rows, again)
    return state


def _within_reach(problem: Problem, weights: PoolState, n_jobs: int, progress: Progress | None) -> PoolState:
    profile = profile_of(problem)
    query, query_order = kd_order(problem.query, profile.scale, ROWS, n_jobs)
    key, key_order = kd_order(problem.key, profile.scale, ROWS, n_jobs)
    blocks = CompiledBlocks(put_in_order(problem, query, query_order, key, key_order))
    blocks.prepare()
    part_of = weights.rows(query_order)
    reach = find_reach(problem, profile, part_of)
    queries, keys = boxes_of(query, ROWS), boxes_of(key, ROWS)
    result = empty_state(len(query), problem.layout.width)

    def work(own: slice) -> Iterator[None]:
        b, state = own.start // ROWS, empty_state(own.stop - own.start, problem.layout.width)
        near = distance(queries[0][b], queries[1][b], *keys, profile) <= reach[b]
        for piece in pieces_of(near, len(key), blocks.pairs_per_call // ROWS):
            state = merge(state, blocks.sum_block(own, piece))
            yield
        rows = query_order[own]
        result.put(rows, state)

    run_blocks(work, cut(len(query), ROWS), n_jobs, progress)
    return result
