r"""Compiled loops for compact kernels that are polynomials in ``|u|``: near keys one by one, far keys by their moments.

The keys that lie wholly inside the windows of a whole group of queries are the same for each query of the group, and
their weights sum to one polynomial in the position of the query. It is made of moments of cells, at most half a
bandwidth wide, and moments are only ever added: from the first bin of a cell up to some bin (`prefix`), or from some
bin to the last of its cell (`suffix`). The classical fast sum updating subtracts prefix sums instead, and loses all
digits at small bandwidths. Only the keys near the ends of the windows are visited one by one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.bin_loops import count_below
from kernpool.algorithms.compiling import loop, part, strict_loop
from kernpool.algorithms.near_loops import collect, is_tied, leave_own_out, make_near, restore
from kernpool.algorithms.tiles import EDGE

TILE = 512


class Cells(NamedTuple):
    """For every bin: its cell's first and last bin and centre, and the moments of the cell up to it and from it on."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    center: NDArray[np.float64]
    prefix: NDArray[np.float64]
    suffix: NDArray[np.float64]


class Profile(NamedTuple):
    """A kernel as a polynomial in abs(u), and as a power of one less a power of abs(u); see `pool_near`."""

    coefficient: NDArray[np.float64]
    binomial: NDArray[np.float64]
    factors: NDArray[np.float64]
    odd: bool


# Powers of positions cancel where weights are faint beside the keys that they are sums of; see `pool_groups`.
FAINT_SHARE = 0.03
# A whole bin is inside of a window only if rounding cannot doubt it.
INSIDE = 1.0 - 1e-12
FEW = 64  # keys in reach, up to which visiting them is faster than anything else


@loop
def make_cells(keys, first_bin, last_bin, h, cells):
    """Join neighbouring bins into cells and sum the moments of keys about the centres of cells, over bins."""
    first, last, center, prefix, suffix = cells
    b = first_bin
    while b < last_bin:
        stop = b + 1
        tied = is_tied(keys, b)
        while stop < last_bin and not tied and keys.high[stop] - keys.low[b] <= 0.5 * h and not is_tied(keys, stop):
            stop += 1
        middle = 0.5 * keys.low[b] + 0.5 * keys.high[stop - 1]
        for i in range(b, stop):
            first[i], last[i], center[i] = b, stop - 1, middle
            add_moments(prefix, i, keys, middle, h)
            for c in range(prefix.shape[1]):
                for p in range(prefix.shape[2]):
                    suffix[i, c, p] = prefix[i, c, p]
                    if i > b:
                        prefix[i, c, p] += prefix[i - 1, c, p]
        for i in range(stop - 2, b - 1, -1):
            for c in range(prefix.shape[1]):
                for p in range(prefix.shape[2]):
                    suffix[i, c, p] += suffix[i + 1, c, p]
        b = stop


@part
def add_moments(moment, b, keys, center, h):
    """Sums of weight and of weight times value, times powers of ``(key - center) / h``."""
    power = np.empty(TILE)
    for begin in range(keys.offset[b], keys.offset[b + 1], TILE):
        size = min(TILE, keys.offset[b + 1] - begin)
        for j in range(size):
            power[j] = keys.weight[begin + j] if keys.weight.size else 1.0
        for p in range(moment.shape[2]):
            total = 0.0
            for j in range(size):
                total += power[j]
            moment[b, 0, p] += total
            for c in range(keys.value.shape[0]):
                total = 0.0
                for j in range(size):
                    total += power[j] * keys.value[c, begin + j]
                moment[b, 1 + c, p] += total
            for j in range(size):
                power[j] *= (keys.x[begin + j] - center) / h


@part
def clear(sums):
    """Set all to zero."""
    for c in range(sums.shape[0]):
        for p in range(sums.shape[1]):
            sums[c, p] = 0.0


@part
def add_translated(sums, scratch, moments, b, distance):
    """Add ``sum w (distance - s)**r`` for all r to `sums`, from the ``sum w s**r`` of bin b; distances are about 1."""
    degree = sums.shape[1] - 1
    for c in range(sums.shape[0]):
        sign = 1.0
        for p in range(degree + 1):
            scratch[p] = sign * moments[b, c, p]
            sign = -sign
        # The binomial theorem by Horner's scheme: after round r the entries up to r + 1 are right.
        for r in range(degree):
            for p in range(degree, r, -1):
                scratch[p] += distance * scratch[p - 1]
        for p in range(degree + 1):
            sums[c, p] += scratch[p]


