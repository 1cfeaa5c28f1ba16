"""Compiled Laplace-kernel sums in one column: exponential sums accumulated along the line.

To any query `q` on their right, the keys on the left of a point `p` contribute

    sum w exp(-(q - k) / h) = exp(-(q - p) / h) sum w exp(-(p - k) / h)

So one number per bin and direction is enough, computed from the one before. Only positive numbers are multiplied and
added, so no digit is lost. (Published codes sum ``exp(k / h)`` about a fixed origin.)

For local linear fits, one row of sums per bin and direction stands for all keys on one side of a point, and decays by
``exp(-r)`` when seen from r bandwidths farther away. By that move a sum of weights times distance grows by r times
the sum of weights, and one of squared distances likewise: again only positive numbers are added. Offsets are
distances with a sign, which all keys on a side share. The columns are those of a state with one column, ``weight,
value, first, second, cross``; see `kernpool.core.moments`.
"""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import LOG2_E, exp2
from kernpool.algorithms.sweep.loops.bucket_sort import count_below
from kernpool.algorithms.sweep.loops.near_pairs import END, NEAR, UNDONE, walk
from kernpool.execution.compilation import bare_loop, loop, part

UNDERFLOW = 1e-280


@bare_loop
def sum_bins(x, weight, value, offset, low, high, first_bin, last_bin, h, leftward, rightward, total):
    """Write Laplace-kernel sums over each bin's keys at its right and its left end, and sums without the kernel."""
    # They go to `leftward`, `rightward` and `total`. Sums are of weights, and of weights times each value.
    rate = LOG2_E / h
    for b in range(first_bin, last_bin):
        for c in range(total.shape[1]):
            leftward[b, c], rightward[b, c], total[b, c] = 0.0, 0.0, 0.0
        for j in range(offset[b], offset[b + 1]):
            from_right = exp2((x[j] - high[b]) * rate)
            from_left = exp2((low[b] - x[j]) * rate)
            for c in range(total.shape[1]):
                times = weight[j] if weight.size else 1.0
                if c:
                    times *= value[c - 1, j]
                leftward[b, c] += from_right * times
                rightward[b, c] += from_left * times
                total[b, c] += times


@bare_loop
def scan(low, high, first_bin, last_bin, h, leftward, rightward):
    """Accumulate exponentially decaying sums from bin to bin, in both directions, in place."""
    # Bins are counted from either end.
    bins, columns, rate = low.size, leftward.shape[1], LOG2_E / h
    for k in range(max(first_bin, 1), last_bin):
        decay = exp2((high[k - 1] - high[k]) * rate)
        for c in range(columns):
            leftward[k, c] += decay * leftward[k - 1, c]
        b = bins - 1 - k
        decay = exp2((low[b] - low[b + 1]) * rate)
        for c in range(columns):
            rightward[b, c] += decay * rightward[b + 1, c]


@bare_loop
def find_runs(low, high, block_low, block_high, runs):
    """Write to `runs`, for each block of queries, the range of bins neither left nor right of the whole block."""
    near, end = 0, 0
    for k in range(runs.shape[0]):
        near = walk(high, block_low[k], near)
        end = max(walk(low, block_high[k], end), near)
        for run in range(runs.shape[1]):
            runs[k, run] = near if run == NEAR else end


@bare_loop
def finish(low, high, runs, block, query, h, leftward, rightward, found):
    """Add sums over all bins left and right of a query block to those over near keys; flag queries that underflow."""
    rate = LOG2_E / h
    for k in range(runs.shape[0]):
        near, end = runs[k, NEAR], runs[k, END]
        for i in range(block[k] - block[0], block[k + 1] - block[0]):
            q = query[block[0] + i]
            left = exp2((high[near - 1] - q) * rate) if near > 0 else 0.0
            right = exp2((q - low[end]) * rate) if end < low.size else 0.0
            for c in range(found.shape[0]):
                if near > 0:
                    found[c, i] += left * leftward[near - 1, c]
                if end < low.size:
                    found[c, i] += right * rightward[end, c]
                found[c, i] *= 0.5
            if not found[0, i] > UNDERFLOW:
                found[0, i] = UNDONE


TILE = 512
TIED = 32  # equal keys of a bin, from which on they are summed as one


@part
def add_key(sums, weight, value, j, kernel_weight, t):
    """Add the key `j`, at offset `t` and with `kernel_weight`, to the moment sums for local linear fits."""
    values = value.shape[0]
    kernel_weight *= weight[j] if weight.size else 1.0
    sums[0] += kernel_weight
    sums[1 + values] += kernel_weight * t
    sums[2 + values] += kernel_weight * t * t
    for c in range(values):
        sums[1 + c] += kernel_weight * value[c, j]
        sums[3 + values + c] += kernel_weight * t * value[c, j]


@part
def add_moved(sums, source, decay, distance, side, values):
    """Add the moment sums of all keys on one side of a point, moved to a point `distance` farther away, to `sums`."""
    # The side is -1 or 1; `source` has sums of distances, without a sign.
    first = 1 + values
    sums[0] += decay * source[0]
    sums[first] += side * decay * (source[first] + distance * source[0])
    sums[1 + first] += decay * (source[1 + first] + distance * (2.0 * source[first] + distance * source[0]))
    for c in range(values):
        sums[1 + c] += decay * source[1 + c]
        sums[2 + first + c] += side * decay * (source[2 + first + c] + distance * source[1 + c])


