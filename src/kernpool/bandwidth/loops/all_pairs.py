"""Compiled loops of the fast bandwidth criteria: kernel sums over pairs of rows, and their derivatives.

Two sets of loops. The first passes a block of rows over all rows as keys: weights, moments, and the derivatives of
the fit by each weight. Its tables have shape (rows of the block, n) and stay in the cache; every stage runs along
their rows. Exponents are in powers of two: a weight is ``2**-exponent``, and infinity means that the pair has no
weight.

The second visits every pair of a few rows once and adds it to the sums of both rows. Columns are scaled so that a
weight is ``2**-(squared distance)``, and rows are sorted by the first column. Inputs and sums have shape (columns,
rows), and every inner loop runs along rows. `kernel` and `moved` are buffers for one row.
"""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import exp2_minus_64, exp2_minus_64_unclamped
from kernpool.execution.compilation import bare_loop, bare_part

# Exponents: beyond LARGEST a weight is negligible, and never so small that its products are denormal and slow; and
# slopes are cut off at 1e217.
LARGEST, LEAST = 500.0, -721.0


@bare_loop
def square_distances(columns, unit, first, exponents):
    """Compute squared scaled distances of a block of rows to all rows: the exponents of their Gaussian weights."""
    d, n = columns.shape
    for r in range(exponents.shape[0]):
        i, row = first + r, exponents[r]
        for j in range(n):
            row[j] = 0.0
        for a in range(d):
            column, here, scale = columns[a], columns[a, i], unit[a]
            for j in range(n):
                offset = (column[j] - here) * scale
                row[j] += offset * offset


@bare_part
def _second_moment_offset(second, d, a):
    """Return the offset `p` such that the second moment of columns `a` and `e >= a` is stored at index ``p + e``."""
    return second + a * d - a * (a + 1) // 2


@bare_part
def _smallest(x, low):
    """Return the minimum of the array `x`, by repeated halving.

    Halving vectorises, a sequential minimum does not. `low` is a work array of the same size.
    """
    m = x.size
    for j in range(m):
        low[j] = x[j]
    while m > 1:
        half = (m + 1) // 2
        here, there = low[: m - half], low[half:m]
        for j in range(m - half):
            here[j] = min(here[j], there[j])
        m = half
    return low[0]


@bare_loop
def weigh(exponents, levels, tables, skipped, slopes, weight, own, first, shift, fixed, penalty, low, kernel):
    """Compute every row's weight for each row of a block: kernel value times categorical factors and frequency.

    Kernel values and categorical factors (`tables`) are given as exponents. Weights are in units of ``2**-shift``, one
    unit per row. If `fixed`, `shift` is an input; otherwise it is set to each row's smallest exponent, so that the
    largest product of kernel and factors is one. The factor of column `skipped` is replaced by its slope.
    """
    k, n = levels.shape
    for r in range(exponents.shape[0]):
        i, row, out = first + r, exponents[r], kernel[r]
        same = r > 0
        for b in range(k):
            same = same and levels[b, i] == levels[b, i - 1]
        if not same:
            for j in range(n):
                penalty[j] = 0.0
            for b in range(k):
                if b != skipped:
                    table, level = tables[b, levels[b, i]], levels[b]
                    for j in range(n):
                        penalty[j] += table[level[j]]
        for j in range(n):
            out[j] = row[j] + penalty[j]
        if own[i] == 0.0:
            out[i] = np.inf
        if not fixed:
            shift[i] = _smallest(out, low)
        unit = shift[i] if shift[i] < np.inf else 0.0
        for j in range(n):
            s = min(out[j] - unit, LARGEST)
            out[j] = exp2_minus_64_unclamped(max(s, LEAST)) * weight[j]
        out[i] *= own[i] / weight[i]
        if skipped >= 0:
            table, level = slopes[levels[skipped, i]], levels[skipped]
            for j in range(n):
                out[j] *= table[level[j]]


