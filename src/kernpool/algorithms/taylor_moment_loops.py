r"""Compiled loops for the Gaussian kernel with moments: Taylor series as in `taylor_loops.py`, and their derivatives.

With ``s = (k - c) / h`` for the keys of a cell about its centre, and ``x = (q - c) / h``,

    exp(-(x - s)**2 / 2) = exp(-x**2 / 2) sum_p x**p exp(-s**2 / 2) s**p / p!

so a cell is a handful of moments. For the queries of a group, ``x = d + t`` with the distance `d` of the centres and a
small `t`, and the sum over cells is ``exp(-t**2 / 2)`` times one power series in `t` for the whole group. This is the
fast Gauss transform of Greengard and Strain (1991) on a line, but relative to each query's own sum of weights: a group
far from all keys, or one whose sum is faint beside the weights around it, is left to be done key by key.

The moments of a local linear fit are derivatives of the same series, since ``h d/dq`` of a weight is ``(k - q) / h``
times the weight.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.bin_loops import count_below
from kernpool.algorithms.compiling import loop, part
from kernpool.algorithms.tiles import LOG2_E, exp2

TILE = 512
MOMENTS = 20  # of cells half a bandwidth wide: what is cut off is below 1e-19 of the weight in reach
TERMS = 16  # for groups a quarter of a bandwidth wide: below 1e-21
FARTHEST = 5.0  # bandwidths to the nearest cell, beyond which powers of the distance cancel
FAINT_SHARE = 1e-6  # of the weight in reach
FAINT_SHARE_OF_MOMENTS = 1e-3  # of whose small differences a slope is made
PLACE = 1e-12  # mean squared distance in bandwidths, up to which keys are at the place of the query
FEW = 256  # keys in reach, up to which visiting them is faster
FEW_QUERIES = 16  # of a group, up to which each has its own series of one term


class TaylorCells(NamedTuple):
    """Cells of keys: the first and last place of each, its centre in between, its weight, its moments."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    offset: NDArray[np.int64]
    moment: NDArray[np.float64]


@loop
def sum_cells(keys, cells, first_cell, last_cell, h):
    """Moments of cells; a cell wider than half a bandwidth, made of a single sparse bin, is left without."""
    power_buffer, s_buffer = np.empty(TILE), np.empty(TILE)
    for cell in range(first_cell, last_cell):
        center = 0.5 * cells.low[cell] + 0.5 * cells.high[cell]
        for c in range(cells.moment.shape[1]):
            for p in range(MOMENTS):
                cells.moment[cell, c, p] = 0.0
        for begin in range(cells.offset[cell], cells.offset[cell + 1], TILE):
            size = min(TILE, cells.offset[cell + 1] - begin)
            power, s = power_buffer[:size], s_buffer[:size]
            for j in range(size):
                s[j] = (keys.x[begin + j] - center) / h
                power[j] = exp2(-0.5 * LOG2_E * s[j] * s[j])
            if keys.weight.size:
                for j in range(size):
                    power[j] *= keys.weight[begin + j]
            for p in range(MOMENTS):
                total = 0.0
                for j in range(size):
                    total += power[j]
                cells.moment[cell, 0, p] += total
                for c in range(keys.value.shape[0]):
                    total = 0.0
                    for j in range(size):
                        total += power[j] * keys.value[c, begin + j]
                    cells.moment[cell, 1 + c, p] += total
                for j in range(size):
                    power[j] *= s[j] / (p + 1)


@part
def add_series(local, scratch, cells, cell, distance, terms):
    """Add ``exp(t**2 / 2)`` times a cell's sum, as a power series in t about a place at this distance."""
    base = exp2(-0.5 * LOG2_E * distance * distance)
    for c in range(local.shape[0]):
        # Taylor coefficients of sum_p M_p (d + t)**p at t = 0, by repeated synthetic division.
        for p in range(MOMENTS):
            scratch[p] = cells.moment[cell, c, p]
        for r in range(min(terms, MOMENTS)):
            for p in range(MOMENTS - 2, r - 1, -1):
                scratch[p] += distance * scratch[p + 1]
        # times exp(-d t)
        for r in range(terms):
            factor = base
            for i in range(r + 1):
                if r - i < MOMENTS:
                    local[c, r] += factor * scratch[r - i]
                factor *= -distance / (i + 1)


@part
def reach_of(cells, low, high, h, total, tol):
    """First and last-plus-one cell that can matter to queries from `low` to `high`; none if they are far from all."""
    after = count_below(cells.low, 0.5 * low + 0.5 * high)
    nearest, weight = np.inf, 0.0
    for cell in range(max(after - 1, 0), min(after + 1, cells.low.size)):
        distance = max(high - cells.low[cell], cells.high[cell] - low) / h  # of the farthest pair
        if distance < nearest:
            # exp(-s**2 / 2) in the moments is at least 0.96
            nearest, weight = distance, cells.moment[cell, 0, 0]
    if not nearest <= FARTHEST or not weight > 0.0:
        return 0, 0
    radius = h * (1.0 + 1e-12) * np.sqrt(nearest * nearest + 2.0 * np.log(total / (weight * tol)))
    first = count_below(cells.high, low - radius)
    last = count_below(cells.low, high + radius)
    return first, last


