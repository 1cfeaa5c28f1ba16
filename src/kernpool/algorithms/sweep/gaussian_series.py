"""Gaussian sums in one column: moments of cells of keys, Taylor series about blocks of queries.

The compiled series are in `loops/gaussian_series.py`; local linear and quadratic fits use their derivatives.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.sweep.loops import gaussian_series as loops
from kernpool.algorithms.sweep.loops import gaussian_series as moment_loops
from kernpool.algorithms.sweep.loops.near_pairs import GAUSSIAN
from kernpool.algorithms.sweep.sorted_column import SortedColumn
from kernpool.algorithms.sweep.windows import QueryBlocks
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks

Array = NDArray[np.float64]

KEYS_PER_CELL = 1 << 16  # 5 ms
CELLS_PER_CALL = 16
QUERIES_PER_BLOCK, QUERIES_PER_CALL = 1 << 12, 1 << 15
RUNS_PER_CALL = 16  # of queries, for moments
TILE = 512
CELL, BLOCK = 0.5, 0.25  # widths in bandwidths, at most


def sum_cells(line: SortedColumn, n_jobs: int) -> tuple[Array, Array, NDArray[np.int64], Array]:
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


def pool_weights(line: SortedColumn, tol: float, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
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


def pool_moments(
    line: SortedColumn, tol: float, out: PoolState, n_jobs: int, progress: Progress | None, degree: int = 1
) -> None:
    """Write Gaussian moment sums for local linear or quadratic fits to `out`; flag queries that need direct sums."""
    # Queries are sorted and one-dimensional. Flagged ones are to be computed key by key.
    keys, queries, h = line.keys, line.queries, line.bandwidth
    cells, share, total = sum_cells(line, n_jobs), share_of(line, tol), line.total_weight
    runs = loops.join(queries.low, queries.high, queries.offset, BLOCK * h, QUERIES_PER_BLOCK)

    def pool_groups(part: slice) -> Iterator[None]:
        moment_loops.pool_groups(
            queries.x, queries.order, queries.offset, queries.low, queries.high, queries.own, queries.own_weight,
            keys.x, keys.weight, keys.value, *cells, runs, part.start, part.stop, h, total, share, line.leave_out,
            True if degree == 2 else None, out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(pool_groups, cut(len(runs) - 1, RUNS_PER_CALL), n_jobs, progress)
