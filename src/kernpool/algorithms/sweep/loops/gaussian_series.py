"""Compiled Gaussian sums in one column: Taylor series of cells of keys (fast Gauss transform).

With ``s = (k - c) / h`` for the keys of a cell about its center, and ``x = (q - c) / h``,

    exp(-(x - s)**2 / 2) = exp(-x**2 / 2) sum_p x**p exp(-s**2 / 2) s**p / p!

so a cell is a handful of moments. For the queries of a group, ``x = d + t`` with the distance `d` of the centers and
a small `t`, and the sum over cells is ``exp(-t**2 / 2)`` times one power series in `t` for the whole group. This is
the fast Gauss transform of Greengard and Strain (1991) on a line, but with errors relative to each query's own sum of
weights: a group far from all keys, or one whose sum is small compared with the weights around it, is computed key by
key.

The moments of a local linear fit are derivatives of the sum of weights, since ``h d/dq`` of a weight is ``(k - q) /
h`` times the weight. They use the same cells and series, evaluated three times.

The moments of a local quadratic fit take two more derivatives. With a sum ``F = exp(-t**2 / 2) P(t)`` the keys at
``s``, about the middle of the group, have weights ``exp(-s**2 / 2 + s t)`` in P, so that its derivatives are the sums
of powers of ``s``, and the moments about the query those of ``s - t``. Their code is compiled only for degree 2.
"""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import LOG2_E, exp2
from kernpool.algorithms.sweep.loops.bucket_sort import count_below
from kernpool.algorithms.sweep.loops.near_pairs import UNDONE, middle_of
from kernpool.execution.compilation import bare_loop, bare_part, loop, part

MOMENTS = 20  # of cells half a bandwidth wide: what is cut off is below 1e-19 of the weight in reach
TERMS = 16  # for blocks a quarter of a bandwidth wide: below 1e-21
FARTHEST = 5.0  # bandwidths to the nearest cell, beyond which powers of the distance cancel
# Of the weight in reach, of which 1e-19 is cut off: so at most 1e-13 of the result.
LEAST_SHARE = 1e-6
FEW = 256  # keys in reach, up to which visiting them is faster
FEW_QUERIES = 16  # of a block, up to which each has its own series of one term


@loop
def join(low, high, offset, width, most):
    """Join neighbouring bins into runs of limited width and number of points; return where runs start."""
    # A bin that is wider, or holds more, is a run by itself.
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
def sum_cell(x, weight, value, cell_low, cell_high, cell_offset, cell, h, scratch, moment):
    """Write the Taylor moments of one cell, of its key weights and its weighted values, to `moment`."""
    # They are not used if the cell is a sparse bin wider than half a bandwidth.
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
    """Return the range of cells of non-negligible weight for queries from `low` to `high`; empty if all are far."""
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
    """Add a cell's Gaussian sum to `local`, a power series in a query's offset t from the middle of its block."""
    # The sum is multiplied by ``exp(t**2 / 2)``.
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
    """Write Gaussian sums to `found` by a power series per block of queries; flag those that need direct summation."""
    # Queries of a block with few of them have a series each. Flagged queries, whose sum of weights is `UNDONE`, are to
    # be computed key by key.
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


NEAR_FOURTH = 3e-4  # mean fourth power of distances, in that of widths of a cell or a group, that has twelve digits


@part
def add_products(local, terms, t, size, found, column):
    """Write the moments that only local quadratic fits need, for a tile of queries, to `found`."""
    # They come after those of `add_moments`, in the order of `kernpool.core.moments`.
    columns = local.shape[0]
    third, fourth = 2 * columns + 1, 2 * columns + 2
    for c in range(columns):
        for j in range(size):
            sum_0, sum_1, sum_2, sum_3, sum_4 = local[c, terms - 1], 0.0, 0.0, 0.0, 0.0  # P, P', P'' / 2, P''' / 6, ...
            x = t[j]
            for p in range(terms - 2, -1, -1):
                sum_4 = sum_4 * x + sum_3
                sum_3 = sum_3 * x + sum_2
                sum_2 = sum_2 * x + sum_1
                sum_1 = sum_1 * x + sum_0
                sum_0 = sum_0 * x + local[c, p]
            weight = exp2(-0.5 * LOG2_E * x * x)
            if c == 0:
                cube = 6.0 * (sum_3 - x * sum_2) + x * x * (3.0 * sum_1 - x * sum_0)
                found[third, column + j] = weight * cube
                power = 24.0 * (sum_4 - x * sum_3) + x * x * (12.0 * sum_2 - x * (4.0 * sum_1 - x * sum_0))
                found[fourth, column + j] = weight * power
            else:
                found[fourth + c, column + j] = weight * (2.0 * (sum_2 - x * sum_1) + x * x * sum_0)


@part
def mark_near(columns, width, h, size, found, column):
    """Flag queries so near to all their keys that fourth-order moments have lost digits."""
    ratio = width / h
    least = NEAR_FOURTH * ratio * ratio * ratio * ratio
    for j in range(column, column + size):
        if found[2 * columns + 2, j] <= least * found[0, j]:
            found[0, j] = UNDONE


@part
def subtract_own_key(columns, own_value, mine, removed, u, found, i):
    """Subtract a query's own key (leave-one-out) from its higher-order moments; flag the query if little remains."""
    second, third, fourth = columns + 1, 2 * columns + 1, 2 * columns + 2
    square = u * u
    # Those of second order have been taken out already.
    if removed * square > found[second, i] or removed * square * square > 0.5 * found[fourth, i]:
        found[0, i] = UNDONE
    found[third, i] += removed * square * u
    found[fourth, i] -= removed * square * square
    for c in range(1, columns):
        found[fourth + c, i] -= removed * square * own_value[c - 1, mine]


TILE = 512
LEAST_MOMENT_SHARE = 1e-3  # of the weight in reach, because a slope is made of its small differences
PLACE = 1e-12  # mean squared distance in bandwidths up to which keys coincide with the query
NEAR = 3e-4  # mean squared distance, in squared widths of a cell or a group, that still has twelve digits


@part
def pool_run(
    query, start, stop, low, high, cell_low, cell_high, cell_offset, moment, h, total, tol, local, scratch, t, weight,
    found, column, quadratic,
):  # fmt: skip
    """Write Gaussian moments of neighbouring queries by one power series; return False if they need direct sums."""
    # They do where the series is inexact or few keys are in reach; `found` is unchanged then.
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
    # Where all keys in reach coincide with the query, those out of reach determine the slope; and where they are much
    # nearer than a cell is wide, digits of the second moment are lost.
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
            if not found[0, j] > LEAST_MOMENT_SHARE * in_reach or found[second, j] <= nowhere * found[0, j]:
                found[0, j] = UNDONE
    return True


@part
def add_moments(local, terms, t, size, found, column):
    """Write the moments that local linear fits need, for a tile of queries, to `found` by differentiating series."""
    # For a sum F = exp(-t**2 / 2) P(t), they are F' and F'' + F.
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
    """Write Gaussian moment sums for local fits at groups of queries; flag queries that need direct summation."""
    # Flagged queries are to be computed key by key. `quadratic` is None if there is no local quadratic fit; its code is
    # not compiled then.
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
                subtract_own_key(columns, value, mine, removed, u, found, i)
        denominator[row] = found[0, i]
        for c in range(1, found.shape[0]):
            numerator[row, c - 1] = found[c, i]
