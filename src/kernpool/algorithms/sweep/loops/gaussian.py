r"""Compiled loops for the Gaussian kernel: Taylor series of cells of keys, and of their sum about groups of queries.

With ``s = (k - c) / h`` for the keys of a cell about its center, and ``x = (q - c) / h``,

    exp(-(x - s)**2 / 2) = exp(-x**2 / 2) sum_p x**p exp(-s**2 / 2) s**p / p!

so a cell is a handful of moments. For the queries of a group, ``x = d + t`` with the distance `d` of the centers and a
small `t`, and the sum over cells is ``exp(-t**2 / 2)`` times one power series in `t` for the whole group. This is the
fast Gauss transform of Greengard and Strain (1991) on a line, but relative to each query's own sum of weights: a group
far from all keys, or one whose sum is small beside the weights around it, is left to be done key by key.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.loops.tiles import LOG2_E, exp2
from kernpool.algorithms.sweep.loops.bins import count_below
from kernpool.algorithms.sweep.loops.near import UNDONE, middle_of
from kernpool.execution.compiling import bare_loop, bare_part, loop

MOMENTS = 20  # of cells half a bandwidth wide: what is cut off is below 1e-19 of the weight in reach
TERMS = 16  # for blocks a quarter of a bandwidth wide: below 1e-21
FARTHEST = 5.0  # bandwidths to the nearest cell, beyond which powers of the distance cancel
# Of the weight in reach, of which 1e-19 is cut off: so at most 1e-13 of the result.
LEAST_SHARE = 1e-6
FEW = 256  # keys in reach, up to which visiting them is faster
FEW_QUERIES = 16  # of a block, up to which each has its own series of one term


@loop
def join(low, high, offset, width, most):
    """Join neighbouring bins into runs at most so wide, with at most so many numbers; returns where the runs start.

    A bin that is wider, or holds more, is a run by itself.
    """
    starts = np.empty(low.size + 1, dtype=np.int64)
    number = 0
    for b in range(low.size):
        first = starts[number - 1] if number else 0
        if number == 0 or high[b] - low[first] > width or offset[b + 1] - offset[first] > most:
            starts[number] = b
            number += 1
    starts[number] = low.size
    return starts[: number + 1].copy()


@bare_loop
def sum_cells(x, weight, value, cell_low, cell_high, cell_offset, cell, h, scratch, moment):
    """Moments of a cell; one wider than half a bandwidth, made of a single sparse bin, has no use for them."""
    power, s = scratch[0], scratch[1]
    center = middle_of(cell_low[cell], cell_high[cell])
    for c in range(moment.shape[1]):
        for p in range(MOMENTS):
            moment[cell, c, p] = 0.0
    for begin in range(cell_offset[cell], cell_offset[cell + 1], s.size):
        size = min(s.size, cell_offset[cell + 1] - begin)
        for j in range(size):
            s[j] = (x[begin + j] - center) / h
            power[j] = exp2(-0.5 * LOG2_E * s[j] * s[j]) * (weight[begin + j] if weight.size else 1.0)
        for p in range(MOMENTS):
            for c in range(moment.shape[1]):
                total = 0.0
                if c:
                    column = value[c - 1, begin : begin + size]
                    for j in range(size):
                        total += power[j] * column[j]
                else:
                    for j in range(size):
                        total += power[j]
                moment[cell, c, p] += total
            for j in range(size):
                power[j] *= s[j] / (p + 1)


@bare_part
def reach_of(cell_low, cell_high, moment, low, high, h, total, tol):
    """First and last-plus-one cell that can matter to queries from `low` to `high`; none if they are far from all."""
    after = count_below(cell_low, 0.5 * low + 0.5 * high)
    nearest, weight = np.inf, 0.0
    for cell in range(max(after - 1, 0), min(after + 1, cell_low.size)):
        distance = max(high - cell_low[cell], cell_high[cell] - low) / h  # of the farthest pair
        if distance < nearest:
            # exp(-s**2 / 2) in the moments is at least 0.96
            nearest, weight = distance, moment[cell, 0, 0]
    if not nearest <= FARTHEST or not weight > 0.0:
        return 0, 0
    radius = h * (1.0 + 1e-12) * np.sqrt(nearest * nearest + 2.0 * np.log(total / (weight * tol)))
    return count_below(cell_high, low - radius), count_below(cell_low, high + radius)


@bare_part
def add_series(local, scratch, moment, cell, distance, terms):
    """Add ``exp(t**2 / 2)`` times a cell's sum, as a power series in t about a place at this distance."""
    base = exp2(-0.5 * LOG2_E * distance * distance)
    for c in range(moment.shape[1]):
        # Taylor coefficients of sum_p M_p (d + t)**p at t = 0, by repeated synthetic division.
        for p in range(MOMENTS):
            scratch[p] = moment[cell, c, p]
        for r in range(terms):
            for p in range(MOMENTS - 2, r - 1, -1):
                scratch[p] += distance * scratch[p + 1]
        # times exp(-d t)
        for r in range(terms):
            factor = base
            for i in range(r + 1):
                local[c, r] += factor * scratch[r - i]
                factor *= -distance / (i + 1)


@bare_loop
def pool_blocks(
    query, block, block_low, block_high, cell_low, cell_high, cell_offset, moment, h, total, tol, scratch, local, found
):
    """Pool blocks of queries, each by one series, or by one for each of its few queries; some are marked."""
    for k in range(block.size - 1):
        low, high, i = block_low[k], block_high[k], block[k]
        together = block[k + 1] - i > FEW_QUERIES or high == low
        while i < block[k + 1]:
            stop = block[k + 1] if together else i + 1
            if not together:
                low, high = query[i], query[i]
            first, last = reach_of(cell_low, cell_high, moment, low, high, h, total, tol)
            exact = cell_offset[last] - cell_offset[first] > FEW
            middle, terms, in_reach = middle_of(low, high), TERMS if high > low else 1, 0.0
            for c in range(local.shape[0]):
                for r in range(terms):
                    local[c, r] = 0.0
            for cell in range(first, last):
                exact = exact and cell_high[cell] - cell_low[cell] <= 0.5 * h
                if exact:
                    in_reach += moment[cell, 0, 0]
                    distance = (middle - middle_of(cell_low[cell], cell_high[cell])) / h
                    add_series(local, scratch, moment, cell, distance, terms)
            for j in range(i - block[0], stop - block[0]):
                t = (query[block[0] + j] - middle) / h
                decay = exp2(-0.5 * LOG2_E * t * t)
                for c in range(found.shape[0]):
                    value = 0.0
                    for r in range(terms - 1, -1, -1):
                        value = value * t + local[c, r]
                    found[c, j] = value * decay
                if not exact or not found[0, j] > LEAST_SHARE * in_reach:
                    found[0, j] = UNDONE
            i = stop
