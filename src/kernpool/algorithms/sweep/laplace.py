"""The Laplace kernel on a line: sums that travel along it, then the queries; see `laplace_loops.py`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kernpool.algorithms.sweep.line import Line
from kernpool.algorithms.sweep.loops import laplace as loops
from kernpool.algorithms.sweep.loops.near import LAPLACE
from kernpool.algorithms.sweep.near import Blocks
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks

BINS_PER_CALL = 1 << 12
BINS_PER_TRAVEL = 1 << 18
QUERIES_PER_CALL = 1 << 14


def reduce(line: Line, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Pool into `out`; denominators of -1 mark the queries that have to be done key by key."""
    keys, queries, bins, h = line.keys, line.queries, len(line.keys.low), line.bandwidth
    leftward, rightward, total = (np.empty((bins, 1 + len(keys.value))) for _ in range(3))

    def sum_bins(part: slice) -> Iterator[None]:
        loops.sum_bins(*keys, part.start, part.stop, h, leftward, rightward, total)
        yield

    def travel(whole: slice) -> Iterator[None]:
        for part in cut(whole.stop, BINS_PER_TRAVEL):
            loops.travel(keys.low, keys.high, part.start, part.stop, h, leftward, rightward)
            yield

    def pool(part: slice) -> Iterator[None]:
        blocks = Blocks.cut(line, part, np.inf, line.queries_per_block)
        loops.find_runs(keys.low, keys.high, blocks.low, blocks.high, blocks.runs)
        found, _ = blocks.add_near(line, total, LAPLACE, 0)
        loops.finish(keys.low, keys.high, blocks.runs, blocks.place, queries.x, h, leftward, rightward, found)
        blocks.write_out(line, found, 0.5, LAPLACE, 0, out)
        yield

    run_blocks(sum_bins, cut(bins, BINS_PER_CALL), n_jobs, None)
    run_blocks(travel, [slice(0, bins)], 1, None)
    run_blocks(pool, cut(len(queries.x), QUERIES_PER_CALL), n_jobs, progress)
