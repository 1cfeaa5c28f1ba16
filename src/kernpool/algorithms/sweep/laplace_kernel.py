"""Laplace-kernel sums in one column: exponential sums accumulated along the line, in both directions.

The compiled recurrences are in `loops/laplace_kernel.py`.
"""

from collections.abc import Iterator

import numpy as np

from kernpool.algorithms.sweep.loops import laplace_kernel as loops
from kernpool.algorithms.sweep.loops import laplace_kernel as moment_loops
from kernpool.algorithms.sweep.loops.near_pairs import LAPLACE
from kernpool.algorithms.sweep.sorted_column import SortedColumn
from kernpool.algorithms.sweep.windows import QueryBlocks
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks

BINS_PER_CALL = 1 << 12
BINS_PER_SCAN, BINS_PER_MOMENT_SCAN = 1 << 18, 1 << 17
QUERIES_PER_CALL, GROUPS_PER_CALL = 1 << 14, 1 << 11


def pool_weights(line: SortedColumn, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Write Laplace-kernel sums of sorted one-dimensional queries to `out`; flag those that need direct summation."""
    # Flagged queries are to be computed key by key.
    keys, queries, bins, h = line.keys, line.queries, len(line.keys.low), line.bandwidth
    leftward, rightward, total = (np.empty((bins, 1 + len(keys.value))) for _ in range(3))

    def sum_bins(part: slice) -> Iterator[None]:
        loops.sum_bins(*keys, part.start, part.stop, h, leftward, rightward, total)
        yield

    def scan(whole: slice) -> Iterator[None]:
        for part in cut(whole.stop, BINS_PER_SCAN):
            loops.scan(keys.low, keys.high, part.start, part.stop, h, leftward, rightward)
            yield

    def pool(part: slice) -> Iterator[None]:
        blocks = QueryBlocks.cut(line, part, np.inf, line.queries_per_block)
        loops.find_runs(keys.low, keys.high, blocks.low, blocks.high, blocks.runs)
        found, _ = blocks.add_near(line, total, LAPLACE, 0)
        loops.finish(keys.low, keys.high, blocks.runs, blocks.place, queries.x, h, leftward, rightward, found)
        blocks.write_out(line, found, 0.5, LAPLACE, 0, out)
        yield

    run_blocks(sum_bins, cut(bins, BINS_PER_CALL), n_jobs, None)
    run_blocks(scan, [slice(0, bins)], 1, None)
    run_blocks(pool, cut(len(queries.x), QUERIES_PER_CALL), n_jobs, progress)


def pool_moments(line: SortedColumn, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Write Laplace-kernel moment sums for local linear fits to `out`; flag queries that need direct summation."""
    # Queries are sorted and one-dimensional. Flagged ones are to be computed key by key.
    keys, queries, bins, h = line.keys, line.queries, len(line.keys.low), line.bandwidth
    leftward, rightward = (np.empty((bins, 1 + out.numerator.shape[1])) for _ in range(2))
    total = np.empty((bins, 1 + len(keys.value)))

    def sum_bins(part: slice) -> Iterator[None]:
        moment_loops.sum_moment_bins(
            keys.x, keys.weight, keys.value, keys.offset, keys.low, keys.high, part.start, part.stop, h,
            leftward, rightward, total,
        )  # fmt: skip
        yield

    def scan(whole: slice) -> Iterator[None]:
        for part in cut(whole.stop, BINS_PER_MOMENT_SCAN):
            moment_loops.scan_moments(keys.low, keys.high, part.start, part.stop, h, leftward, rightward)
            yield

    def pool_groups(part: slice) -> Iterator[None]:
        moment_loops.pool_groups(
            queries.x, queries.order, queries.offset, queries.low, queries.high, queries.own, queries.own_weight,
            keys.x, keys.weight, keys.value, keys.offset, keys.low, keys.high, part.start, part.stop, h,
            leftward, rightward, total, line.leave_out, out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(sum_bins, cut(bins, BINS_PER_CALL), n_jobs, None)
    run_blocks(scan, [slice(0, bins)], 1, None)
    run_blocks(pool_groups, cut(len(queries.low), GROUPS_PER_CALL), n_jobs, progress)
