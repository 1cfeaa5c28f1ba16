"""Compiled sums over near keys, which every query of a block visits one by one.

Near keys are copied next to each other, up to a multiple of 16, so that the loops over pairs run in full vectors. The
loops are short, and half of their time went into remainders. Several queries per load of a key were no faster. A bin
of many equal keys counts as one key.

Every statement here costs some milliseconds when a fresh process compiles it, and every function some fifty.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kernpool.algorithms.loops.kernel_weights import LOG2_E, exp2
from kernpool.execution.compilation import bare_loop, bare_part, strict_loop

WIDTH = 16  # near keys come in multiples of it
TIED = 32  # equal keys of a bin, from which on they count as one
UNDONE = -1.0  # the denominator of a query that has to be done key by key
# Where the runs of bins that a block of queries looks at start: near ones at 0, 2 and 4, far ones at 1 and 3.
NEAR, FAR_LEFT, HOLE, FAR_RIGHT, NEAR_RIGHT, END = range(6)
SHORT = 256  # keys that are summed again as quickly as they are left to others
LAPLACE, GAUSSIAN = 0, -1  # in place of the inner power of a polynomial


@bare_loop
def cut_blocks(x, start, stop, width, most, place, low, high):
    """Cut binned queries into blocks of limited width and number of queries; return the number of blocks."""
    # `place` gets where each block starts and, behind the last, where that stops; `low` and `high` its ends.
    number = -1
    for i in range(start, stop):
        q = x[i]
        if number >= 0 and i - place[number] < most:
            below, above = min(low[number], q), max(high[number], q)
            if above - below <= width:
                low[number], high[number] = below, above
                continue
        number += 1
        place[number], low[number], high[number] = i, q, q
    place[number + 1] = stop
    return number + 1


@strict_loop
def middle_of(low, high):
    """Return the middle of a cell or block, with the same rounding at each call."""
    # That matters because the bandwidth h may be tiny compared with it.
    return 0.5 * low + 0.5 * high


@bare_part
def walk(ascending, x, i):
    """Return how many elements of a sorted array are below x, by doubling steps from the guess `i`."""
    first, last, step = i, i, 1
    while first > 0 and ascending[first - 1] >= x:
        last, first, step = first - 1, max(first - step, 0), 2 * step
    while last < ascending.size and ascending[last] < x:
        first, last, step = last + 1, min(last + step, ascending.size), 2 * step
    while first < last:
        middle = (first + last) // 2
        if ascending[middle] < x:
            first = middle + 1
        else:
            last = middle
    return first


@bare_part
def is_tied(offset, low, high, b):
    """Return whether bin `b` has many keys, at least `TIED`, that are all equal."""
    return high[b] == low[b] and offset[b + 1] - offset[b] >= TIED


@bare_loop
def reserve(offset, runs, near):
    """Write where each query block's near keys start in a buffer, and where those of the last block stop, to `near`."""
    # Starts are multiples of `WIDTH`.
    at = 0
    for k in range(runs.shape[0]):
        near[k] = at
        for run in range(0, 6, 2):
            at += offset[runs[k, run + 1]] - offset[runs[k, run]]
        at += -at % WIDTH
    near[runs.shape[0]] = at


@bare_part
def copy(source, out):
    """Fill the array `out` with the first elements of `source`."""
    for j in range(out.size):
        out[j] = source[j]


@bare_loop
def collect(x, weight, value, offset, low, high, total, runs, near, near_x, times, near_weight):
    """Copy the near keys of every query block into buffers, padded by keys of zero weight."""
    # A bin of many equal keys becomes one key. `total` has the sums of weight and of weight times value of every bin,
    # `times` gets the same of each key, and `near_weight` of each block.
    columns = times.shape[0]
    for k in range(runs.shape[0]):
        at = near[k]
        for run in range(0, 6, 2):
            b, last = runs[k, run], runs[k, run + 1]
            while b < last:
                start, first = offset[b], b
                while b < last and not is_tied(offset, low, high, b):
                    b += 1
                size = offset[b] - start
                if b == first:
                    near_x[at] = low[b]
                    for c in range(columns):
                        times[c, at] = total[b, c]
                    at += 1
                    b += 1
                    continue
                # Full vectors, with some keys behind the run: what follows overwrites them.
                copied = min(size + -size % WIDTH, x.size - start)
                copy(x[start : start + copied], near_x[at : at + copied])
                for c in range(columns):
                    out = times[c, at : at + copied]
                    if c:
                        copy(value[c - 1, start : start + copied], out)
                    else:
                        for j in range(copied):
                            out[j] = 1.0
                    if weight.size:
                        for j in range(copied):
                            out[j] *= weight[start + j]
                at += size
        near_weight[k] = 0.0
        for j in range(near[k], at):
            near_weight[k] += times[0, j]
        for j in range(at, near[k + 1]):
            near_x[j] = near_x[near[k]]
            for c in range(columns):
                times[c, j] = 0.0


