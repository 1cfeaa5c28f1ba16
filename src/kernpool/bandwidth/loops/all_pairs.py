"""Compiled loops over some rows, each with all rows as its keys: weights, moments, and what the fit makes of a pair.

A block of rows has tables of shape (rows of the block, n), which stay in the cache: every stage goes along their rows.
Exponents are in powers of two, of which a weight is ``2**-exponent``; infinity is a pair of no weight.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.loops.exponential import exp2_minus_64_unclamped
from kernpool.execution.compiling import bare_loop

LARGEST, LEAST = 1021.0, -721.0  # exponents: beyond, a weight is next to none, or its slope is cut off at 1e217


@bare_loop
def add_squares(columns, unit, first, exponents):
    """Write the exponents of Gaussian weights: squared offsets in units, by groups of columns that share a pass."""
    d, n = columns.shape
    for r in range(exponents.shape[0]):
        i, row, a = first + r, exponents[r], 0
        for j in range(n):
            row[j] = 0.0
        while a + 3 < d:
            x0, x1, x2, x3 = columns[a], columns[a + 1], columns[a + 2], columns[a + 3]
            h0, h1, h2, h3 = x0[i], x1[i], x2[i], x3[i]
            c0, c1, c2, c3 = unit[a], unit[a + 1], unit[a + 2], unit[a + 3]
            for j in range(n):
                u0, u1, u2, u3 = (x0[j] - h0) * c0, (x1[j] - h1) * c1, (x2[j] - h2) * c2, (x3[j] - h3) * c3
                row[j] += (u0 * u0 + u1 * u1) + (u2 * u2 + u3 * u3)
            a += 4
        while a < d:
            x0, h0, c0 = columns[a], columns[a, i], unit[a]
            for j in range(n):
                u0 = (x0[j] - h0) * c0
                row[j] += u0 * u0
            a += 1


@bare_loop
def weigh(exponents, levels, tables, skipped, slopes, weight, own, first, shift, fixed, penalty, kernel):
    """Turn exponents into weights, with the factors of levels and frequencies, in units of each row's largest.

    `tables` holds exponents of factors. The column `skipped` is left out, and its slopes multiply. Then, and always
    where it is `fixed`, the shift is not that of the weights but given.
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
            least = np.inf
            for j in range(n):
                least = min(least, out[j])
            shift[i] = least
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
    """Write the sums of a pooling state of each row: the denominator, then its numerator."""
    d, n = columns.shape
    c = value.shape[0]
    for r in range(kernel.shape[0]):
        i, row, place, total = first + r, kernel[r], 1 + c, 0.0
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
            here, scale, column, out = columns[a, i], unit[a], columns[a], offset[a]
            total = 0.0
            for j in range(n):
                t = (column[j] - here) * scale
                out[j] = t
                total += row[j] * t
            sums[i, place + a] = total
        place += d
        cross = place + d * (d + 1) // 2
        for a in range(d):
            ours = offset[a]
            for j in range(n):
                weighted[j] = row[j] * ours[j]
            for e in range(a, d):
                theirs, total = offset[e], 0.0
                for j in range(n):
                    total += weighted[j] * theirs[j]
                sums[i, place] = total
                place += 1
            for b in range(c):
                column, total = value[b], 0.0
                for j in range(n):
                    total += weighted[j] * column[j]
                sums[i, cross + a * c + b] = total


@bare_loop
def spread(columns, unit, value, first, base, tilt, intercept, slope, share, changes):
    """Write what more weight of a pair moves: share times residual from the local plane, by output; then share squared.

    The last table is left out where there is no place for it.
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
def sum_squares(kernel, changes, columns, unit, first, squared, moved, slopes):
    """Write the sums of weights times changes times squared offsets: how fits grow with each log bandwidth."""
    d, n = columns.shape
    for r in range(kernel.shape[0]):
        i, row = first + r, kernel[r]
        for b in range(changes.shape[1]):
            out, change = moved[b], changes[r, b]
            for j in range(n):
                out[j] = row[j] * change[j]
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
