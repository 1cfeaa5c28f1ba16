"""Windows of keys in one column: brute force over only those keys that can matter to a query.

On a sorted line, the keys within some radius of a query follow each other. For a compact kernel the radius is the
bandwidth. For one of infinite support it reaches from the nearest key to where the weight beyond is at most `tol` of
the weight of that key. So it also holds far from all keys, where every weight by itself underflows.

`QueryBlocks` are neighbouring queries that use the same keys; see `loops/near_pairs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kernpool._arrays import Array, Index, Integers
from kernpool.algorithms.algorithm import Gradients, radius
from kernpool.algorithms.brute.tiles import CompiledBlocks
from kernpool.algorithms.sweep.loops import near_pairs as loops
from kernpool.algorithms.sweep.loops import polynomial_kernels as window_loops
from kernpool.algorithms.sweep.sorted_column import SortedColumn
from kernpool.core import PoolState, Problem, empty_state, merge
from kernpool.execution import Progress, cut, run_blocks
from kernpool.kernels import Kernel

RUNS_PER_CALL = 64
ROWS = 256  # queries, or keys, whose windows are joined to one


def spans(line: SortedColumn, kernel: Kernel, rows: Index, tol: float, degree: bool) -> tuple[Integers, ...]:
    """Return where the windows of the sorted queries `rows` start and stop among the sorted keys, in whole bins."""
    keys, q = line.keys, line.queries.x[rows]
    nearest, share = np.zeros(len(rows)), np.ones(len(rows))
    if not kernel.is_compact:
        own = line.queries.own[rows] if line.leave_out else line.queries.own
        left = line.queries.own_weight[rows] if line.leave_out else line.queries.own_weight
        window_loops.nearest_keys(q, own, left, line.leave_out, degree, keys, nearest, share)
        nearest /= line.bandwidth
        share *= tol / line.total_weight
    with np.errstate(over="ignore"):
        reach = line.bandwidth * radius(kernel, nearest, share)
    # q - reach is rounded: an ulp of q may be more than the margin of the radius
    reach += 4.0 * np.finfo(float).eps * np.abs(q)
    first, last = keys.bins_between(q - reach, q + reach)
    return keys.offset[first], keys.offset[last]


def pool_windows(
    problem: Problem,
    line: SortedColumn,
    rows: Index,
    out: PoolState,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> None:
    """Write kernel sums of sorted queries `rows`, over the keys in their windows, to their original rows of `out`."""
    # Neighbours whose windows are nearly the same are one block of brute force over the keys of all of them.
    first, last = spans(line, problem.similarity.kernel, rows, problem.tol, problem.degree > 0)
    starts = window_loops.join_ranges(first, last, np.empty(len(rows) + 1, dtype=np.int64))
    # Fused loops copy all keys first, which few queries are not worth.
    blocks = CompiledBlocks(_in_order(problem, line, rows), staged=True)

    def work(part: slice) -> Iterator[None]:
        for start, stop in pairwise(starts[part.start : part.stop + 1].tolist()):
            own = slice(start, stop)
            begin, end = int(first[own].min()), int(last[own].max())
            state = empty_state(stop - start, out.numerator.shape[1])
            for piece in cut(end - begin, blocks.keys_per_call):
                state = merge(state, blocks.sum_block(own, slice(begin + piece.start, begin + piece.stop)))
                yield
            places = line.queries.order[rows[own]]
            out.put(places, state)

    run_blocks(work, cut(len(starts) - 1, RUNS_PER_CALL), n_jobs, progress)


def _in_order(problem: Problem, line: SortedColumn, rows: Index | slice = slice(None)) -> Problem:
    """Return the problem with its keys, and all queries or those in `rows`, in sorted order."""
    keys, queries = line.keys, line.queries
    return replace(
        problem,
        query=queries.x[rows, None],
        key=keys.x[:, None],
        value=keys.value.T,
        key_weight=keys.weight if keys.weight.size else None,
        self_index=queries.own[rows] if line.leave_out else None,
    )


def differentiate_windows(
    problem: Problem,
    line: SortedColumn,
    state: PoolState,
    cotangent: Array,
    wanted: frozenset[str],
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Gradients:
    """Compute the gradients of pooling over pairs in windows; omit at most the machine epsilon of each sum."""
    queries, blocks = line.queries, CompiledBlocks(_in_order(problem, line))
    first, last = spans(
        line, problem.similarity.kernel, np.arange(len(queries.x)), np.finfo(float).eps, problem.degree > 0
    )
    # Where no window before ends later, and none after begins earlier: with these, windows are in order.
    end, begin = np.maximum.accumulate(last), np.minimum.accumulate(first[::-1])[::-1]

    def keys_of(part: slice) -> Iterator[slice]:
        start, stop = int(first[part].min()), int(last[part].max())
        for piece in cut(stop - start, blocks.keys_per_call):
            yield slice(start + piece.start, start + piece.stop)

    def queries_of(part: slice) -> Iterator[slice]:
        start = int(np.searchsorted(end, part.start, side="right"))
        stop = int(np.searchsorted(begin, part.stop, side="left"))
        for piece in cut(max(0, stop - start), blocks.pairs_per_call // ROWS):
            yield slice(start + piece.start, start + piece.stop)

    orders, pieces = (queries.order, line.key_order), (keys_of, queries_of)
    sums, cotangent = state.rows(queries.order), cotangent[queries.order]
    return blocks.differentiate(problem, orders, sums, cotangent, wanted, ROWS, pieces, n_jobs, progress)


@dataclass(frozen=True)
class QueryBlocks:
    """Blocks of neighbouring sorted queries, and the ranges of key bins that each block sums over."""

    place: Integers  # where each block starts and the last one stops
    low: Array  # smallest and largest query of each
    high: Array
    runs: Integers  # at which bin each run of keys starts, to be filled in; see `loops/near_pairs.py`

    @classmethod
    def cut(cls, line: SortedColumn, part: slice, width: float, most: int) -> QueryBlocks:
        """Cut a slice of the sorted queries into blocks of limited width and number of queries."""
        size = part.stop - part.start
        place, low, high = np.empty(size + 1, np.int64), np.empty(size), np.empty(size)
        number = loops.cut_blocks(line.queries.x, part.start, part.stop, width, most, place, low, high)
        return cls(place[: number + 1], low[:number], high[:number], np.zeros((number, 6), np.int64))

    def add_near(self, line: SortedColumn, total: Array, inner: int, outer: int) -> tuple[Array, Array]:
        """Return queries' kernel sums over the near keys of their block, and the total weight of these keys."""
        # The kernel has height 1. `total` has the sums of weight and of weight times value of every bin of keys.
        keys, columns = line.keys, 1 + len(line.keys.value)
        near, near_weight = np.empty(len(self.place), np.int64), np.empty(len(self.low))
        loops.reserve(keys.offset, self.runs, near)
        size = near[-1] + 2 * loops.WIDTH
        near_x, times = np.empty(size), np.empty((columns, size))
        loops.collect(*keys, total, self.runs, near, near_x, times, near_weight)
        found = np.empty((columns, self.place[-1] - self.place[0]))
        loops.near_pair_loop(inner, outer)(line.queries.x, self.place, near, near_x, times, line.bandwidth, found)
        return found, near_weight

    def write_out(
        self, line: SortedColumn, found: Array, height: float, inner: int, outer: int, out: PoolState
    ) -> None:
        """Subtract queries' own keys (leave-one-out) from their sums, and copy the sums to their rows of `out`."""
        keys, queries = line.keys, line.queries
        if line.leave_out:
            loops.subtract_own_keys(
                keys.x, keys.weight, keys.value, keys.offset, self.runs, self.place, queries.x, queries.own,
                queries.own_weight, line.bandwidth, height, inner, outer, found,
            )  # fmt: skip
        loops.write_out(found, queries.order, self.place[0], out.denominator, out.numerator)