@part
def add_bins(sums, scratch, first_bin, last_bin, place, h, cells):
    """Add the moments, about a place, of all keys of a run of bins; False if it is a piece out of one cell's middle."""
    if first_bin > last_bin:
        return True
    if cells.last[first_bin] > last_bin and cells.first[first_bin] < first_bin:
        return False
    b = first_bin
    if cells.first[b] < b:
        add_translated(sums, scratch, cells.suffix, b, (place - cells.center[b]) / h)
        b = cells.last[b] + 1
    while b <= last_bin:
        end = min(cells.last[b], last_bin)
        add_translated(sums, scratch, cells.prefix, end, (place - cells.center[b]) / h)
        b = end + 1
    return True


@part
def add_polynomial(local, sums, kernel, side):
    """From moments about the middle of a group to the coefficients of ``sum w K`` there; `side` is the sign of u."""
    degree = kernel.coefficient.size - 1
    for c in range(local.shape[0]):
        sign = 1.0
        for p in range(degree + 1):
            if kernel.coefficient[p] != 0.0:
                for r in range(p + 1):
                    local[c, r] += sign * kernel.coefficient[p] * kernel.binomial[p, r] * sums[c, p - r]
            sign *= side


@part
def pool_near(x, weight, value, size, q, h, factors, kernel):
    """Sums of weight and of weight times first value over the collected keys; `kernel` keeps the kernel's values.

    With ``z = 1 - |u|**r`` every kernel here is a multiple of a power of z. Factors that are one or zero pick both
    powers, so that one loop without branches, which the compiler vectorises, serves all kernels.
    """
    inverse = 1.0 / h
    root, square, cube, flat, linear, quadratic, cubic = (
        factors[0], factors[1], factors[2], factors[3], factors[4], factors[5], factors[6]
    )  # fmt: skip
    doubtful, sum_weight, sum_value = 0, 0.0, 0.0
    for j in range(size):
        u = abs(q - x[j]) * inverse
        distance = u * (root + u * (square + u * cube))
        z = max(1.0 - distance, 0.0)
        kernel[j] = z * (linear + z * (quadratic + z * cubic)) + (flat if distance <= 1.0 else 0.0)
        sum_weight += kernel[j] * weight[j]
        sum_value += kernel[j] * value[0, j]
        doubtful += 1 if abs(u - 1.0) < EDGE else 0
    if doubtful:
        sum_weight, sum_value = 0.0, 0.0
        for j in range(size):
            if abs(abs(q - x[j]) * inverse - 1.0) < EDGE:
                kernel[j] = flat if distance_on_edge(q, x[j], h) <= 1.0 else 0.0
                if flat == 0.0:
                    u = min(distance_on_edge(q, x[j], h), 1.0)
                    z = 1.0 - u * (root + u * (square + u * cube))
                    kernel[j] = z * (linear + z * (quadratic + z * cubic))
            sum_weight += kernel[j] * weight[j]
            sum_value += kernel[j] * value[0, j]
    return sum_weight, sum_value


@strict_loop
def distance_on_edge(q, x, h):
    """``|q - x| / h`` as NumPy rounds it, which decides on which side of the edge a key lies."""
    return abs(q - x) / h


@part
def horner(coefficient, c, degree, t):
    """Value of one of several polynomials."""
    value = coefficient[c, degree]
    for p in range(degree - 1, -1, -1):
        value = value * t + coefficient[c, p]
    return value


