"""Compiled loops over the windows of queries on a line; see `windows.py`."""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.brute.loops.staged import TILE
from kernpool.algorithms.sweep.loops.bins import count_below
from kernpool.execution.compiling import loop

MOST, PAIRS = 256, 1 << 20  # queries of a run, and pairs: a few milliseconds


@loop
def nearest_keys(query, own, own_weight, leave_out, elsewhere, keys, distance, weight):
    """Distance and weight of the nearest key of each query that takes part; infinity where there is none.

    With `elsewhere`, of those that are not at the very place of the query: a slope is determined by them alone, as
    small as their share may be.
    """
    bins = keys.low.size
    for i in range(query.size):
        q = query[i]
        without = own[i] if leave_out else -1
        left = own_weight[i] if leave_out else 0.0
        best, best_weight = np.inf, 1.0
        after = count_below(keys.low, q)  # bins from here on begin at q or later
        for side in range(2):
            b = after if side else after - 1
            while 0 <= b < bins:
                if (keys.low[b] - q if side else q - keys.high[b]) > best:
                    break
                for j in range(keys.offset[b], keys.offset[b + 1]):
                    r = abs(q - keys.x[j])
                    if r < best and (j != without or left > 0.0) and (r > 0.0 or not elsewhere):
                        best = r
                        best_weight = left if j == without else (keys.weight[j] if keys.weight.size else 1.0)
                b += 1 if side else -1
        distance[i], weight[i] = best, best_weight


@loop
def join(first, last, starts):
    """Join neighbouring queries into runs whose windows, all in all, hold little more than each; where runs start."""
    number, low, high, shortest = 0, 0, 0, 0
    for i in range(first.size):
        low, high, shortest = min(low, first[i]), max(high, last[i]), min(shortest, last[i] - first[i])
        queries = i + 1 - starts[number - 1] if number else 0
        near = high - low <= max(TILE, shortest + shortest // 4)
        if number == 0 or not near or queries > MOST or queries * (high - low) > PAIRS:
            starts[number] = i
            number += 1
            low, high, shortest = first[i], last[i], last[i] - first[i]
    starts[number] = first.size
    return starts[: number + 1]
