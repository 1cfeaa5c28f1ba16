"""Compiled sums for nearest-neighbour windows on a line: a tricube kernel whose width differs between queries.

Keys are sorted and lie in bins of `BIN`. The keys of the window of a query are, along the line,

    near | far on the left | near, about the query | far on the right | near

Near keys are visited one by one. Far keys are whole bins, joined into cells at most half as wide as any window of the
octave; their weights sum to a polynomial in the position of the query, made of the moments that
`loops/polynomial_kernels.py` sums. A cell that reaches out of a window, or beyond the query, contributes a prefix or a
suffix of its bins. Moments are only ever added.

With ``T = (q - x) / s``, the center c of a cell, ``d = (q - c) / s`` and ``z = (c - x) / h``, the kernel of a key is
``K(T) = K(d + z h / s)``, which is the sum of ``(h / s)**p`` times derivative p of K at d times ``z**p / p!``.
"""

import numpy as np

from kernpool.algorithms.sweep.loops.near_pairs import middle_of
from kernpool.algorithms.sweep.loops.polynomial_kernels import PREFIX, SUFFIX
from kernpool.execution.compilation import bare_loop, bare_part, loop

BIN = 16  # keys
TERMS = 12  # powers 0 to 9 of the kernel, times offsets squared
FEW = 64  # keys in a window, up to which visiting them is faster than anything else
# Sums over far keys are right to some 1e-15 of the largest terms of their series, and those of squared offsets to as
# much times the squared offset of their cell. Where the kernel weight, or the squared deviation from the mean, is a
# smaller fraction of these than this, the window is visited key by key.
LEAST_SHARE, LEAST_SPREAD = 1e-3, 1e-4
SMALLEST = 1e-300  # width, whose reciprocal is finite; smaller ones count as zero
LEAST_WEIGHT = 1e-12  # smaller weights do not count towards the two that a line needs
COINCIDENT = 1e-24  # squared deviation, in widths, of keys that are equal up to rounding
# Derivatives of the tricube 1 - 3 u**3 + 3 u**6 - u**9: row p has the factors of u**(3 - p), u**(6 - p), u**(9 - p).
DERIVATIVE = np.array(
    [
        [-3.0, 3.0, -1.0],
        [-9.0, 18.0, -9.0],
        [-18.0, 90.0, -72.0],
        [-18.0, 360.0, -504.0],
        [0.0, 1080.0, -3024.0],
        [0.0, 2160.0, -15120.0],
        [0.0, 2160.0, -60480.0],
        [0.0, 0.0, -181440.0],
        [0.0, 0.0, -362880.0],
        [0.0, 0.0, -362880.0],
    ]
)


@bare_loop
def find_windows(x, query, k, first, middle, width):
    """Write, for sorted queries, the first of their `k` nearest keys, the first key not below them, and the width."""
    # The width is the distance of the farther end of the window.
    left, at, n = 0, 0, x.size
    for i in range(query.size):
        q = query[i]
        while left + k < n and q - x[left] > x[left + k] - q:
            left += 1
        while at < n and x[at] < q:
            at += 1
        first[i], middle[i] = left, at
        s = max(q - x[left], x[left + k - 1] - q)
        width[i] = s if s > SMALLEST else 0.0


@bare_part
def add_near(x, weight, value, q, s, begin, stop, total):
    """Add the sums over keys `begin` to ``stop - 1``, visited one by one, to `total`."""
    for j in range(begin, stop):
        t = (q - x[j]) / s
        u = abs(t)
        z = max(1.0 - u * u * u, 0.0)
        w = weight[j] * z * z * z
        total[0] += w
        total[1] += w
        total[2] += w * t
        total[3] += w * t * t
        total[4] += w * value[j]
        total[5] += w * t * value[j]
        total[6] += w * t * t


