"""Compact polynomial kernels on a line: the moments of cells, then the queries; see `loops/polynomials.py`."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb, perm

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.sweep.line import Line
from kernpool.algorithms.sweep.loops import polynomials as loops
from kernpool.algorithms.sweep.near import QueryBlocks
from kernpool.core.state import PoolState
from kernpool.execution.progress import Progress
from kernpool.execution.threads import cut, run_blocks
from kernpool.kernels.forms import Polynomial

Array = NDArray[np.float64]

BINS_PER_CALL = 1 << 12
BINS_PER_SUM = 1 << 18
QUERIES_PER_CALL = 1 << 14
CELL, BLOCK = 0.5, 0.25  # widths in bandwidths, at most
# What terms of a polynomial sum to between the middles of a block and of a cell, in bandwidths, is 50 for the largest
# kernel that has a name and 2500 for its square: sums that are small beside them are done again earlier. They are right
# to 5e-12, an inference asks for 1e-11.
FARTHEST, TERMS_OF_HIGH = 1.39, 1.0 / 670.0


def pool_polynomial(line: Line, form: Polynomial, out: PoolState, n_jobs: int, progress: Progress | None) -> None:
    """Pool into `out`; queries that have to be done key by key are marked."""
    keys, queries, h = line.keys, line.queries, line.bandwidth
    height, inner, outer = form.height, form.inner, form.outer
    polynomial, bins, columns = derivatives(inner, outer), len(keys.low), 1 + len(keys.value)
    terms, doubt = polynomial.shape[1], max(1.0, TERMS_OF_HIGH * (1.0 + FARTHEST**inner) ** outer)
    start, cell_of = np.empty(bins + 1, np.int64), np.empty(bins, np.int64)
    loops.join(keys.offset, keys.low, keys.high, CELL * h, start, cell_of)
    moment = np.empty((2, bins, columns, terms))

    def sum_bins(part: slice) -> Iterator[None]:
        scratch = np.zeros((1 + columns, loops.TILE))  # a weight of zero times what happens to be there may be NaN
        loops.sum_bins(*keys, start, cell_of, h, part.start, part.stop, scratch, moment)
        yield

    def add_up(side: slice) -> Iterator[None]:
        for part in cut(bins, BINS_PER_SUM):
            loops.add_up(moment, cell_of, side.start, part.start, part.stop)
            yield

    def pool(part: slice) -> Iterator[None]:
        blocks = QueryBlocks.cut(line, part, BLOCK * h, line.queries_per_block)
        loops.find_runs(keys.offset, keys.low, keys.high, blocks.low, blocks.high, h, inner % 2 == 1, blocks.runs)
        number = len(blocks.low)
        local, degree, far_weight = np.empty((number, columns, terms)), np.empty(number, np.int64), np.empty(number)
        loops.add_far(
            keys.low, keys.high, start, cell_of, moment, blocks.runs, blocks.low, blocks.high, h, polynomial,
            np.empty(terms), local, degree, far_weight,
        )  # fmt: skip
        far_weight *= doubt
        found, near_weight = blocks.add_near(line, moment[0, :, :, 0], inner, outer)
        loops.finish(
            keys.x, keys.offset, blocks.runs, blocks.place, blocks.low, blocks.high, queries.x, h, height,
            loops.EDGE_SHARE**outer if outer else 0.0, local, degree,
            far_weight, near_weight, found,
        )  # fmt: skip
        blocks.write_out(line, found, height, inner, outer, out)
        yield

    run_blocks(sum_bins, cut(bins, BINS_PER_CALL), n_jobs, None)
    run_blocks(add_up, [slice(loops.PREFIX, loops.PREFIX + 1), slice(loops.SUFFIX, loops.SUFFIX + 1)], n_jobs, None)
    run_blocks(pool, cut(len(queries.x), QUERIES_PER_CALL), n_jobs, progress)


def derivatives(inner: int, outer: int) -> Array:
    """Coefficients of all derivatives of ``(1 - |u|**inner)**outer``, for positive and for negative u.

    Returns
    -------
    ndarray of shape (2, degree + 1, degree + 1)
        At ``[side, p, k]`` the coefficient of ``u**p`` in derivative k.
    """
    degree = inner * outer
    table = np.zeros((2, degree + 1, degree + 1))
    for power in range(outer + 1):
        p = inner * power
        for k in range(p + 1):
            table[:, p - k, k] = (-1) ** power * comb(outer, power) * perm(p, k)
            table[1, p - k, k] *= (-1) ** p
    return table
