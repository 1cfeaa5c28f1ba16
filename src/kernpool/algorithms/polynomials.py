"""Compact polynomial kernels on a line: the moments of cells, then the queries; see `polynomial_loops.py`."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np

from kernpool.algorithms import polynomial_loops as loops
from kernpool.algorithms.line import Line
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.progress import Progress
from kernpool.state import PoolState

# K(u) = height (1 - |u|**inner)**outer inside of the support
POLYNOMIALS = {
    "boxcar": (1.0, 2, 0),
    "epanechnikov": (3 / 4, 2, 1),
    "triangular": (1.0, 1, 1),
    "biweight": (15 / 16, 2, 2),
    "triweight": (35 / 32, 2, 3),
    "tricube": (70 / 81, 3, 3),
}
BINS_PER_CALL = 1 << 12  # cells end at multiples of it, so that the parts can be made side by side
GROUPS_PER_CALL = 1 << 12


def reduce(line: Line, name: str, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Pool into `out`; denominators of -1 mark the queries that have to be done key by key."""
    keys, kernel = line.keys, make_profile(name)
    bins = len(keys.low)
    shape = (bins, 1 + len(keys.value), len(kernel.coefficient))
    cells = loops.Cells(
        np.empty(bins, np.int64), np.empty(bins, np.int64), np.empty(bins), np.zeros(shape), np.empty(shape)
    )

    def make_cells(part: slice) -> Iterator[None]:
        loops.make_cells(keys, part.start, part.stop, line.bandwidth, cells)
        yield

    run_blocks(make_cells, cut(bins, BINS_PER_CALL), n_jobs, None)

    def pool_groups(part: slice) -> Iterator[None]:
        loops.pool_groups(
            line.queries, keys, cells, part.start, part.stop, line.bandwidth, kernel, line.leave_out,
            out.denominator, out.numerator,
        )  # fmt: skip
        yield

    run_blocks(pool_groups, cut(len(line.queries.low), GROUPS_PER_CALL), n_jobs, progress)


def make_profile(name: str) -> loops.Profile:
    """Write a kernel as `polynomial_loops.py` wants it."""
    height, inner, outer = POLYNOMIALS[name]
    coefficient = np.zeros(inner * outer + 1)
    coefficient[::inner] = [height * (-1) ** k * comb(outer, k) for k in range(outer + 1)]
    binomial = np.array([[comb(p, r) for r in range(len(coefficient))] for p in range(len(coefficient))], dtype=float)
    factors = np.concatenate([np.eye(3)[inner - 1], height * np.eye(4)[outer]])
    return loops.Profile(coefficient, binomial, factors, inner % 2 == 1)