@loop
def pool_groups(queries, keys, cells, first_group, last_group, h, kernel, leave_out, denominator, numerator):
    """Pool groups of queries; a denominator of -1 says that the query has to be done key by key."""
    total_of_bin = cells.prefix[:, :, 0]  # of a bin of equal keys, which is a cell by itself
    bins, columns, degree = keys.low.size, cells.prefix.shape[1], kernel.coefficient.size - 1
    sums, local = np.empty((columns, degree + 1)), np.empty((columns, degree + 1))
    scratch, own_far = np.empty(degree + 1), np.zeros(4, np.int64)
    near, weight = make_near(TILE, columns - 1), np.empty(TILE)
    start = queries.offset[first_group]
    total = np.empty((columns, queries.offset[last_group] - start))
    split = leave_out or kernel.odd  # the keys among the queries have to be visited one by one
    reach = h * (2.0 - INSIDE)
    near_first = count_below(keys.high, queries.low[first_group] - reach, False)
    near_last, middle_first, middle_last = near_first - 1, near_first, near_first - 1
    for g in range(first_group, last_group):
        first, last = queries.offset[g], queries.offset[g + 1]
        low, high = queries.low[g], queries.high[g]
        while near_first < bins and keys.high[near_first] < low - reach:
            near_first += 1
        while near_last + 1 < bins and keys.low[near_last + 1] <= high + reach:
            near_last += 1
        while middle_first < bins and keys.high[middle_first] < low:
            middle_first += 1
        while middle_last + 1 < bins and keys.low[middle_last + 1] <= high:
            middle_last += 1
        full_first, full_last = near_first, near_last
        while full_first <= near_last and (high - keys.low[full_first]) / h > INSIDE:
            full_first += 1
        while full_last >= near_first and (keys.high[full_last] - low) / h > INSIDE:
            full_last -= 1
        far = high - low <= 0.25 * h and full_first <= full_last
        far = far and keys.offset[near_last + 1] - keys.offset[near_first] > FEW
        middle, far_weight = 0.5 * low + 0.5 * high, 0.0
        hole_first, hole_last = full_last + 1, full_last  # bins between the two far runs
        if far:
            clear(local)
            if split:
                full_first, full_last = min(full_first, middle_first), max(full_last, middle_last)
                hole_first, hole_last = middle_first, middle_last
            for side in range(2):  # calls stand here once only, because each is compiled by itself
                run_first, run_last = (hole_last + 1, full_last) if side else (full_first, hole_first - 1)
                if run_first <= run_last:
                    clear(sums)
                    far = far and add_bins(sums, scratch, run_first, run_last, middle, h, cells)
                    add_polynomial(local, sums, kernel, -1.0 if side else 1.0)
                    far_weight += sums[0, 0]
        if not far:
            full_first, hole_first, hole_last, full_last = near_last + 1, near_last + 1, near_last, near_last
        own_far[0], own_far[1] = keys.offset[full_first], keys.offset[hole_first]
        own_far[2], own_far[3] = keys.offset[hole_last + 1], keys.offset[full_last + 1]
        size = own_far[0] - keys.offset[near_first] + own_far[2] - own_far[1] + keys.offset[near_last + 1] - own_far[3]
        if size > weight.size:
            near, weight = make_near(2 * size, columns - 1), np.empty(2 * size)
        size = 0
        for run in range(3):
            run_first, run_last = near_first, full_first - 1
            if run > 0:
                run_first, run_last = (hole_first, hole_last) if run == 1 else (full_last + 1, near_last)
            size = collect(near, size, keys, run_first, run_last, total_of_bin)
        near_x, near_weight, near_value = near.x, near.weight, near.value
        for i in range(first, last):
            q, own_place, faint = queries.x[i], -1, False
            if leave_out and queries.own[i] >= 0:
                own = queries.own[i]
                own_place = leave_own_out(near, size, keys, own, queries.own_weight[i])
                faint = own_place == -2 or own_far[0] <= own < own_far[1] or own_far[2] <= own < own_far[3]
            sum_weight, sum_value = pool_near(near_x, near_weight, near_value, size, q, h, kernel.factors, weight)
            t = (q - middle) / h
            if far:
                sum_weight += horner(local, 0, degree, t)
                # Rounding is relative to the far weight: beside that the result must not be faint.
                faint = faint or not sum_weight >= FAINT_SHARE * far_weight
            total[0, i - start] = -1.0 if faint else sum_weight
            for c in range(1, columns):
                if c > 1:
                    sum_value = 0.0
                    for j in range(size):
                        sum_value += weight[j] * near_value[c - 1, j]
                total[c, i - start] = sum_value + (horner(local, c, degree, t) if far else 0.0)
            if own_place >= 0:  # put back for the next query
                restore(near, own_place)
    # Not query by query: scattered writes among other work took longer than all the work.
    for i in range(total.shape[1]):
        row = queries.order[start + i]
        denominator[row] = total[0, i]
        for c in range(1, columns):
            numerator[row, c - 1] = total[c, i]