@lru_cache
def near_pair_loop(inner: int, outer: int) -> Callable[..., Any]:
    """Build the loop that sums near pairs, for the kernel ``(1 - |u|**inner)**outer`` or for the Laplace kernel."""
    # A polynomial kernel is zero outside of its support. `inner` and `outer` are compile-time constants, so that only
    # one of the branches is compiled.
    # The boxcar has an edge: fl(|q - x|) <= h is what NumPy finds of |q - x| / h <= 1, without a division.
    compile_loop = strict_loop if outer == 0 and inner != LAPLACE else bare_loop

    @compile_loop
    def add_pairs(query, block, near, near_x, times, h, found):
        """Write the sums of weights and of weighted values over the near keys of each query to `found`."""
        rate, inverse = LOG2_E / h, 1.0 / h
        for k in range(near.size - 1):
            # Slices, because an index that might be negative would be tested for that, pair by pair.
            x, weight = near_x[near[k] : near[k + 1]], times[0, near[k] : near[k + 1]]
            for c in range(min(1, times.shape[0] - 1), times.shape[0]):
                value = times[c, near[k] : near[k + 1]]
                for i in range(block[k], block[k + 1]):
                    q, a, b = query[i], 0.0, 0.0
                    for j in range(x.size):
                        u = abs(q - x[j])
                        if inner == LAPLACE:
                            z = exp2(-u * rate)
                        elif outer == 0:
                            z = 1.0 if u <= h else 0.0
                        else:
                            u *= inverse
                            if inner == 2:
                                u = u * u
                            elif inner == 3:
                                u = u * u * u
                            z = max(1.0 - u, 0.0)
                            if outer == 2:
                                z = z * z
                            elif outer == 3:
                                z = z * z * z
                            elif outer > 3:
                                square = z * z
                                rest = square if outer == 4 else square * z if outer == 5 else square * square
                                z = square * rest
                        a += z * weight[j]
                        b += z * value[j]
                    found[0, i - block[0]], found[c, i - block[0]] = a, b

    return add_pairs


@strict_loop
def weight_of(q, x, h, inner, outer):
    """Return the kernel weight of a query-key pair up to a constant factor, with its support as NumPy rounds it."""
    u = abs(q - x) / h
    if inner == LAPLACE:
        return exp2(-LOG2_E * u)
    if inner == GAUSSIAN:
        return exp2(-0.5 * LOG2_E * u * u)
    if outer == 0:
        return 1.0 if u <= 1.0 else 0.0
    return max(1.0 - u**inner, 0.0) ** outer


@bare_loop
def subtract_own_keys(x, weight, value, offset, runs, block, query, own, own_weight, h, height, inner, outer, found):
    """Subtract each query's own key (leave-one-out); recompute or flag queries that lose over half of their weight."""
    # A sum of a polynomial kernel over few keys is recomputed here; all others are flagged, to be computed key by key.
    columns = found.shape[0]
    for k in range(runs.shape[0]):
        first, last = offset[runs[k, NEAR]], offset[runs[k, END]]
        short = inner > LAPLACE and runs[k, FAR_LEFT] == runs[k, END] and last - first <= SHORT
        for i in range(block[k], block[k + 1]):
            row, mine = i - block[0], own[i]
            if mine < 0 or found[0, row] == UNDONE:
                continue
            left = own_weight[i]
            times = (weight[mine] if weight.size else 1.0) - left
            times *= height * weight_of(query[i], x[mine], h, inner, outer)
            if times <= 0.5 * found[0, row]:  # then the subtraction costs no digits
                found[0, row] -= times
                for c in range(1, columns):
                    found[c, row] -= times * value[c - 1, mine]
                continue
            if not short:
                found[0, row] = UNDONE
                continue
            for c in range(columns):
                found[c, row] = 0.0
            for j in range(first, last):
                times = left if j == mine else (weight[j] if weight.size else 1.0)
                times *= height * weight_of(query[i], x[j], h, inner, outer)
                found[0, row] += times
                for c in range(1, columns):
                    found[c, row] += times * value[c - 1, j]


@bare_loop
def write_out(found, order, start, denominator, numerator):
    """Copy the sums of sorted queries to their original rows of `denominator` and `numerator`."""
    # Writing query by query during the summation was slower: the scattered writes took longer than all other work.
    for i in range(found.shape[1]):
        row = order[start + i]
        denominator[row] = found[0, i]
        for c in range(1, found.shape[0]):
            numerator[row, c - 1] = found[c, i]