@loop
def sum_moment_bins(x, weight, value, offset, low, high, first_bin, last_bin, h, leftward, rightward, total):
    """Write local linear moment sums over each bin's keys about its right and left end, and sums without the kernel."""
    # They go to `leftward`, `rightward` and `total`. Those without the kernel are of weights and weighted values alone.
    for b in range(first_bin, last_bin):
        for c in range(leftward.shape[1]):
            leftward[b, c], rightward[b, c] = 0.0, 0.0
        for c in range(total.shape[1]):
            total[b, c] = 0.0
        for j in range(offset[b], offset[b + 1]):
            distance = (high[b] - x[j]) / h
            add_key(leftward[b], weight, value, j, exp2(-LOG2_E * distance), distance)
            distance = (x[j] - low[b]) / h
            add_key(rightward[b], weight, value, j, exp2(-LOG2_E * distance), distance)
            times = weight[j] if weight.size else 1.0
            total[b, 0] += times
            for c in range(value.shape[0]):
                total[b, 1 + c] += times * value[c, j]


@loop
def scan_moments(low, high, first_bin, last_bin, h, leftward, rightward):
    """Accumulate exponentially decaying local linear moment sums from bin to bin, in both directions, in place."""
    # Bins are counted from either end.
    values = (leftward.shape[1] - 3) // 2
    for k in range(max(first_bin, 1), last_bin):
        distance = (high[k] - high[k - 1]) / h
        add_moved(leftward[k], leftward[k - 1], exp2(-LOG2_E * distance), distance, 1.0, values)
        b = low.size - 1 - k
        distance = (low[b + 1] - low[b]) / h
        add_moved(rightward[b], rightward[b + 1], exp2(-LOG2_E * distance), distance, 1.0, values)


@part
def add_run(sums, x, weight, value, start, stop, q, h, own, own_weight, times):
    """Add consecutive keys to a query's local linear moment sums; the query's own key has the weight `own_weight`."""
    values = value.shape[0]
    for first in range(start, stop, times.size):
        size = min(times.size, stop - first)
        place = x[first : first + size]
        for j in range(size):
            times[j] = exp2(-LOG2_E * abs(place[j] - q) / h)
        own_kernel = times[own - first] if first <= own < first + size else 0.0
        if weight.size:
            for j in range(size):
                times[j] *= weight[first + j]
        if first <= own < first + size:
            times[own - first] = own_kernel * own_weight
        for moment in range(2):
            sum_0, sum_1 = 0.0, 0.0
            for j in range(size):
                sum_0 += times[j]
                sum_1 += times[j] * ((place[j] - q) / h)
            if moment == 0:
                sums[0] += sum_0
                sums[1 + values] += sum_1
            else:
                sums[2 + values] += sum_1
            for c in range(values):
                column, sum_0 = value[c, first : first + size], 0.0
                for j in range(size):
                    sum_0 += times[j] * column[j]
                sums[(3 + values if moment else 1) + c] += sum_0
            for j in range(size):
                times[j] *= (place[j] - q) / h


@loop
def pool_groups(
    query, order, group, group_low, group_high, own, own_weight, x, weight, value, offset, low, high,
    first_group, last_group, h, leftward, rightward, total, leave_out, denominator, numerator,
):  # fmt: skip
    """Write Laplace-kernel moment sums for local linear fits; flag queries that need direct summation."""
    # Flagged queries underflow, or lose digits by the subtraction of their own key. They are to be computed key by key.
    bins, values = low.size, value.shape[0]
    sums, times = np.empty(leftward.shape[1]), np.empty(TILE)
    after, before = count_below(high, group_low[first_group]), 0
    for g in range(first_group, last_group):
        while after < bins and high[after] < group_low[g]:
            after += 1  # the first bin that is not to the left of all queries
        before = max(before, after)
        while before < bins and low[before] <= group_high[g]:
            before += 1  # the first behind it that is to the right of all
        for i in range(group[g], group[g + 1]):
            q, mine, left = query[i], own[i] if leave_out else -1, own_weight[i] if leave_out else 0.0
            lost = 0 <= mine < offset[after] or mine >= offset[before]
            for c in range(sums.size):
                sums[c] = 0.0
            if after > 0:
                distance = (q - high[after - 1]) / h
                add_moved(sums, leftward[after - 1], exp2(-LOG2_E * distance), distance, -1.0, values)
            if before < bins:
                distance = (low[before] - q) / h
                add_moved(sums, rightward[before], exp2(-LOG2_E * distance), distance, 1.0, values)
            b = after
            while b < before:
                start = b
                while b < before and not (high[b] == low[b] and offset[b + 1] - offset[b] >= TIED):
                    b += 1
                if start < b:
                    add_run(sums, x, weight, value, offset[start], offset[b], q, h, mine, left, times)
                    continue
                t = (low[b] - q) / h
                kernel, removed = exp2(-LOG2_E * abs(t)), 0.0
                if offset[b] <= mine < offset[b + 1]:
                    removed = (weight[mine] if weight.size else 1.0) - left
                    lost = lost or removed > 0.5 * total[b, 0]  # a subtraction would cost digits
                times_tied = kernel * (total[b, 0] - removed)
                sums[0] += times_tied
                sums[1 + values] += times_tied * t
                sums[2 + values] += times_tied * t * t
                for c in range(values):
                    times_tied = kernel * (total[b, 1 + c] - (removed * value[c, mine] if removed > 0.0 else 0.0))
                    sums[1 + c] += times_tied
                    sums[3 + values + c] += times_tied * t
                b += 1
            row = order[i]
            denominator[row] = UNDONE if lost or not sums[0] > UNDERFLOW else 0.5 * sums[0]
            for c in range(1, sums.size):
                numerator[row, c - 1] = 0.5 * sums[c]
