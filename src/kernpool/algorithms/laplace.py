"""The Laplace kernel on a line: sums that travel along it, then the queries; see `laplace_loops.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernpool.algorithms import laplace_loops as loops
from kernpool.algorithms.line import Line
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.progress import Progress
from kernpool.state import PoolState

BINS_PER_CALL = 1 << 12
BINS_PER_TRAVEL = 1 << 18
GROUPS_PER_CALL = 1 << 12


def reduce(line: Line, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Pool into `out`; denominators of -1 mark the queries that have to be done key by key."""
    keys, bins = line.keys, len(line.keys.low)
    leftward, rightward, total = (np.empty((bins, 1 + len(keys.value))) for _ in range(3))

    def sum_bins(part: slice) -> Iterator[None]:
        loops.sum_bins(keys, part.start, part.stop, line.bandwidth, leftward, rightward, total)
        yield

    def travel(whole: slice) -> Iterator[None]:
        for part in cut(whole.stop, BINS_PER_TRAVEL):
            loops.travel(keys, part.start, part.stop, line.bandwidth, leftward, rightward)
            yield

    def pool_groups(part: slice) -> Iterator[None]:
        loops.pool_groups(
            line.queries, keys, part.start, part.stop, line.bandwidth, leftward, rightward, total, line.leave_out,
            out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(sum_bins, cut(bins, BINS_PER_CALL), n_jobs, None)
    run_blocks(travel, [slice(0, bins)], 1, None)
    run_blocks(pool_groups, cut(len(line.queries.low), GROUPS_PER_CALL), n_jobs, progress)