@bare_loop
def add_moments(kernel, columns, unit, value, first, degree, offset, weighted, sums):
    """Compute each row's kernel sums: of weights, of weighted values and, for local linear fits, moments of offsets.

    They are the denominator and the numerator of a pooling state. Second moments are summed four at a time, two columns
    with two, which read each column half as often.
    """
    d, n = columns.shape
    c = value.shape[0]
    second = 1 + c + d
    cross = second + d * (d + 1) // 2
    for r in range(kernel.shape[0]):
        i, row, total = first + r, kernel[r], 0.0
        for j in range(n):
            total += row[j]
        sums[i, 0] = total
        for b in range(c):
            column, total = value[b], 0.0
            for j in range(n):
                total += row[j] * column[j]
            sums[i, 1 + b] = total
        if degree == 0:
            continue
        for a in range(d):
            here, scale, column, t = columns[a, i], unit[a], columns[a], offset[a]
            for j in range(n):
                t[j] = (column[j] - here) * scale
        for a in range(0, d, 2):
            a1 = min(a + 1, d - 1)
            w0, w1, t0, t1, s0, s1 = weighted[0], weighted[1], offset[a], offset[a1], 0.0, 0.0
            for j in range(n):
                w0[j], w1[j] = row[j] * t0[j], row[j] * t1[j]
                s0 += w0[j]
                s1 += w1[j]
            sums[i, 1 + c + a], sums[i, 1 + c + a1] = s0, s1
            for b in range(c):
                column, s0, s1 = value[b], 0.0, 0.0
                for j in range(n):
                    s0 += w0[j] * column[j]
                    s1 += w1[j] * column[j]
                sums[i, cross + a * c + b], sums[i, cross + a1 * c + b] = s0, s1
            place, place1 = _second_moment_offset(second, d, a), _second_moment_offset(second, d, a1)
            for e in range(a, d, 2):
                e1 = min(e + 1, d - 1)
                t0, t1 = offset[e], offset[e1]
                s00, s01, s10, s11 = 0.0, 0.0, 0.0, 0.0
                for j in range(n):
                    s00 += w0[j] * t0[j]
                    s01 += w0[j] * t1[j]
                    s10 += w1[j] * t0[j]
                    s11 += w1[j] * t1[j]
                sums[i, place + e], sums[i, place + e1], sums[i, place1 + e1] = s00, s01, s11
                if e > a:
                    sums[i, place1 + e] = s10


@bare_loop
def differentiate_by_weights(columns, unit, value, first, base, tilt, intercept, slope, share, changes):
    """Compute derivatives of each row's fitted values with respect to its pair weights, up to a factor per row.

    Per output they are the linear weight, per unit of pair weight, times the local residual. Then follows the squared
    linear weight, for the hat diagonal; it is omitted where `changes` has no room for it.
    """
    n, c = columns.shape[1], value.shape[0]
    for r in range(changes.shape[0]):
        i = first + r
        for j in range(n):
            share[j] = base[i]
        for b in range(c):
            out, column, level = changes[r, b], value[b], intercept[i, b]
            for j in range(n):
                out[j] = column[j] - level
        for a in range(tilt.shape[1]):
            here, scale, column, tilted = columns[a, i], unit[a], columns[a], tilt[i, a]
            for j in range(n):
                share[j] += (column[j] - here) * scale * tilted
            for b in range(c):
                out, steep = changes[r, b], slope[i, a, b] * scale
                for j in range(n):
                    out[j] -= (column[j] - here) * steep
        for b in range(c):
            out = changes[r, b]
            for j in range(n):
                out[j] *= share[j]
        if changes.shape[1] > c:
            out = changes[r, c]
            for j in range(n):
                out[j] = share[j] * share[j]


