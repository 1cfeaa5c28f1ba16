"""Compiled sums for compact polynomials and the Gaussian on a line, in windows whose widths differ between queries.

Windows, cells and moments are those of `loops/octaves.py`, for every kernel ``(1 - |u|**inner)**outer``, and for the
Gaussian, whose `inner` is zero; for several columns of values, and offsets to the fourth power. With
``T = (q - x) / s``, the center c of a cell, ``d = (q - c) / s``, ``rho = h / s`` and ``z = (c - x) / h``, a far key has

    K(T) T**e = sum over p of  rho**p K(p)(d) z**p / p!  times  (d + rho z)**e

where K(p) is derivative p of the kernel, so the sums over a cell are made of its moments of z. Moments are only ever
added. Derivatives of a polynomial end; those of the Gaussian are K times Hermite polynomials, at most
``1.1 sqrt(p! K(d))``. In its cells, four times as wide, ``|rho z| <= 1``, and the terms from p = 32 on add up to less
than ``3e-18 sqrt(K(d))`` for each key. Sums that are small compared with these bounds are NaN.
"""

import math

import numpy as np

from kernpool.algorithms.sweep.loops.near_pairs import middle_of
from kernpool.algorithms.sweep.loops.octaves import BIN, FEW
from kernpool.algorithms.sweep.loops.polynomial_kernels import PREFIX, SUFFIX
from kernpool.execution.compilation import bare_part, loop

GAUSSIAN_TERMS, GAUSSIAN_CELLS = 32, 4.0  # half as many terms in cells of a quarter took twice the time
# Fractions of the weight of far keys, times the roots of their kernels if that is the Gaussian, above which their sums
# have twelve digits: of the sum of kernel weights, and of those of squared offsets and their squares, in widths.
LEAST_SHARES, LEAST_SHARES_GAUSSIAN = (0.03, 0.01, 0.003), (0.003, 0.003, 0.003)


@bare_part
def add_near(x, weight, value, own, left, q, s, inner, outer, begin, stop, powers, total):
    """Add the sums over keys `begin` to ``stop - 1``, visited one by one; key `own` has the weight `left`."""
    for j in range(begin, stop):
        t = (x[j] - q) / s
        u = abs(t)
        w = weight[j] if weight.size else 1.0
        if j == own:
            w = left
        if not inner:
            w *= math.exp(-0.5 * u * u)
        elif u >= 1.0:
            continue
        else:
            r = u
            for _ in range(inner - 1):
                r *= u
            for _ in range(outer):
                w *= 1.0 - r
        for e in range(total.shape[1]):
            total[0, e] += w
            if e < powers:
                for c in range(value.shape[0]):
                    total[c + 1, e] += w * value[c, j]
            w *= t


@bare_part
def add_far(
    x, weight, value, own, left, low, high, start, cell_of, moment, first_bin, q, s, h, side, b, stop, inner, outer,
    polynomial, powers, slope, raw, total,
):  # fmt: skip
    """Add the sums over bins `b` to ``stop - 1``, all on one side of the query; return the weight of their far keys."""
    # `side` is 0 for keys below the query. Bins wider than a cell are visited key by key. A run never lies in the
    # middle of a cell (`loops/octaves.py`). For the Gaussian each far weight is multiplied by ``sqrt(K(d))``, as its
    # bounds are.
    rho, terms, most = h / s, slope.size, total.shape[1]
    far = 0.0
    while b < stop:
        cell = cell_of[b]
        end = min(start[cell + 1], stop)
        which, row = (PREFIX, end - 1) if start[cell] == b else (SUFFIX, b)
        lowest, highest = low[start[cell]], high[start[cell + 1] - 1]
        if highest - lowest > h:
            begin, finish = (first_bin + b) * BIN, min((first_bin + end) * BIN, x.size)
            add_near(x, weight, value, own, left, q, s, inner, outer, begin, finish, powers, total)
            b = end
            continue
        d = (q - middle_of(lowest, highest)) / s
        scale, bound = 1.0, 1.0
        if not inner:
            bound = math.exp(-0.25 * d * d)
            slope[0] = bound * bound
            slope[1] = -rho * d * slope[0]
            for k in range(2, terms):
                slope[k] = -rho * (d * slope[k - 1] + rho * (k - 1.0) * slope[k - 2])
        else:
            for k in range(terms):
                derivative = 0.0
                for p in range(terms - 1 - k, -1, -1):
                    derivative = derivative * d + polynomial[side, p, k]
                slope[k] = scale * derivative
                scale *= rho
        far += bound * moment[which, row, 0, 0]
        for c in range(total.shape[0]):
            of = moment[which, row, c]
            count = most if c == 0 else powers
            scale = 1.0
            for e in range(count):  # sums of K (rho z)**e
                found = 0.0
                for p in range(terms):
                    factor = 1.0  # (p + e)! / p!
                    for i in range(e):
                        factor *= p + 1.0 + i
                    found += slope[p] * factor * of[p + e]
                raw[e] = scale * found
                scale *= rho
            sign = 1.0
            for e in range(count):  # offsets are those of keys from the query: -T
                total[c, e] += sign * raw[0]
                for i in range(count - 1 - e):  # times T = d + rho z
                    raw[i] = d * raw[i] + raw[i + 1]
                sign = -sign
        b = end
    return far


