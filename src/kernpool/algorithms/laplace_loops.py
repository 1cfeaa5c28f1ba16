r"""Compiled loops for the Laplace kernel: sums of exponentials that travel along the line.

To any query `q` on its right, the keys on the left of a place `p` weigh

    sum w exp(-(q - k) / h) = exp(-(q - p) / h) sum w exp(-(p - k) / h)

So one number per bin and direction is enough, made of the one before: only positive
numbers are multiplied and added, and no digit is lost. (Published codes sum ``exp(k / h)`` about a fixed origin.)
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.bin_loops import count_below
from kernpool.algorithms.compiling import loop
from kernpool.algorithms.near_loops import collect, leave_own_out, make_near, restore
from kernpool.algorithms.tiles import LOG2_E, exp2

ROOM = 512
FAINT = 1e-280


@loop
def sum_bins(keys, first_bin, last_bin, h, leftward, rightward, total):
    """Sums of weight, and of weight times value, of each bin: seen from its right end, from its left end, and plain."""
    rate = LOG2_E / h
    for b in range(first_bin, last_bin):
        for c in range(total.shape[1]):
            leftward[b, c], rightward[b, c], total[b, c] = 0.0, 0.0, 0.0
        for j in range(keys.offset[b], keys.offset[b + 1]):
            weight = keys.weight[j] if keys.weight.size else 1.0
            from_right = exp2((keys.x[j] - keys.high[b]) * rate)
            from_left = exp2((keys.low[b] - keys.x[j]) * rate)
            for c in range(total.shape[1]):
                value = weight * keys.value[c - 1, j] if c else weight
                leftward[b, c] += from_right * value
                rightward[b, c] += from_left * value
                total[b, c] += value


@loop
def travel(keys, first_bin, last_bin, h, leftward, rightward):
    """Add to each bin what comes from the bins before it, in both directions; bins counted from either end."""
    bins, columns, rate = keys.low.size, leftward.shape[1], LOG2_E / h
    for k in range(max(first_bin, 1), last_bin):
        decay = exp2((keys.high[k - 1] - keys.high[k]) * rate)
        for c in range(columns):
            leftward[k, c] += decay * leftward[k - 1, c]
        b = bins - 1 - k
        decay = exp2((keys.low[b] - keys.low[b + 1]) * rate)
        for c in range(columns):
            rightward[b, c] += decay * rightward[b + 1, c]


@loop
def pool_groups(
    queries, keys, first_group, last_group, h, leftward, rightward, total, leave_out, denominator, numerator
):
    """Pool groups of queries; a denominator of -1 says that the query has to be done key by key."""
    bins, columns, rate = keys.low.size, total.shape[1], LOG2_E / h
    near, weight = make_near(ROOM, columns - 1), np.empty(ROOM)
    start = queries.offset[first_group]
    found = np.empty((columns, queries.offset[last_group] - start))
    after = count_below(keys.high, queries.low[first_group], False)
    before = count_below(keys.low, queries.high[first_group], True) - 1
    for g in range(first_group, last_group):
        while after < bins and keys.high[after] < queries.low[g]:
            after += 1  # the first bin that is not to the left of all queries
        while before + 1 < bins and keys.low[before + 1] <= queries.high[g]:
            before += 1  # the last that is not to the right of all
        size = max(0, keys.offset[before + 1] - keys.offset[after])
        if size > weight.size:
            near, weight = make_near(2 * size, columns - 1), np.empty(2 * size)
        size = collect(near, 0, keys, after, before, total)
        for i in range(queries.offset[g], queries.offset[g + 1]):
            q, place, faint = queries.x[i], -1, False
            if leave_out and queries.own[i] >= 0:
                place = leave_own_out(near, size, keys, queries.own[i], queries.own_weight[i])
                faint = place < 0  # it is among the far ones, or one of few equal ones
            sum_weight, sum_value = 0.0, 0.0
            for j in range(size):
                w = exp2(-abs(q - near.x[j]) * rate)
                weight[j] = w
                sum_weight += w * near.weight[j]
                sum_value += w * near.value[0, j]
            left = exp2((keys.high[after - 1] - q) * rate) if after > 0 else 0.0
            right = exp2((q - keys.low[before + 1]) * rate) if before + 1 < bins else 0.0
            for c in range(columns):
                result = sum_weight if c == 0 else sum_value
                if c > 1:
                    result = 0.0
                    for j in range(size):
                        result += weight[j] * near.value[c - 1, j]
                if after > 0:
                    result += left * leftward[after - 1, c]
                if before + 1 < bins:
                    result += right * rightward[before + 1, c]
                found[c, i - start] = 0.5 * result
            if faint or not found[0, i - start] > FAINT:
                found[0, i - start] = -1.0
            if place >= 0:
                restore(near, place)
    for i in range(found.shape[1]):
        row = queries.order[start + i]
        denominator[row] = found[0, i]
        for c in range(1, columns):
            numerator[row, c - 1] = found[c, i]
