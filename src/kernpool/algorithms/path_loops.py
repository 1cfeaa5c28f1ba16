"""Compiled loop over the rows of one sorted column, each row the others' key: every pair once, for both of its rows."""

from __future__ import annotations

import math

import numpy as np

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.tiles import LOG2_E, exp2

TILE = 512


@loop
def sum_over_others(x, value, weight, bandwidth, reach, denominator, numerator):
    """Sum Gaussian weights, and values times weights, over the other rows within reach of each row.

    Rows are in order of x; values and sums of them are (columns, rows). Of a row itself what exceeds one unit counts.
    """
    n, scale = x.size, math.sqrt(0.5 * LOG2_E) / bandwidth
    kernel = np.empty(TILE)
    for i in range(n):
        left = max(weight[i] - 1.0, 0.0)
        denominator[i] = left
        for c in range(value.shape[0]):
            numerator[c, i] = left * value[c, i]
    stop = 0
    for i in range(n):
        while stop < n and x[stop] - x[i] <= reach:
            stop += 1
        for first in range(i + 1, stop, TILE):
            size = min(TILE, stop - first)
            for j in range(size):
                u = (x[first + j] - x[i]) * scale
                kernel[j] = exp2(-u * u)
            total, own = 0.0, weight[i]
            for j in range(size):
                total += kernel[j] * weight[first + j]
                denominator[first + j] += kernel[j] * own
            denominator[i] += total
            for c in range(value.shape[0]):
                total, own = 0.0, weight[i] * value[c, i]
                for j in range(size):
                    total += kernel[j] * weight[first + j] * value[c, first + j]
                    numerator[c, first + j] += kernel[j] * own
                numerator[c, i] += total
