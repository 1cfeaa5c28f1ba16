"""Compiled sums for compact polynomial kernels in one column, and the windows of queries.

The bins of keys in reach of a block of queries are, along the line,

    near | far on the left | hole | far on the right | near

Near keys are visited one by one. Far keys lie wholly inside the windows of a whole block; they are the same for each
of its queries, and their weights sum to one polynomial in the position of the query. It is made of moments of cells,
at most half a bandwidth wide. Moments are only ever added: from the first bin of a cell up to some bin (`PREFIX`), or
from some bin to the last of its cell (`SUFFIX`). The classical fast sum updating subtracts prefix sums instead, and
loses all digits at small bandwidths. A kernel with a kink at zero has two polynomials, one for keys on the left and
one for keys on the right, and a hole between them: the bins among the queries. Kernels without a kink have no hole,
and far keys in a single run.

The last functions find the nearest key of each query and join windows of neighbouring queries, for
`algorithms/sweep/windows.py`.
"""

import numpy as np

from kernpool.algorithms.brute.loops.tiles import TILE
from kernpool.algorithms.sweep.loops.bucket_sort import count_below
from kernpool.algorithms.sweep.loops.near_pairs import (
    END,
    FAR_LEFT,
    FAR_RIGHT,
    HOLE,
    NEAR,
    NEAR_RIGHT,
    UNDONE,
    is_tied,
    middle_of,
    walk,
)
from kernpool.execution.compilation import bare_loop, bare_part, loop, strict_loop

PREFIX, SUFFIX = 0, 1
BIN_TILE = 16  # keys whose moments are summed at a time: about as many as a bin has
NOTHING = 1e-18  # of the weight of the far keys: terms of a polynomial that are omitted
# A bin is inside of all windows, or out of reach, only if rounding cannot doubt it.
MARGIN, ULPS = 1e-12, 1e-15
FEW = 64  # keys in reach, up to which visiting them is faster than anything else
# Far sums are right to some 50 eps of the weight of the far keys: the terms of (1 + |u|**3)**3, of the largest kernel,
# sum to 50 at the largest |u| between the middles of a block and of a cell. So a result that is at least this
# fraction of that weight is right to 4e-13.
LEAST_SHARE = 0.03
# Near keys at the very edge: with z = 1 - |u|**r, a weight of z**p is right to p eps / z.
EDGE_SHARE = 1e-5


@bare_loop
def join(offset, low, high, width, start, cell_of):
    """Join neighbouring bins of keys into cells of limited width; return the number of cells."""
    # Bins of many equal keys stay alone. `start` gets the first bin of each cell and, behind the last, the number of
    # bins; `cell_of` the cell of each bin.
    number, alone = 0, True
    for b in range(low.size):
        tied = is_tied(offset, low, high, b)
        if alone or tied or high[b] - low[start[number - 1]] > width:
            start[number] = b
            number += 1
        cell_of[b] = number - 1
        alone = tied
    start[number] = low.size
    return number


@bare_loop
def sum_bins(x, weight, value, offset, low, high, start, cell_of, h, first_bin, last_bin, scratch, moment):
    """Write the moments of each bin's keys, about the center of the bin's cell, to `moment`."""
    # They are ``sum w (-s)**p / p!``, with the position s of a key in bandwidths. They are written twice, as prefix and
    # as suffix. Moments of the weights come first, then those of weight times value, column by column. `scratch` has a
    # row for powers, one for positions and one for each column of values, of a tile of keys that is filled up with
    # weights of zero.
    power, s = scratch[0], scratch[1]
    tile = s.size
    for b in range(first_bin, last_bin):
        center = middle_of(low[start[cell_of[b]]], high[start[cell_of[b] + 1] - 1])
        for c in range(moment.shape[2]):
            for p in range(moment.shape[3]):
                moment[PREFIX, b, c, p] = 0.0
        for begin in range(offset[b], offset[b + 1], tile):
            size = min(tile, offset[b + 1] - begin)
            for j in range(size):
                s[j] = (center - x[begin + j]) / h
                power[j] = weight[begin + j] if weight.size else 1.0
                for c in range(value.shape[0]):
                    scratch[2 + c, j] = value[c, begin + j]
            for j in range(size, tile):
                power[j] = 0.0
            factor = 1.0
            for p in range(moment.shape[3]):
                for c in range(moment.shape[2]):
                    total, column = 0.0, scratch[1 + c]
                    if c:
                        for j in range(tile):
                            total += power[j] * column[j]
                    else:
                        for j in range(tile):
                            total += power[j]
                    moment[PREFIX, b, c, p] += total * factor
                for j in range(tile):
                    power[j] *= s[j]
                factor /= p + 1.0
        for c in range(moment.shape[2]):
            for p in range(moment.shape[3]):
                moment[SUFFIX, b, c, p] = moment[PREFIX, b, c, p]


@bare_loop
def add_up(moment, cell_of, side, first, last):
    """Replace moments of bins by cumulative sums within each cell, from the left or the right as `side` says."""
    for k in range(max(first, 1), last):
        b, before = (k, k - 1) if side == PREFIX else (cell_of.size - 1 - k, cell_of.size - k)
        if cell_of[b] == cell_of[before]:
            for c in range(moment.shape[2]):
                for p in range(moment.shape[3]):
                    moment[side, b, c, p] += moment[side, before, c, p]


