"""Compiled loops over few rows that are each other's keys: every pair once, for both of its rows.

Columns come in units in which a weight is ``2**-(squared distance)``, rows in order of the first column. What is summed
and the sums are (columns, rows): every inner loop runs along rows. `kernel` and `moved` hold what one row needs.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.loops.exponential import exp2_minus_64
from kernpool.execution.compiling import bare_loop, bare_part


@bare_part
def _weigh(columns, i, stop, kernel):
    """Write the weights of row `i` on the rows between it and `stop`."""
    for a in range(columns.shape[0]):
        here, later = columns[a, i], columns[a, i + 1 : stop]
        for j in range(later.size):
            offset = later[j] - here
            kernel[j] = offset * offset if a == 0 else kernel[j] + offset * offset
    for j in range(stop - i - 1):
        kernel[j] = exp2_minus_64(kernel[j])


@bare_part
def _add(kernel, weighted, i, stop, sums):
    """Add what row `i` gives to the rows between it and `stop`, and what they give to it."""
    for c in range(weighted.shape[0]):
        theirs, their_sums = weighted[c, i + 1 : stop], sums[c, i + 1 : stop]
        own, total = weighted[c, i], 0.0
        for j in range(theirs.size):
            their_sums[j] += kernel[j] * own
            total += kernel[j] * theirs[j]
        sums[c, i] += total


@bare_loop
def add_others(columns, weighted, reach, sums, kernel):
    """Add to each row's sums those of the other rows, as far as they are in reach in the first column."""
    stop, n = 0, columns.shape[1]
    for i in range(n):
        while stop < n and columns[0, stop] - columns[0, i] <= reach:
            stop += 1
        _weigh(columns, i, stop, kernel)
        _add(kernel, weighted, i, stop, sums)


@bare_loop
def sum_nearest(columns, weighted, alone, most, sums):
    """Write the sums of rows of one column that are alone, in units of their nearest neighbour's weight.

    From there outwards, as far as exponents of weights differ by at most `most`.
    """
    x, n = columns[0], columns.shape[1]
    for i in range(n):
        if not alone[i]:
            continue
        before = x[i] - x[i - 1] if i > 0 else np.inf
        after = x[i + 1] - x[i] if i + 1 < n else np.inf
        nearest = min(before, after)
        for c in range(weighted.shape[0]):
            sums[c, i] = 0.0
        for step in (-1, 1):
            j = i + step
            while 0 <= j < n:
                offset = abs(x[j] - x[i])
                s = (offset - nearest) * (offset + nearest)
                if s > most:
                    break
                kernel = exp2_minus_64(s)
                for c in range(weighted.shape[0]):
                    sums[c, i] += kernel * weighted[c, j]
                j += step


@bare_loop
def add_moved(columns, weighted, reach, sums, kernel, moved):
    """Add the same with weights times squared offsets: how the sums grow with the logarithm of each bandwidth.

    The sums have one table for each column.
    """
    stop, n = 0, columns.shape[1]
    for i in range(n):
        while stop < n and columns[0, stop] - columns[0, i] <= reach:
            stop += 1
        _weigh(columns, i, stop, kernel)
        for a in range(columns.shape[0]):
            here, later = columns[a, i], columns[a, i + 1 : stop]
            for j in range(later.size):
                offset = later[j] - here
                moved[j] = kernel[j] * (offset * offset)
            _add(moved, weighted, i, stop, sums[a])
