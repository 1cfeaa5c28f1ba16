"""The Gaussian kernel on a line with the moments of a local linear fit; see `taylor_moment_loops.py`."""

from __future__ import annotations

from collections.abc import Iterator

from kernpool.algorithms.sweep.gaussian import BLOCK, share_of, sum_cells
from kernpool.algorithms.sweep.line import Line
from kernpool.algorithms.sweep.loops import gaussian_moments as loops
from kernpool.algorithms.sweep.loops.gaussian import join
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks

QUERIES_PER_RUN = 1 << 12
RUNS_PER_CALL = 16


def reduce(line: Line, tol: float, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Pool into `out`; some denominators mark the queries that are left over, to be done key by key."""
    keys, queries, h = line.keys, line.queries, line.bandwidth
    cells, share, total = sum_cells(line, n_jobs), share_of(line, tol), line.total_weight
    runs = join(queries.low, queries.high, queries.offset, BLOCK * h, QUERIES_PER_RUN)

    def pool_groups(part: slice) -> Iterator[None]:
        loops.pool_groups(
            queries.x, queries.order, queries.offset, queries.low, queries.high, queries.own, queries.own_weight,
            keys.x, keys.weight, keys.value, *cells, runs, part.start, part.stop, h, total, share, line.leave_out,
            out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(pool_groups, cut(len(runs) - 1, RUNS_PER_CALL), n_jobs, progress)