@loop
def sum_windows(
    x, weight, value, query, width, first, equal, above, last, own, left, which, low, high, start, cell_of, moment,
    first_bin, h, inner, outer, polynomial, least, most, powers, sums,
):  # fmt: skip
    """Write kernel sums at each query of `which`, all of one octave: ``sums[i, 0, e]`` of weights times offset**e."""
    # ``sums[i, c + 1, e]`` are those of value column c. Keys `first` to ``last - 1`` are in the window; keys `equal` to
    # ``above - 1`` equal the query. `own` is -1, or the key whose weight is `left`. Sums that would lose digits are
    # NaN.
    n, columns, terms = x.size, value.shape[0] + 1, moment.shape[3] - most + 1
    slope, raw, total = np.empty(terms), np.empty(most), np.empty((columns, most))
    bins = -(-n // BIN)
    for i in which:
        q, s, begin, stop = query[i], width[i], first[i], last[i]
        total[:] = 0.0
        mine = own[i] if own.size else -1
        rest = left[i] if own.size else 0.0
        if stop - begin <= FEW:
            add_near(x, weight, value, mine, rest, q, s, inner, outer, begin, stop, powers, total)
        else:
            far = 0.0
            left_bin, right_bin = -(-begin // BIN), stop // BIN if stop < n else bins
            before = equal[i] // BIN if equal[i] < n else bins
            after = (above[i] - 1) // BIN + 1  # the bin before holds a key that is not beyond the query
            j = begin
            if left_bin < before:
                add_near(x, weight, value, mine, rest, q, s, inner, outer, j, left_bin * BIN, powers, total)
                far += add_far(
                    x, weight, value, mine, rest, low, high, start, cell_of, moment, first_bin, q, s, h, 0,
                    left_bin - first_bin, before - first_bin, inner, outer, polynomial, powers, slope, raw, total,
                )  # fmt: skip
                j = min(before * BIN, n)
            middle = j
            if after < right_bin:
                add_near(x, weight, value, mine, rest, q, s, inner, outer, j, after * BIN, powers, total)
                far += add_far(
                    x, weight, value, mine, rest, low, high, start, cell_of, moment, first_bin, q, s, h, 1,
                    after - first_bin, right_bin - first_bin, inner, outer, polynomial, powers, slope, raw, total,
                )  # fmt: skip
                j = min(right_bin * BIN, n)
            add_near(x, weight, value, mine, rest, q, s, inner, outer, j, stop, powers, total)
            near_end = after * BIN if after < right_bin else n
            lost = begin <= mine < stop and not (middle <= mine < near_end or mine < left_bin * BIN or mine >= j)
            for e in range((most + 1) // 2):
                lost |= total[0, 2 * e] <= least[e] * far
            if lost:
                total[:] = np.nan
        for c in range(columns):
            for e in range(most):
                sums[i, c, e] = total[c, e]