@part
def pool_run(queries, start, stop, low, high, cells, h, total, tol, local, scratch, t, weight, found, column):
    """Pool the queries in these places by one series; False, and nothing done, where that would not be exact."""
    first, last = reach_of(cells, low, high, h, total, tol)
    if cells.offset[last] - cells.offset[first] <= FEW:
        return False
    moments, second = found.shape[0] > local.shape[0], found.shape[0] - local.shape[0]
    faint = FAINT_SHARE_OF_MOMENTS if moments else FAINT_SHARE
    middle, terms = 0.5 * low + 0.5 * high, TERMS if high > low else 3 if moments else 1
    local[:] = 0.0
    in_reach = 0.0
    for cell in range(first, last):
        if cells.high[cell] - cells.low[cell] > 0.5 * h:
            return False
        in_reach += cells.moment[cell, 0, 0]
        center = 0.5 * cells.low[cell] + 0.5 * cells.high[cell]
        add_series(local, scratch, cells, cell, (middle - center) / h, terms)
    for begin in range(start, stop, TILE):
        size = min(TILE, stop - begin)
        for j in range(size):
            t[j] = (queries.x[begin + j] - middle) / h
        for c in range(local.shape[0]):
            for j in range(size):
                weight[j] = local[c, terms - 1]
            for p in range(terms - 2, -1, -1):
                for j in range(size):
                    weight[j] = weight[j] * t[j] + local[c, p]
            for j in range(size):
                found[c, column + begin - start + j] = weight[j] * exp2(-0.5 * LOG2_E * t[j] * t[j])
        if moments:
            add_moments(local, terms, t, size, found, column + begin - start)
        # Where all keys in reach are at the place of the query, those out of reach determine the slope.
        nowhere = PLACE if moments and last - first < cells.low.size else -1.0
        for j in range(column + begin - start, column + begin - start + size):
            if not found[0, j] > faint * in_reach or found[second, j] <= nowhere * found[0, j]:
                found[0, j] = -1.0
    return True


@part
def add_moments(local, terms, t, size, found, column):
    """Moments of a tile of queries: with a sum F = exp(-t**2 / 2) P(t), they are F' and F'' + F."""
    columns = local.shape[0]
    for c in range(columns):
        for j in range(size):
            sum_0, sum_1, sum_2 = local[c, terms - 1], 0.0, 0.0  # P, P' and P'' / 2
            for p in range(terms - 2, -1, -1):
                sum_2 = sum_2 * t[j] + sum_1
                sum_1 = sum_1 * t[j] + sum_0
                sum_0 = sum_0 * t[j] + local[c, p]
            weight = exp2(-0.5 * LOG2_E * t[j] * t[j])
            first = weight * (sum_1 - t[j] * sum_0)
            if c == 0:
                found[columns, column + j] = first
                found[columns + 1, column + j] = weight * (2.0 * (sum_2 - t[j] * sum_1) + t[j] * t[j] * sum_0)
            else:
                found[columns + 1 + c, column + j] = first


@loop
def pool_groups(queries, keys, cells, runs, first_run, last_run, h, total, tol, leave_out, denominator, numerator):
    """Pool runs of groups of queries; a denominator of -1 says that the query has to be done key by key."""
    columns = cells.moment.shape[1]
    local, scratch = np.empty((columns, TERMS)), np.empty(MOMENTS)
    t, weight = np.empty(TILE), np.empty(TILE)
    start = queries.offset[runs[first_run]]
    found = np.empty((1 + numerator.shape[1], queries.offset[runs[last_run]] - start))
    for run in range(first_run, last_run):
        first, last = queries.offset[runs[run]], queries.offset[runs[run + 1]]
        low, high = queries.low[runs[run]], queries.high[runs[run + 1] - 1]
        together = high - low <= 0.25 * h and (last - first > FEW_QUERIES or high == low)
        i = first
        while i < last:
            stop = last if together else i + 1
            if not together:
                low, high = queries.x[i], queries.x[i]
            if not pool_run(
                queries, i, stop, low, high, cells, h, total, tol, local, scratch, t, weight, found, i - start
            ):
                for j in range(i - start, stop - start):
                    found[0, j] = -1.0
            i = stop
    for i in range(found.shape[1]):
        row = queries.order[start + i]
        if leave_out and queries.own[start + i] >= 0 and found[0, i] > 0.0:
            own = queries.own[start + i]
            removed = (keys.weight[own] if keys.weight.size else 1.0) - queries.own_weight[start + i]
            u = (queries.x[start + i] - keys.x[own]) / h
            removed *= exp2(-0.5 * LOG2_E * u * u)
            # A subtraction costs digits only where little is left.
            found[0, i] = found[0, i] - removed if removed <= 0.5 * found[0, i] else -1.0
            for c in range(1, columns):
                found[c, i] -= removed * keys.value[c - 1, own]
            if found.shape[0] > columns:
                found[columns, i] += removed * u
                found[columns + 1, i] -= removed * u * u
                for c in range(1, columns):
                    found[columns + 1 + c, i] += removed * u * keys.value[c - 1, own]
        denominator[row] = found[0, i]
        for c in range(1, found.shape[0]):
            numerator[row, c - 1] = found[c, i]
