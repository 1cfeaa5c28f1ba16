"""Compiled loops that put numbers into bins; see `bins.py`."""

from __future__ import annotations

import numpy as np

from kernpool.execution.compiling import bare_loop, bare_part, loop, strict_loop


@strict_loop
def bin_of(x, low, scale, last):
    """The bin of a number. Rounding keeps the order, so bins follow each other whatever the last digit does."""
    return min(int((x - low) * scale), last)


@strict_loop
def count(x, low, scale, last, shift, counts):
    """Count the numbers of each bucket, which has 2**shift bins."""
    for i in range(x.size):
        counts[bin_of(x[i], low, scale, last) >> shift] += 1


@bare_part
def count_below(ascending, x):
    """Count the numbers below x; np.searchsorted would take a second to compile."""
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
    """Turn counts per part and bin into the place where each part starts to write into each bin."""
    total = 0
    for b in range(place.shape[1]):
        for i in range(place.shape[0]):
            here = place[i, b]
            place[i, b] = total
            total += here


@strict_loop
def scatter(x, first, low, scale, last, shift, place, order, ordered):
    """Write numbers, and where they came from, to their buckets."""
    for i in range(x.size):
        b = bin_of(x[i], low, scale, last) >> shift
        p = place[b]
        place[b] = p + 1
        order[p] = first + i
        ordered[p] = x[i]


@strict_loop
def scatter_again(x, source, start, bucket, low, scale, last, shift, end, order, ordered):
    """Write the numbers of a bucket, and where they came from, to their bins, whose ends are found on the way."""
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
    """Smallest and largest number of each bin."""
    for b in range(low.size):
        smallest, largest = x[offset[b]], x[offset[b]]
        for i in range(offset[b] + 1, offset[b + 1]):
            smallest = min(smallest, x[i])
            largest = max(largest, x[i])
        low[b], high[b] = smallest, largest


@loop
def cuts(x, size):
    """Cut sorted numbers into bins of about `size`; a run of at least as many equal numbers is a bin of its own."""
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
    """Collect rows of `source` in this order, from one place to another, as columns."""
    for c in range(out.shape[0]):
        for i in range(start, stop):
            out[c, i] = source[order[i], c]
