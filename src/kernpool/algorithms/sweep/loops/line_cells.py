"""Compiled loops for cells of a line: moments of the keys in each cell, and their power series at queries.

Inside one cell the weight of a key is a power series. With its position ``s = (k - c) / h`` in the cell and the
distance ``d = |q - c| / h`` of the query from the center of the cell,

    sum w K(|q - k| / h) = sum_p C_p(d) sum w s**p,   where   K(d +- s) = sum_p C_p(d) s**p

Keys are visited once, in any order and wherever they lie in memory, to sum their moments ``w s**p``. Moments are only
ever added, so nothing cancels. There are few C_p for polynomials; for exponentials they fall off quickly, the faster
the narrower the cell.
"""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import LOG2_E, exp2
from kernpool.algorithms.sweep.loops.near_pairs import UNDONE
from kernpool.execution.compilation import loop, part

TILE = 512
# A sum must not be small compared with its terms. Measured at this limit: errors below a thousandth of the guarantee.
LEAST_SHARE = 0.01
# The truncation error of Gaussian series is relative to the weight at hand, 1e-18 of it, and not to the sum.
LEAST_HEIGHT = 1e-3


@part
def find_cells(x, begin, size, low, scale, slots, edge, cell):
    """Write the cell index of each of `size` numbers to `cell`, by the lookup table of `Edges.slots`."""
    last = slots.size - 2.0
    for j in range(size):
        cell[j] = int(min(max((x[begin + j] - low) * scale, 0.0), last))
    for j in range(size):
        first, stop = slots[cell[j]], slots[cell[j] + 1]
        while first < stop:
            middle = (first + stop) >> 1
            if edge[middle] <= x[begin + j]:
                first = middle + 1
            else:
                stop = middle
        cell[j] = first


