r"""Compiled loops for the Gaussian kernel with moments: the derivatives of the series in `gaussian.py`.

The moments of a local linear fit are derivatives of the sum of weights, since ``h d/dq`` of a weight is ``(k - q) / h``
times the weight. So cells and series are those of the sums without moments, evaluated three times.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.loops.tiles import LOG2_E, exp2
from kernpool.algorithms.sweep.loops.gaussian import FEW, FEW_QUERIES, MOMENTS, TERMS, add_series, reach_of
from kernpool.algorithms.sweep.loops.gaussian_products import add_products, mark_near, take_own_out
from kernpool.algorithms.sweep.loops.near import UNDONE, middle_of
from kernpool.execution.compiling import loop, part

TILE = 512
LEAST_SHARE = 1e-3  # of the weight in reach, of whose small differences a slope is made
PLACE = 1e-12  # mean squared distance in bandwidths, up to which keys are at the place of the query
NEAR = 3e-4  # mean squared distance, in squared widths of a cell or a group, that still has twelve digits


@part
def pool_run(
    query, start, stop, low, high, cell_low, cell_high, cell_offset, moment, h, total, tol, local, scratch, t, weight,
    found, column, quadratic,
):  # fmt: skip
    """Pool the queries in these places by one series; False, and nothing done, where that would not be exact."""
    first, last = reach_of(cell_low, cell_high, moment, low, high, h, total, tol)
    if cell_offset[last] - cell_offset[first] <= FEW:
        return False
    second = local.shape[0] + 1
    middle, terms = middle_of(low, high), TERMS if high > low else 3
    if quadratic is not None:  # what is cut off counts a thousand times as much in two more derivatives
        terms = MOMENTS if high > low else 5
    local[:] = 0.0
    in_reach, widest = 0.0, high - low
    for cell in range(first, last):
        if cell_high[cell] - cell_low[cell] > 0.5 * h:
            return False
        in_reach += moment[cell, 0, 0]
        widest = max(widest, cell_high[cell] - cell_low[cell])
        distance = (middle - middle_of(cell_low[cell], cell_high[cell])) / h
        add_series(local, scratch, moment, cell, distance, terms)
    # Where all keys in reach are at the place of the query, those out of reach determine the slope; and where they are
    # much nearer than a cell is wide, digits of the second moment are lost.
    nowhere = PLACE if last - first < cell_low.size else -1.0
    if widest > 0.0:
        nowhere = max(nowhere, NEAR * widest * widest / (h * h))
    for begin in range(start, stop, TILE):
        size, at = min(TILE, stop - begin), column + begin - start
        for j in range(size):
            t[j] = (query[begin + j] - middle) / h
        for c in range(local.shape[0]):
            for j in range(size):
                weight[j] = local[c, terms - 1]
            for p in range(terms - 2, -1, -1):
                for j in range(size):
                    weight[j] = weight[j] * t[j] + local[c, p]
            for j in range(size):
                found[c, at + j] = weight[j] * exp2(-0.5 * LOG2_E * t[j] * t[j])
        add_moments(local, terms, t, size, found, at)
        if quadratic is not None:
            add_products(local, terms, t, size, found, at)
            mark_near(local.shape[0], widest, h, size, found, at)
        for j in range(at, at + size):
            if not found[0, j] > LEAST_SHARE * in_reach or found[second, j] <= nowhere * found[0, j]:
                found[0, j] = UNDONE
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
def pool_groups(
    query, order, group, group_low, group_high, own, own_weight, x, weight, value, cell_low, cell_high, cell_offset,
    moment, runs, first_run, last_run, h, total, tol, leave_out, quadratic, denominator, numerator,
):  # fmt: skip
    """Pool runs of groups of queries; those that have to be done key by key are marked.

    `quadratic` is None where there is no local quadratic fit, and what it needs is not compiled then.
    """
    columns = moment.shape[1]
    local, scratch = np.empty((columns, TERMS if quadratic is None else MOMENTS)), np.empty(MOMENTS)
    t, buffer = np.empty(TILE), np.empty(TILE)
    start = group[runs[first_run]]
    found = np.empty((1 + numerator.shape[1], group[runs[last_run]] - start))
    for run in range(first_run, last_run):
        first, last = group[runs[run]], group[runs[run + 1]]
        low, high = group_low[runs[run]], group_high[runs[run + 1] - 1]
        together = high - low <= 0.25 * h and (last - first > FEW_QUERIES or high == low)
        i = first
        while i < last:
            stop = last if together else i + 1
            if not together:
                low, high = query[i], query[i]
            if not pool_run(
                query, i, stop, low, high, cell_low, cell_high, cell_offset, moment, h, total, tol, local, scratch, t,
                buffer, found, i - start, quadratic,
            ):  # fmt: skip
                for j in range(i - start, stop - start):
                    found[0, j] = UNDONE
            i = stop
    for i in range(found.shape[1]):
        row = order[start + i]
        if leave_out and own[start + i] >= 0 and found[0, i] > 0.0:
            mine = own[start + i]
            removed = (weight[mine] if weight.size else 1.0) - own_weight[start + i]
            u = (query[start + i] - x[mine]) / h
            removed *= exp2(-0.5 * LOG2_E * u * u)
            # A subtraction costs digits only where little is left.
            found[0, i] = found[0, i] - removed if removed <= 0.5 * found[0, i] else UNDONE
            for c in range(1, columns):
                found[c, i] -= removed * value[c - 1, mine]
                found[columns + 1 + c, i] += removed * u * value[c - 1, mine]
            found[columns, i] += removed * u
            found[columns + 1, i] -= removed * u * u
            if quadratic is not None:
                take_own_out(columns, value, mine, removed, u, found, i)
        denominator[row] = found[0, i]
        for c in range(1, found.shape[0]):
            numerator[row, c - 1] = found[c, i]
