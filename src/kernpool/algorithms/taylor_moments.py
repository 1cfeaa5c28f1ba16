"""The Gaussian kernel on a line with the moments of a local linear fit; see `taylor_moment_loops.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernpool.algorithms import taylor_moment_loops as loops
from kernpool.algorithms.line import Line
from kernpool.algorithms.taylor_loops import join
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.progress import Progress
from kernpool.state import PoolState

KEYS_PER_CELL = 1 << 16  # 5 ms
QUERIES_PER_RUN = 1 << 12
CELLS_PER_CALL = 16
RUNS_PER_CALL = 16


def reduce(line: Line, tol: float, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Pool into `out`; denominators of -1 mark the queries that have to be done key by key."""
    keys, queries, h = line.keys, line.queries, line.bandwidth
    starts = join(keys.low, keys.high, keys.offset, 0.5 * h, KEYS_PER_CELL)
    cells = loops.TaylorCells(
        keys.low[starts[:-1]],
        keys.high[starts[1:] - 1],
        keys.offset[starts],
        np.empty((len(starts) - 1, 1 + len(keys.value), loops.MOMENTS)),
    )
    runs = join(queries.low, queries.high, queries.offset, 0.25 * h, QUERIES_PER_RUN)
    share = 0.5 * tol if line.leave_out else tol  # half of the sum may be the own key, which is taken away
    total = float(keys.weight.sum()) if keys.weight.size else float(len(keys.x))

    def sum_cells(part: slice) -> Iterator[None]:
        for cell in range(part.start, part.stop):
            loops.sum_cells(keys, cells, cell, cell + 1, h)
            yield

    def pool_groups(part: slice) -> Iterator[None]:
        loops.pool_groups(
            queries, keys, cells, runs, part.start, part.stop, h, total, share, line.leave_out,
            out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(sum_cells, cut(len(cells.low), CELLS_PER_CALL), n_jobs, None)
    run_blocks(pool_groups, cut(len(runs) - 1, RUNS_PER_CALL), n_jobs, progress)
