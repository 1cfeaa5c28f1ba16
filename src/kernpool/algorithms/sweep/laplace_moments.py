"""The Laplace kernel on a line with the moments of a local linear fit; see `laplace_moment_loops.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernpool.algorithms.sweep.line import Line
from kernpool.algorithms.sweep.loops import laplace_moments as loops
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks

BINS_PER_CALL = 1 << 12
BINS_PER_TRAVEL = 1 << 17
GROUPS_PER_CALL = 1 << 11


def reduce(line: Line, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Pool into `out`; denominators of -1 mark the queries that have to be done key by key."""
    keys, queries, bins, h = line.keys, line.queries, len(line.keys.low), line.bandwidth
    leftward, rightward = (np.empty((bins, 1 + out.numerator.shape[1])) for _ in range(2))
    total = np.empty((bins, 1 + len(keys.value)))

    def sum_bins(part: slice) -> Iterator[None]:
        loops.sum_bins(
            keys.x, keys.weight, keys.value, keys.offset, keys.low, keys.high, part.start, part.stop, h,
            leftward, rightward, total,
        )  # fmt: skip
        yield

    def travel(whole: slice) -> Iterator[None]:
        for part in cut(whole.stop, BINS_PER_TRAVEL):
            loops.travel(keys.low, keys.high, part.start, part.stop, h, leftward, rightward)
            yield

    def pool_groups(part: slice) -> Iterator[None]:
        loops.pool_groups(
            queries.x, queries.order, queries.offset, queries.low, queries.high, queries.own, queries.own_weight,
            keys.x, keys.weight, keys.value, keys.offset, keys.low, keys.high, part.start, part.stop, h,
            leftward, rightward, total, line.leave_out, out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(sum_bins, cut(bins, BINS_PER_CALL), n_jobs, None)
    run_blocks(travel, [slice(0, bins)], 1, None)
    run_blocks(pool_groups, cut(len(queries.low), GROUPS_PER_CALL), n_jobs, progress)