@bare_loop
def find_runs(offset, low, high, block_low, block_high, h, split, runs):
    """Write the first bin of each run of near or far keys, for every block of queries, to `runs`."""
    # The docstring of the module has a sketch of the runs.
    near, far_left, hole, far_right, right, end = 0, 0, 0, 0, 0, 0
    for k in range(runs.shape[0]):
        first, last = block_low[k], block_high[k]
        doubt = MARGIN * h + ULPS * max(abs(first), abs(last))
        near, end = walk(high, first - h - doubt, near), walk(low, last + h + doubt, end)
        far_left, right = walk(low, last - h + doubt, far_left), walk(high, first + h - doubt, right)
        if split:
            hole, far_right = walk(high, first, hole), walk(low, last, far_right)
        runs[k, NEAR], runs[k, END] = near, end
        if split:
            runs[k, HOLE], runs[k, FAR_RIGHT] = hole, max(hole, far_right)
            runs[k, FAR_LEFT], runs[k, NEAR_RIGHT] = min(far_left, hole), max(right, hole, far_right)
        else:
            runs[k, FAR_LEFT], runs[k, HOLE] = far_left, right
            runs[k, FAR_RIGHT], runs[k, NEAR_RIGHT] = right, right
        if right <= far_left or offset[end] - offset[near] <= FEW:
            visit_all(runs, k)


@bare_part
def visit_all(runs, k):
    """Reclassify all keys in reach of query block `k` as near, so that they are summed one by one."""
    for run in range(FAR_LEFT, END):
        runs[k, run] = runs[k, END]


@bare_part
def count_terms(t, terms):
    """Return how many terms of a power series in t are not negligible, at most `terms`."""
    # Coefficients are below 1000 times the weight of the keys.
    number, size = 1, 1e3 * t
    while number < terms and size > NOTHING:
        number += 1
        size *= t
    return number


@bare_loop
def add_far(
    low, high, start, cell_of, moment, runs, block_low, block_high, h, polynomial, slope, local, degree, far_weight
):
    """Write, for each query block, a power series for sums over far keys, its degree, and the far keys' weight."""
    # With ``s`` the position of a key about the center of its cell, ``d`` the distance of the centers and ``t`` the
    # position of a query about the middle of its block, ``K(d + t - s)`` is the sum of ``t**k / k!`` times ``(-s)**p /
    # p!`` times derivative k + p of K at ``d``. `polynomial` has the coefficients of these derivatives.
    # A run out of the middle of a cell, which only gaps between keys can make, is visited key by key instead.
    terms = polynomial.shape[1]
    for k in range(runs.shape[0]):
        for side in range(2):
            b, stop = runs[k, FAR_LEFT + 2 * side], runs[k, HOLE + 2 * side]
            if b < stop and start[cell_of[b]] < b and stop < start[cell_of[b] + 1]:
                visit_all(runs, k)
        far_weight[k], middle = 0.0, middle_of(block_low[k], block_high[k])
        matter = count_terms(0.5 * (block_high[k] - block_low[k]) / h, terms)
        degree[k] = matter - 1
        for c in range(local.shape[1]):
            for p in range(terms):
                local[k, c, p] = 0.0
        for side in range(2):
            b, stop = runs[k, FAR_LEFT + 2 * side], runs[k, HOLE + 2 * side]
            while b < stop:
                cell, which, row = cell_of[b], SUFFIX, b
                end = min(start[cell + 1], stop)
                if start[cell] == b:
                    which, row = PREFIX, end - 1
                distance = (middle - middle_of(low[start[cell]], high[start[cell + 1] - 1])) / h
                for i in range(terms):
                    value = 0.0
                    for p in range(terms - 1 - i, -1, -1):
                        value = value * distance + polynomial[side, p, i]
                    slope[i] = value
                far_weight[k] += moment[which, row, 0, 0]
                for c in range(moment.shape[2]):
                    factor = 1.0
                    for i in range(matter):
                        total = 0.0
                        for p in range(terms - i):
                            total += moment[which, row, c, p] * slope[p + i]
                        local[k, c, i] += factor * total
                        factor /= i + 1.0
                b = end


@strict_loop
def is_empty(q, x, first, last, h):
    """Return whether none of the keys `first` to ``last - 1`` is in the window of query `q`."""
    # A key is in it if ``fl(|q - x| / h) < 1``, which is found without a division.
    for j in range(first, last):
        if abs(q - x[j]) < h:
            return False
    return True


@bare_loop
def finish(
    x, offset, runs, block, block_low, block_high, query, h, height, doubtful, local, degree, far_weight,
    near_weight, found,
):  # fmt: skip
    """Add sums over far keys, from power series, to those over near keys; flag queries that need direct summation."""
    # The sum of weights of a query without a key in its window becomes zero.
    for k in range(runs.shape[0]):
        middle, least = middle_of(block_low[k], block_high[k]), LEAST_SHARE * far_weight[k]
        for i in range(block[k] - block[0], block[k + 1] - block[0]):
            q = query[block[0] + i]
            t = (q - middle) / h
            for c in range(found.shape[0]):
                if least > 0.0:
                    value = 0.0
                    for p in range(degree[k], -1, -1):
                        value = value * t + local[k, c, p]
                    found[c, i] += value
                found[c, i] *= height
            if found[0, i] < height * least:
                found[0, i] = UNDONE
            elif found[0, i] <= doubtful * near_weight[k]:
                empty = least == 0.0 and is_empty(q, x, offset[runs[k, NEAR]], offset[runs[k, END]], h)
                found[0, i] = 0.0 if empty else UNDONE


MOST, PAIRS = 256, 1 << 20  # queries of a run, and pairs: a few milliseconds


@loop
def nearest_keys(query, own, own_weight, leave_out, elsewhere, keys, distance, weight):
    """Write the distance (infinite if none) and the weight of each query's nearest key of positive weight."""
    # With `elsewhere`, of the keys that do not coincide with the query: they alone determine a slope, however small
    # their weight.
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
def join_ranges(first, last, starts):
    """Join neighbouring queries with nearly the same window into runs; return where the runs start."""
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
