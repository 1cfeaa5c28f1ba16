"""Compiled bucket sort of the keys or queries of one column, by counting, in linear time.

Numbers are put into bins of equal width, for `algorithms/sweep/sorted_column.py`, which sorts and cuts overfull bins.
"""

import numpy as np

from kernpool.execution.compilation import bare_loop, bare_part, loop, strict_loop


@strict_loop
def bin_of(x, low, scale, last):
    """Return the index, at most `last`, of the equal-width bin that holds the number `x`."""
    # Rounding is monotone, so bins are in order whatever the last digit is.
    return min(int((x - low) * scale), last)


@strict_loop
def count(x, low, scale, last, shift, counts):
    """Add the number of elements of `x` in each bucket of 2**shift bins to `counts`."""
    for i in range(x.size):
        counts[bin_of(x[i], low, scale, last) >> shift] += 1


@bare_part
def count_below(ascending, x):
    """Return how many elements of a sorted array are below x."""
    # `np.searchsorted` would take a second to compile.
    first, last = 0, ascending.size
    while first < last:
        middle = (first + last) // 2
        if ascending[middle] < x:
            first = middle + 1
        else:
            last = middle
    return first


@bare_loop
def starts(place):
    """Replace counts per part of the data and bucket by the output index where the part starts to fill the bucket."""
    total = 0
    for b in range(place.shape[1]):
        for i in range(place.shape[0]):
            here = place[i, b]
            place[i, b] = total
            total += here


@strict_loop
def scatter(x, first, low, scale, last, shift, place, order, ordered):
    """Write each number and its original index to the next free position of its bucket."""
    for i in range(x.size):
        b = bin_of(x[i], low, scale, last) >> shift
        p = place[b]
        place[b] = p + 1
        order[p] = first + i
        ordered[p] = x[i]


@strict_loop
def scatter_again(x, source, start, bucket, low, scale, last, shift, end, order, ordered):
    """Write the numbers of one bucket, and their original indices, into its bins; write where bins end to `end`."""
    for i in range(start[bucket], start[bucket + 1]):
        end[bin_of(x[i], low, scale, last)] += 1
    total = start[bucket]
    for b in range(bucket << shift, min((bucket + 1) << shift, end.size)):
        here = end[b]
        end[b] = total
        total += here
    for i in range(start[bucket], start[bucket + 1]):
        b = bin_of(x[i], low, scale, last)
        p = end[b]
        end[b] = p + 1
        order[p] = source[i]
        ordered[p] = x[i]


@bare_loop
def extremes(x, offset, low, high):
    """Write the smallest and the largest number of each bin to `low` and `high`."""
    for b in range(low.size):
        smallest, largest = x[offset[b]], x[offset[b]]
        for i in range(offset[b] + 1, offset[b + 1]):
            smallest = min(smallest, x[i])
            largest = max(largest, x[i])
        low[b], high[b] = smallest, largest


@loop
def cuts(x, size):
    """Return the start indices of bins of about `size` sorted numbers; long runs of ties are bins of their own."""
    # Long runs are those of at least `size` equal numbers.
    found = np.empty(x.size, dtype=np.int64)
    number, start, i = 0, 0, 0
    while i < x.size:
        stop = i + 1
        while stop < x.size and x[stop] == x[i]:
            stop += 1
        if i == 0 or stop - i >= size or i - start >= size:
            found[number] = i
            number, start = number + 1, i
        if stop - i >= size and stop < x.size:
            found[number] = stop
            number, start = number + 1, stop
        i = stop
    # a cut may have been noted twice: after a run and before the next
    return np.unique(found[:number])


@bare_loop
def gather(source, order, start, stop, out):
    """Write the rows of `source` that ``order[start:stop]`` lists to the columns ``start:stop`` of `out`."""
    for c in range(out.shape[0]):
        for i in range(start, stop):
            out[c, i] = source[order[i], c]