@bare_part
def add_far(
    x, weight, value, low, high, start, cell_of, moment, first_bin, q, s, h, sign, b, stop, power, slope, total
):
    """Add the sums over bins `b` to ``stop - 1``, all on one side of the query, to `total`, by their moments."""
    # The sign is that of ``q - x``. Bins wider than a cell, of which a window has a few, are visited key by key. A run
    # never lies in the middle of a cell: a key out of the window and one beyond the query are farther apart than that.
    rho = h / s
    power[0] = 1.0
    while b < stop:
        cell = cell_of[b]
        end = min(start[cell + 1], stop)
        which, row = (PREFIX, end - 1) if start[cell] == b else (SUFFIX, b)
        lowest, highest = low[start[cell]], high[start[cell + 1] - 1]
        if highest - lowest > h:
            add_near(x, weight, value, q, s, (first_bin + b) * BIN, min((first_bin + end) * BIN, x.size), total)
            b = end
            continue
        d, half = (q - middle_of(lowest, highest)) / s, 0.5 * (highest - lowest) / h
        for p in range(9):
            power[p + 1] = power[p] * d
        for p in range(3, 10):
            derivative = sign * DERIVATIVE[p, 2] * power[9 - p]
            if p <= 6:
                derivative += DERIVATIVE[p, 1] * power[6 - p]
            if p <= 3:
                derivative += sign * DERIVATIVE[p, 0] * power[3 - p]
            slope[p] = derivative
        # Where the kernel ends, the first derivatives cancel; these forms are right to their last digits.
        u = sign * d  # negative if the center of a cell is beyond the query
        z = 1.0 - u * u * u
        slope[0], slope[1] = z * z * z, -9.0 * sign * u * u * z * z
        slope[2] = 54.0 * u * u * u * u * z - 18.0 * u * z * z
        scale, size, largest = 1.0, 1.0, 0.0
        for p in range(10):
            slope[p] *= scale
            largest += abs(slope[p]) * size
            scale *= rho
            size *= half / (p + 1.0)
        of_weight, of_value = moment[which, row, 0], moment[which, row, 1]
        a0, a1, a2, b0, b1 = 0.0, 0.0, 0.0, 0.0, 0.0
        for p in range(10):
            a0 += slope[p] * of_weight[p]
            a1 += slope[p] * (p + 1.0) * of_weight[p + 1]
            a2 += slope[p] * ((p + 1.0) * (p + 2.0)) * of_weight[p + 2]
            b0 += slope[p] * of_value[p]
            b1 += slope[p] * (p + 1.0) * of_value[p + 1]
        total[0] += largest * of_weight[0]
        total[1] += a0
        total[2] += d * a0 + rho * a1
        total[3] += d * d * a0 + 2.0 * d * rho * a1 + rho * rho * a2
        total[4] += b0
        total[5] += d * b0 + rho * b1
        total[6] += largest * of_weight[0] * (abs(d) + rho * half) ** 2
        b = end


@bare_part
def mean_of_ties(x, weight, value, q, j):
    """Return the weighted mean of the values of the keys that equal the query; NaN if none has a weight."""
    total, mean = 0.0, 0.0
    while j < x.size and x[j] == q:
        total += weight[j]
        mean += weight[j] * value[j]
        j += 1
    return mean / total if total > 0.0 else np.nan


@bare_part
def line_of(x, weight, value, q, s, begin, stop):
    """Return the local line of keys `begin` to ``stop - 1`` at the query, visiting each key twice."""
    # It is NaN with less than two weights, and the mean where the keys coincide.
    number, total, center, mean = 0, 0.0, 0.0, 0.0
    for j in range(begin, stop):
        t = (q - x[j]) / s
        u = abs(t)
        z = max(1.0 - u * u * u, 0.0)
        w = weight[j] * z * z * z
        number += 1 if w > LEAST_WEIGHT else 0
        total += w
        center += w * t
        mean += w * value[j]
    if number < 2:
        return np.nan
    center /= total
    mean /= total
    spread, cross = 0.0, 0.0
    for j in range(begin, stop):
        t = (q - x[j]) / s
        u = abs(t)
        z = max(1.0 - u * u * u, 0.0)
        w = weight[j] * z * z * z * (t - center)
        spread += w * (t - center)
        cross += w * (value[j] - mean)
    return mean - center * cross / spread if spread > COINCIDENT * total else mean


@loop
def fit_lines(
    x, weight, value, query, width, first, middle, k, which, low, high, start, cell_of, moment, first_bin, h, fitted
):
    """Write the local line at each query of `which`, all of one octave, to `fitted`; NaN with less than two weights."""
    # Bins are numbered from `first_bin`.
    total, power, slope = np.empty(7), np.empty(10), np.empty(10)
    n = x.size
    bins = -(-n // BIN)
    for i in which:
        q, s, begin, at = query[i], width[i], first[i], middle[i]
        stop = begin + k
        if s == 0.0:
            fitted[i] = mean_of_ties(x, weight, value, q, at)
            continue
        if k > FEW:
            total[:] = 0.0
            left, right = -(-begin // BIN), stop // BIN if stop < n else bins
            before = at // BIN if at < n else bins
            after = (at if at < n and x[at] == q else at - 1) // BIN + 1  # the bin before holds a key up to the query
            j = begin
            if left < before:
                add_near(x, weight, value, q, s, j, left * BIN, total)
                add_far(
                    x, weight, value, low, high, start, cell_of, moment, first_bin, q, s, h, 1.0, left - first_bin,
                    before - first_bin, power, slope, total,
                )  # fmt: skip
                j = min(before * BIN, n)
            if after < right:
                add_near(x, weight, value, q, s, j, after * BIN, total)
                add_far(
                    x, weight, value, low, high, start, cell_of, moment, first_bin, q, s, h, -1.0, after - first_bin,
                    right - first_bin, power, slope, total,
                )  # fmt: skip
                j = min(right * BIN, n)
            add_near(x, weight, value, q, s, j, stop, total)
            if total[0] == 0.0:
                fitted[i] = np.nan
                continue
            center, mean = total[2] / total[1], total[4] / total[1]
            spread = total[3] - center * total[2]
            # Weights below `LEAST_WEIGHT`, next to a single larger one, add up to neither of these.
            several = total[1] > 2.0 or spread > LEAST_WEIGHT * k
            if several and total[1] > LEAST_SHARE * total[0] and spread > LEAST_SPREAD * total[6]:
                fitted[i] = mean - center * (total[5] - center * total[4]) / spread
                continue
        fitted[i] = line_of(x, weight, value, q, s, begin, stop)