@bare_loop
def differentiate_by_bandwidths(kernel, changes, columns, unit, ends, first, squared, moved, slopes, by_cell):
    """Compute derivatives of each row's fitted values with respect to the log bandwidths, up to a factor per row.

    They are sums over keys of weight times change times squared offset in bandwidths, where changes are derivatives by
    pair weights (`differentiate_by_weights`). Also compute the sums without offsets over each cell of rows of the same
    categories; cells end before `ends`.
    """
    d, n = columns.shape
    for r in range(kernel.shape[0]):
        i, row = first + r, kernel[r]
        for b in range(changes.shape[1]):
            out, change = moved[b], changes[r, b]
            for j in range(n):
                out[j] = row[j] * change[j]
            begin = 0
            for cell in range(ends.size):
                total = 0.0
                for j in range(begin, ends[cell]):
                    total += out[j]
                by_cell[r, b, cell], begin = total, ends[cell]
        for a in range(d):
            here, scale, column = columns[a, i], unit[a], columns[a]
            for j in range(n):
                u = (column[j] - here) * scale
                squared[j] = u * u
            for b in range(changes.shape[1]):
                out, total = moved[b], 0.0
                for j in range(n):
                    total += squared[j] * out[j]
                slopes[r, b, a] = total


@bare_part
def _weigh(columns, i, stop, kernel):
    """Compute the Gaussian weights of the pairs of row `i` and each row from ``i + 1`` to ``stop - 1``."""
    for a in range(columns.shape[0]):
        here, later = columns[a, i], columns[a, i + 1 : stop]
        for j in range(later.size):
            offset = later[j] - here
            kernel[j] = offset * offset if a == 0 else kernel[j] + offset * offset
    for j in range(stop - i - 1):
        kernel[j] = exp2_minus_64(kernel[j])


@bare_part
def _add(kernel, weighted, i, stop, sums):
    """Add the kernel-weighted values of row `i` to the sums of rows ``i + 1`` to ``stop - 1``, and vice versa."""
    for c in range(weighted.shape[0]):
        theirs, their_sums = weighted[c, i + 1 : stop], sums[c, i + 1 : stop]
        own, total = weighted[c, i], 0.0
        for j in range(theirs.size):
            their_sums[j] += kernel[j] * own
            total += kernel[j] * theirs[j]
        sums[c, i] += total


@bare_loop
def add_others(columns, weighted, reach, sums, kernel):
    """Add to each row's sums the kernel-weighted values of the other rows within `reach` in the first column."""
    stop, n = 0, columns.shape[1]
    for i in range(n):
        while stop < n and columns[0, stop] - columns[0, i] <= reach:
            stop += 1
        _weigh(columns, i, stop, kernel)
        _add(kernel, weighted, i, stop, sums)


@bare_loop
def sum_nearest(columns, weighted, alone, most, sums):
    """Compute one-column kernel sums at isolated rows, in units of the kernel value of each row's nearest neighbour.

    Sums run from the nearest neighbours outwards, as far as exponents of weights differ by at most `most`.
    """
    x, n = columns[0], columns.shape[1]
    for i in range(n):
        if not alone[i]:
            continue
        before = x[i] - x[i - 1] if i > 0 else np.inf
        after = x[i + 1] - x[i] if i + 1 < n else np.inf
        nearest = min(before, after)
        for c in range(weighted.shape[0]):
            sums[c, i] = 0.0
        for step in (-1, 1):
            j = i + step
            while 0 <= j < n:
                offset = abs(x[j] - x[i])
                s = (offset - nearest) * (offset + nearest)
                if s > most:
                    break
                kernel = exp2_minus_64(s)
                for c in range(weighted.shape[0]):
                    sums[c, i] += kernel * weighted[c, j]
                j += step


@bare_loop
def add_derivatives(columns, weighted, reach, sums, kernel, moved):
    """Add up derivatives of each row's kernel sums with respect to each log bandwidth, up to a common factor.

    They are sums of kernel weights times squared offsets: the derivatives up to the factor ``2 log(2)``, since offsets
    are in the unit in which a weight is ``2**-(squared distance)``. The sums have one table for each column.
    """
    stop, n = 0, columns.shape[1]
    for i in range(n):
        while stop < n and columns[0, stop] - columns[0, i] <= reach:
            stop += 1
        _weigh(columns, i, stop, kernel)
        for a in range(columns.shape[0]):
            here, later = columns[a, i], columns[a, i + 1 : stop]
            for j in range(later.size):
                offset = later[j] - here
                moved[j] = kernel[j] * (offset * offset)
            _add(moved, weighted, i, stop, sums[a])
