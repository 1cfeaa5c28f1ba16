"""Compiled loops over the windows of queries on a line; see `windows.py`."""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.bin_loops import count_below
from kernpool.algorithms.compiling import loop
from kernpool.algorithms.loops import reduce_block


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
def pool_windows(rows, queries, keys, first, last, leave_out, h, code, infinite, shift, denominator, numerator):
    """Pool queries over the keys of their windows, one query at a time."""
    bandwidth = np.full(1, h)
    query, own, own_weight = np.empty((1, 1)), np.full(1, -1), np.zeros(1)
    no_mask = np.empty((0, 0), dtype=np.bool_)
    all_keys = keys.x.reshape((1, keys.x.size))
    for k in range(rows.size):
        i = rows[k]
        row = queries.order[i]
        start, stop = first[k], last[k]
        if start == stop:
            shift[row], denominator[row] = 0.0, 0.0
            for c in range(numerator.shape[1]):
                numerator[row, c] = 0.0
            continue
        query[0, 0] = queries.x[i]
        if leave_out:
            own[0], own_weight[0] = queries.own[i] - start, queries.own_weight[i]
            if queries.own[i] < start:
                own[0] = -1
        weight = keys.weight[start:stop] if keys.weight.size else keys.weight
        reduce_block(
            query, all_keys[:, start:stop], keys.value[:, start:stop], weight, no_mask, own, own_weight,
            bandwidth, code, infinite, False,
            shift[row : row + 1], denominator[row : row + 1], numerator[row : row + 1],
        )  # fmt: skip
