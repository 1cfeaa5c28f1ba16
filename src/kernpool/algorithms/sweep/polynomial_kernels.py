"""Compact polynomial kernels in one column: weighted means by moments of cells, local fits by panels of queries.

Weighted means use the compiled loops in `loops/polynomial_kernels.py`.

Local fits use panels. Moments about one point are sums of values like any other: offsets of keys from it, their
squares, their products with values. The moments about a query follow by a shift, which costs no digits if the point
is near. So the line is cut into panels of queries two bandwidths wide, each with the keys in its reach and with its
middle as the point. A shift is at most one bandwidth, and each key belongs to two or three panels. For local
quadratic fits, whose sums have fourth powers, panels are half as wide: the middle is then at most half a bandwidth
away, and a shift loses a sixteenth as much. Panels with few pairs are computed key by key.
"""

from collections.abc import Iterator
from dataclasses import replace
from math import comb, perm

import numpy as np

from kernpool._arrays import Array
from kernpool.algorithms.sweep.loops import polynomial_kernels as loops
from kernpool.algorithms.sweep.loops.gaussian_series import join
from kernpool.algorithms.sweep.loops.near_pairs import UNDONE
from kernpool.algorithms.sweep.sorted_column import SortedColumn, SortedKeys, SortedQueries, with_moments
from kernpool.algorithms.sweep.windows import QueryBlocks
from kernpool.core import Layout, PoolState
from kernpool.execution import Progress, cut, run_blocks
from kernpool.kernels import Polynomial

BINS_PER_CALL = 1 << 12
BINS_PER_SUM = 1 << 18
QUERIES_PER_CALL = 1 << 14
CELL, BLOCK = 0.5, 0.25  # widths in bandwidths, at most
# Between the middles of a block and of a cell, in bandwidths, the absolute terms of a polynomial sum to 50 for the
# largest named kernel and to 2500 for its square: for the latter, small sums are recomputed earlier. They are right to
# 5e-12; inference needs 1e-11.
FARTHEST, TERMS_OF_HIGH = 1.39, 1.0 / 670.0


def pool_polynomial(
    line: SortedColumn, form: Polynomial, out: PoolState, n_jobs: int, progress: Progress | None
) -> None:
    """Write polynomial-kernel sums of sorted one-dimensional queries to `out`; flag those that need direct sums."""
    # Flagged queries are to be computed key by key.
    keys, queries, h = line.keys, line.queries, line.bandwidth
    height, inner, outer = form.height, form.inner, form.outer
    polynomial, bins, columns = derivatives(inner, outer), len(keys.low), 1 + len(keys.value)
    terms, doubt = polynomial.shape[1], max(1.0, TERMS_OF_HIGH * (1.0 + FARTHEST**inner) ** outer)
    start, cell_of = np.empty(bins + 1, np.int64), np.empty(bins, np.int64)
    loops.join(keys.offset, keys.low, keys.high, CELL * h, start, cell_of)
    moment = np.empty((2, bins, columns, terms))

    def sum_bins(part: slice) -> Iterator[None]:
        scratch = np.zeros((1 + columns, loops.BIN_TILE))  # a weight of zero times what happens to be there may be NaN
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
    """Return the polynomial coefficients of all derivatives of ``(1 - |u|**inner)**outer``, for u > 0 and u < 0."""
    degree = inner * outer
    table = np.zeros((2, degree + 1, degree + 1))
    for power in range(outer + 1):
        p = inner * power
        for k in range(p + 1):
            table[:, p - k, k] = (-1) ** power * comb(outer, power) * perm(p, k)
            table[1, p - k, k] *= (-1) ** p
    return table


WIDTH = (0.0, 2.0, 1.0)  # bandwidths, by degree
NEAR = 0.01  # mean squared offset, relative to the squared shift, that keeps twelve digits
NEAR_FOURTH = 0.003  # mean fourth power, relative to that of the shift
FEW = 1 << 17  # pairs, up to which visiting them is faster than setting a panel up


def pool_panels(
    line: SortedColumn, form: Polynomial, out: PoolState, n_jobs: int, progress: Progress | None, degree: int = 1
) -> None:
    """Write polynomial-kernel moment sums for local fits to `out`; queries that need direct summation stay flagged."""
    # Panels of queries are summed one after another. All queries are flagged before; those that stay so are to be
    # computed key by key.
    keys, queries, h, width = line.keys, line.queries, line.bandwidth, WIDTH[degree]
    starts = join(queries.low, queries.high, queries.offset, width * h, len(queries.x))
    low, high = queries.low[starts[:-1]], queries.high[starts[1:] - 1]
    reach = h * (1.0 + 1e-12) + 4.0 * np.finfo(float).eps * np.maximum(np.abs(low), np.abs(high))
    first, last = keys.bins_between(low - reach, high + reach)
    pairs = (keys.offset[last] - keys.offset[first]) * np.diff(queries.offset[starts])
    panels = np.flatnonzero((high - low <= width * h) & (pairs > FEW))
    layout = Layout(len(keys.value), 1, degree)
    for done, i in enumerate(panels):
        middle = 0.5 * low[i] + 0.5 * high[i]
        panel = _cut(line, slice(first[i], last[i]), slice(starts[i], starts[i + 1]), middle, degree)
        pool_polynomial(panel, form, out, n_jobs, None)
        rows, shift = panel.queries.order, (middle - panel.queries.x) / h
        denominator = out.denominator[rows]
        moved = layout.moved(denominator, out.numerator[rows], shift[:, None])
        # Of keys much nearer to the query than the middle is, digits are lost.
        near = moved[:, layout.second.start] < NEAR * denominator * shift**2
        if degree == 2:
            near |= moved[:, layout.fourth.start] < NEAR_FOURTH * denominator * shift**4
        out.numerator[rows], out.denominator[rows] = moved, np.where(near, UNDONE, denominator)
        if progress is not None:
            progress(done + 1, len(panels))


def _cut(line: SortedColumn, key_bins: slice, query_groups: slice, middle: float, degree: int) -> SortedColumn:
    """Return a slice of sorted keys and queries, with powers of offsets from `middle` as further value columns."""
    keys, queries = line.keys, line.queries
    start, stop = int(keys.offset[key_bins.start]), int(keys.offset[key_bins.stop])
    begin, end = int(queries.offset[query_groups.start]), int(queries.offset[query_groups.stop])
    offset = (keys.x[start:stop] - middle) / line.bandwidth
    own = queries.own
    if line.leave_out:
        own = queries.own[begin:end] - start
        own = np.where((own >= 0) & (own < stop - start), own, -1)  # out of reach it has no weight anyway
    return replace(
        line,
        keys=SortedKeys(
            keys.x[start:stop],
            keys.weight[start:stop],
            with_moments(keys.value[:, start:stop], offset, degree),
            keys.offset[key_bins.start : key_bins.stop + 1] - start,
            keys.low[key_bins],
            keys.high[key_bins],
        ),
        queries=SortedQueries(
            queries.x[begin:end],
            queries.order[begin:end],
            queries.offset[query_groups.start : query_groups.stop + 1] - begin,
            queries.low[query_groups],
            queries.high[query_groups],
            own,
            queries.own_weight[begin:end] if line.leave_out else queries.own_weight,
        ),
    )
