"""Sums of the Gaussian and the Laplace kernel in one column.

Gaussian: moments of cells of keys, and Taylor series about blocks of queries, with whose derivatives local linear and
quadratic fits are summed (`loops/gaussian_series.py`). Laplace: exponential sums accumulated along the line, in both
directions (`loops/laplace_kernel.py`).
"""

from collections.abc import Iterator

import numpy as np

from kernpool._arrays import Array, Integers
from kernpool.algorithms.sweep.loops import gaussian_series as loops
from kernpool.algorithms.sweep.loops import laplace_kernel as laplace_loops
from kernpool.algorithms.sweep.loops.near_pairs import GAUSSIAN, LAPLACE
from kernpool.algorithms.sweep.sorted_column import SortedColumn
from kernpool.algorithms.sweep.windows import QueryBlocks
from kernpool.core import PoolState
from kernpool.execution import Progress, cut, run_blocks

KEYS_PER_CELL = 1 << 16  # 5 ms
CELLS_PER_CALL = 16
QUERIES_PER_BLOCK, QUERIES_PER_CALL = 1 << 12, 1 << 15
RUNS_PER_CALL = 16  # of queries, for moments
TILE = 512
BINS_PER_CALL, BINS_PER_SCAN, LAPLACE_QUERIES = 1 << 12, 1 << 18, 1 << 14
CELL, BLOCK = 0.5, 0.25  # widths in bandwidths, at most


def sum_cells(line: SortedColumn, n_jobs: int) -> tuple[Array, Array, Integers, Array]:
    """Join bins of sorted keys into cells: smallest and largest key, index of the first, and Taylor moments of each."""
    keys, h = line.keys, line.bandwidth
    start = loops.join(keys.low, keys.high, keys.offset, CELL * h, KEYS_PER_CELL)
    low, high, offset = keys.low[start[:-1]], keys.high[start[1:] - 1], keys.offset[start]
    moment = np.empty((len(low), 1 + len(keys.value), loops.MOMENTS))

    def add(part: slice) -> Iterator[None]:
        scratch = np.empty((2, TILE))
        for cell in range(part.start, part.stop):
            loops.sum_cell(keys.x, keys.weight, keys.value, low, high, offset, cell, h, scratch, moment)
            yield

    run_blocks(add, cut(len(low), CELLS_PER_CALL), n_jobs, None)
    return low, high, offset, moment


def share_of(line: SortedColumn, tol: float) -> float:
    """Return the fraction of a query's sum of weights that may be omitted: `tol`, or half of it for leave-one-out."""
    return 0.5 * tol if line.leave_out else tol


def pool_gaussian(line: SortedColumn, tol: float, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Write Gaussian sums of sorted one-dimensional queries to `out`; flag those that need direct summation."""
    # Flagged queries are to be computed key by key.
    queries, h, columns = line.queries, line.bandwidth, 1 + len(line.keys.value)
    cells, share, total = sum_cells(line, n_jobs), share_of(line, tol), line.total_weight

    def pool(part: slice) -> Iterator[None]:
        blocks = QueryBlocks.cut(line, part, BLOCK * h, QUERIES_PER_BLOCK)
        found = np.empty((columns, part.stop - part.start))
        loops.pool_blocks(
            queries.x, blocks.place, blocks.low, blocks.high, *cells, h, total, share,
            np.empty(loops.MOMENTS), np.empty((columns, loops.TERMS)), found,
        )  # fmt: skip
        blocks.write_out(line, found, 1.0, GAUSSIAN, 0, out)
        yield

    run_blocks(pool, cut(len(queries.x), QUERIES_PER_CALL), n_jobs, progress)


def pool_gaussian_moments(
    line: SortedColumn, tol: float, out: PoolState, n_jobs: int, progress: Progress | None, degree: int = 1
) -> None:
    """Write Gaussian moment sums for local linear or quadratic fits to `out`; flag queries that need direct sums."""
    # Queries are sorted and one-dimensional. Flagged ones are to be computed key by key.
    keys, queries, h = line.keys, line.queries, line.bandwidth
    cells, share, total = sum_cells(line, n_jobs), share_of(line, tol), line.total_weight
    runs = loops.join(queries.low, queries.high, queries.offset, BLOCK * h, QUERIES_PER_BLOCK)

    def pool_groups(part: slice) -> Iterator[None]:
        loops.pool_groups(
            queries.x, queries.order, queries.offset, queries.low, queries.high, queries.own, queries.own_weight,
            keys.x, keys.weight, keys.value, *cells, runs, part.start, part.stop, h, total, share, line.leave_out,
            True if degree == 2 else None, out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(pool_groups, cut(len(runs) - 1, RUNS_PER_CALL), n_jobs, progress)


def pool_laplace(line: SortedColumn, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Write Laplace-kernel sums of sorted one-dimensional queries to `out`; flag those that need direct summation."""
    # Flagged queries are to be computed key by key.
    keys, queries, bins, h = line.keys, line.queries, len(line.keys.low), line.bandwidth
    leftward, rightward, total = (np.empty((bins, 1 + len(keys.value))) for _ in range(3))

    def sum_bins(part: slice) -> Iterator[None]:
        laplace_loops.sum_bins(*keys, part.start, part.stop, h, leftward, rightward, total)
        yield

    def scan(whole: slice) -> Iterator[None]:
        for part in cut(whole.stop, BINS_PER_SCAN):
            laplace_loops.scan(keys.low, keys.high, part.start, part.stop, h, leftward, rightward)
            yield

    def pool(part: slice) -> Iterator[None]:
        blocks = QueryBlocks.cut(line, part, np.inf, line.queries_per_block)
        laplace_loops.find_runs(keys.low, keys.high, blocks.low, blocks.high, blocks.runs)
        found, _ = blocks.add_near(line, total, LAPLACE, 0)
        laplace_loops.finish(keys.low, keys.high, blocks.runs, blocks.place, queries.x, h, leftward, rightward, found)
        blocks.write_out(line, found, 0.5, LAPLACE, 0, out)
        yield

    run_blocks(sum_bins, cut(bins, BINS_PER_CALL), n_jobs, None)
    run_blocks(scan, [slice(0, bins)], 1, None)
    run_blocks(pool, cut(len(queries.x), LAPLACE_QUERIES), n_jobs, progress)