@loop
def add_keys(x, weight, value, low, scale, slots, edge, center, h, moment):
    """Add weighted powers of keys' positions, and these times values, to the moments of the keys' cells.

    These are ``w s**p``, and that times the value. Moments are (columns, cells, terms, 2), of an even number of terms:
    four numbers that lie side by side are one vector. That, and indices without a sign, makes 10 terms take 12 ns;
    plain loops over terms and columns took 40 ns.
    """
    cell, s = np.empty(TILE, np.int64), np.empty(TILE)
    inverse = 1.0 / h
    columns, row = moment.shape[0], np.uint64(2 * moment.shape[2])
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    flat = moment.reshape((columns, moment.size // columns))
    for begin in range(0, x.size, TILE):
        size = min(TILE, x.size - begin)
        find_cells(x, begin, size, low, scale, slots, edge, cell)
        for j in range(size):
            # Unused cells may be wide; clamping avoids overflow there.
            s[j] = min(max((x[begin + j] - center[cell[j]]) * inverse, -1.0), 1.0)
        for c in range(columns):
            for j in range(size):
                w = weight[begin + j] if weight.size else 1.0
                w_value = w * value[begin + j, c]
                w_s, w_value_s, square = w * s[j], w_value * s[j], s[j] * s[j]
                k = np.uint64(cell[j]) * row
                stop = k + row
                while k < stop:
                    flat[c, k] += w
                    flat[c, k + one] += w_value
                    flat[c, k + two] += w_s
                    flat[c, k + three] += w_value_s
                    w *= square
                    w_value *= square
                    w_s *= square
                    w_value_s *= square
                    k += four


@loop
def join_cells(low, high, width):
    """Join consecutive cells into blocks of limited width; return each cell's block and each block's first cell.

    The first cell and the last, which are unbounded, are blocks by themselves, as is a cell that is wider.
    """
    cells = low.size + 2
    block, start = np.zeros(cells, np.int64), np.zeros(cells + 1, np.int64)
    number, first = 1, 0
    for k in range(1, cells):
        if k == 1 or k == cells - 1 or high[k - 1] - low[first] > width:
            start[number], first = k, min(k - 1, low.size - 1)
            number += 1
        block[k] = number - 1
    start[number] = cells
    return block, start[: number + 1].copy()


@loop
def accumulate(start, moment, prefix, suffix):
    """Write cumulative sums of moments within each block of cells, forward to `prefix` and backward to `suffix`."""
    for c in range(moment.shape[0]):
        for b in range(start.size - 1):
            for k in range(start[b], start[b + 1]):
                for i in range(moment.shape[2]):
                    before = prefix[c, k - 1, i] if k > start[b] else 0.0
                    prefix[c, k, i] = before + moment[c, k, i]
            for k in range(start[b + 1] - 1, start[b] - 1, -1):
                for i in range(moment.shape[2]):
                    after = suffix[c, k + 1, i] if k + 1 < start[b + 1] else 0.0
                    suffix[c, k, i] = after + moment[c, k, i]


@part
def make_series(series, d, side, half_width, polynomial, coefficient):
    """Write the power series in s of the kernel ``K(d + side * s)`` to `series`; return a bound on its terms."""
    terms = series.size
    if polynomial:
        # Near the edge of the support in powers of the distance from there: small weights keep their digits.
        row, place, sign = 0, d, side
        if d > 0.5:
            row, place, sign = 1, 1.0 - d, -side
        for p in range(terms):
            series[p] = coefficient[row, p]
        for r in range(terms):  # Taylor coefficients by repeated synthetic division
            for p in range(terms - 2, r - 1, -1):
                series[p] += place * series[p + 1]
        size, power, signs = 0.0, 1.0, 1.0
        for p in range(terms):
            size += abs(series[p]) * power
            series[p] *= signs
            power *= half_width
            signs *= sign
        return size
    height = exp2(-0.5 * LOG2_E * d * d)
    now, before = height, 0.0
    for p in range(terms):  # from K' = -u K, with 1 / (p + 1)
        series[p] = now
        now, before = coefficient[0, p] * (side * d * now + before), now
    return max(height, LEAST_HEIGHT)


@loop
def pool_queries(
    query, first, middle, last, block, start, center, half_width, prefix, suffix, h, polynomial, coefficient,
    denominator, numerator,
):  # fmt: skip
    """Write kernel sums from moments of cells, by power series; flag queries that need direct summation.

    Cells ``first`` to ``middle`` are on the left of a query, ``middle`` to ``last`` on its right. Flagged queries have
    the denominator `UNDONE`, and are to be computed key by key.
    """
    terms, columns = coefficient.shape[1], prefix.shape[0]
    series, total = np.empty(terms), np.empty(columns)
    for i in range(query.size):
        size, sum_weight = 0.0, 0.0
        for c in range(columns):
            total[c] = 0.0
        for half in range(2):
            side, k, stop = -1.0, first[i], middle[i]
            if half:
                side, k, stop = 1.0, middle[i], last[i]
            while k < stop:
                b = block[k]
                end = min(start[b + 1], stop)
                # A piece of a block begins or ends with it, because half a window is longer than a block.
                moments, at = (prefix, end - 1) if k == start[b] else (suffix, k)
                if moments[0, at, 0] > 0.0:
                    d = side * (center[k] - query[i]) / h
                    size += moments[0, at, 0] * make_series(series, d, side, half_width[k], polynomial, coefficient)
                    for p in range(terms):
                        sum_weight += series[p] * moments[0, at, 2 * p]
                        total[0] += series[p] * moments[0, at, 2 * p + 1]
                    for c in range(1, columns):
                        for p in range(terms):
                            total[c] += series[p] * moments[c, at, 2 * p + 1]
                k = end
        denominator[i] = sum_weight if size == 0.0 or sum_weight > LEAST_SHARE * size else UNDONE
        for c in range(columns):
            numerator[i, c] = total[c]


@loop
def pool_laplace(query, first, middle, last, center, h, leftward, rightward, denominator, numerator):
    """Write Laplace-kernel sums of queries, from two sums per cell: for queries on its left and on its right.

    Weights are ``exp(-|q - k| / h)``, times the height 1/2.
    """
    rate = LOG2_E / h
    for c in range(leftward.shape[0]):
        for i in range(query.size):
            total = 0.0
            for k in range(first[i], middle[i]):
                total += exp2((center[k] - query[i]) * rate) * rightward[c, k]
            for k in range(middle[i], last[i]):
                total += exp2((query[i] - center[k]) * rate) * leftward[c, k]
            if c == 0:
                denominator[i] = 0.5 * total
            else:
                numerator[i, c - 1] = 0.5 * total
