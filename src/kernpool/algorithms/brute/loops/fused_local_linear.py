"""Fused loops for local linear fits and for gradients, with keys of one to three columns, in float64.

Local linear fits: distance, kernel and all sums of a pair stay in registers. In the staged tiles a pair of `degree=1`
passes through the cache once for each sum, four in one column and ten in three. The fused loop takes a third to a
half of that time. Sums of offsets need float64.

Gradients: weight, residual and all sums of a query stay in registers. Sums per key go through a tile: a pair writes
its linear weight and its change of the logit there, and each column of keys is added in a loop of its own, because
LLVM stops vectorising where many arrays are read and written at once. Four queries are added together, so sums per
key are read and written once for four pairs.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernpool.algorithms.loops.kernel_weights import GAUSSIAN, LAPLACE, LN_2, exp2, exp2_minus
from kernpool.execution.compilation import bare_part, loop, ordered_loop, use_widest_vectors

COLUMNS = 3  # at most: four have nineteen sums, and there are not as many registers
TILE = 512
KERNELS = frozenset({GAUSSIAN, LAPLACE})  # of compact ones the edge decides, which is to be where NumPy has it
HALF_BIT, BIT = 0.5 / LN_2, 1.0 / LN_2


@ordered_loop
def weight_of(s, code, bounded):
    """Return the kernel's value at squared distance `s` (in bandwidths), as a fraction of its value at zero."""
    # Exponents out of range give zero and not a clamped weight, which large offsets would make visible.
    exponent = math.sqrt(s) * BIT if code == LAPLACE else s * HALF_BIT
    return exp2_minus(exponent, 1) if bounded == 1 else exp2(-exponent)


@bare_part
def with_pair(sums, w, t, v, columns):
    """Return the running moment sums that a local linear fit needs, with one query-key pair added."""
    # There are fourteen: of weights and values, then those of each column. Sums of columns beyond `columns` are
    # unchanged.
    weight, value, a, aa, av, b, ab, bb, bv, c, ac, bc, cc, cv = sums
    wa = w * t[0]
    weight, value, a, aa, av = weight + w, value + w * v, a + wa, aa + wa * t[0], av + wa * v
    if columns > 1:
        wb = w * t[1]
        b, ab, bb, bv = b + wb, ab + wa * t[1], bb + wb * t[1], bv + wb * v
    if columns > 2:
        wc = w * t[2]
        c, ac, bc, cc, cv = c + wc, ac + wa * t[2], bc + wb * t[2], cc + wc * t[2], cv + wc * v
    return weight, value, a, aa, av, b, ab, bb, bv, c, ac, bc, cc, cv


@bare_part
def add_tile_sums(sums, i, denominator, numerator, columns):
    """Add the moment sums over a tile of keys to row `i` of `denominator` and `numerator`."""
    # Columns are in the order of `kernpool.core.moments`.
    weight, value, a, aa, av, b, ab, bb, bv, c, ac, bc, cc, cv = sums
    denominator[i] += weight
    row = numerator[i]
    row[0] += value
    row[1] += a
    if columns == 1:
        row[2] += aa
        row[3] += av
    if columns == 2:
        row[2] += b
        row[3] += aa
        row[4] += ab
        row[5] += bb
        row[6] += av
        row[7] += bv
    if columns == 3:
        row[2] += b
        row[3] += c
        row[4] += aa
        row[5] += ab
        row[6] += ac
        row[7] += bb
        row[8] += bc
        row[9] += cc
        row[10] += av
        row[11] += bv
        row[12] += cv


_SPECIALISED: dict[tuple[int, ...], Callable[..., Any]] = {}


def specialise(code: int, columns: int, weighted: int, own: int, bounded: int) -> Callable[..., Any]:
    """Return the loop for local linear moment sums, compiled for one kernel, number of columns and set of flags."""
    key = (code, columns, weighted, own, bounded)
    # Two threads may both make one; all of them use the first, and it is compiled once, under Numba's own lock.
    return _SPECIALISED.get(key) or _SPECIALISED.setdefault(key, _make(*key))


def _make(code: int, columns: int, weighted: int, own: int, bounded: int) -> Callable[..., Any]:
    second, third = min(1, columns - 1), columns - 1  # those beyond `columns` are not looked at
    nothing = (0.0,) * 14

    @loop
    def block(query, key, value, weight, place, mine, mine_weight, scale, denominator, numerator):
        """Add each query's local linear moment sums over a block of keys to `denominator` and `numerator`."""
        use_widest_vectors()
        n = key.shape[1]
        s0, s1, s2 = scale[0], scale[second], scale[third]
        for i in range(query.shape[0]):
            q0, q1, q2 = query[i, 0], query[i, second], query[i, third]
            for first in range(0, n, TILE):
                last = min(first + TILE, n)
                k0, k1, k2 = key[0, first:last], key[second, first:last], key[third, first:last]
                v, times = value[first:last], weight[first:last] if weighted == 1 else k0
                here, left = float(mine[i] - first), mine_weight[i]
                sums = nothing
                for j in range(k0.size):
                    t0 = (k0[j] - q0) * s0
                    t1 = (k1[j] - q1) * s1 if columns > 1 else 0.0
                    t2 = (k2[j] - q2) * s2 if columns > 2 else 0.0
                    w = weight_of(t0 * t0 + t1 * t1 + t2 * t2, code, bounded)
                    count = times[j] if weighted == 1 else 1.0
                    if own == 1:
                        count = left if place[j] == here else count
                    if own == 1 or weighted == 1:
                        w *= count
                    sums = with_pair(sums, w, (t0, t1, t2), v[j], columns)
                add_tile_sums(sums, i, denominator, numerator, columns)

    return block


@bare_part
def add_key_gradients(out, changes, key, places, scale):
    """Add four queries' contributions to the gradient with respect to one coordinate of a tile of keys."""
    use_widest_vectors()
    c0, c1, c2, c3 = changes[0], changes[1], changes[2], changes[3]
    q0, q1, q2, q3 = places[0], places[1], places[2], places[3]
    for j in range(key.size):
        k = key[j]
        moved = c0[j] * ((q0 - k) * scale) + c1[j] * ((q1 - k) * scale)
        out[j] += (moved + c2[j] * ((q2 - k) * scale) + c3[j] * ((q3 - k) * scale)) * scale


@bare_part
def add_value_gradients(out, shares, slopes):
    """Add four queries' contributions to the gradient with respect to the values of a tile of keys."""
    use_widest_vectors()
    w0, w1, w2, w3 = shares[0], shares[1], shares[2], shares[3]
    s0, s1, s2, s3 = slopes[0], slopes[1], slopes[2], slopes[3]
    for j in range(out.size):
        out[j] += s0 * w0[j] + s1 * w1[j] + s2 * w2[j] + s3 * w3[j]


ROWS = 4  # queries that are added together, as `add_key_gradients` and `add_value_gradients` are written


def specialise_gradients(
    code: int, columns: int, weighted: int, own: int, bounded: int, per_key: int
) -> Callable[..., Any]:
    """Return the loop for gradients of weighted means, compiled for one kernel, number of columns and set of flags."""
    key = (code, columns, weighted, own, bounded, per_key)
    # Two threads may both make one; all of them use the first, and it is compiled once, under Numba's own lock.
    return _SPECIALISED.get(key) or _SPECIALISED.setdefault(key, _make_gradients(*key))


def _make_gradients(code: int, columns: int, weighted: int, own: int, bounded: int, per_key: int) -> Callable[..., Any]:
    second, third = min(1, columns - 1), columns - 1  # those beyond `columns` are not looked at

    @loop
    def block(
        query, key, value, weight, place, mine, mine_weight, scale, inverse, intercept, slope,
        by_query, by_bandwidth, by_key, by_value,
    ):  # fmt: skip
        """Add a block's contribution to the gradients of weighted means, in the `by_*` arrays that are not empty.

        See `reference.pullback` for the formula, and `kernpool.algorithms.brute.loops.tiles` for every kernel.
        """
        use_widest_vectors()
        m, n = query.shape[0], key.shape[1]
        shares, changes = np.zeros((ROWS, TILE)), np.zeros((ROWS, TILE))
        slopes, places = np.zeros(ROWS), np.zeros((3, ROWS))
        s0, s1, s2 = scale[0], scale[second], scale[third]
        for begin in range(0, m, ROWS):
            for first in range(0, n, TILE):
                last = min(first + TILE, n)
                k0, k1, k2 = key[0, first:last], key[second, first:last], key[third, first:last]
                v, times = value[first:last], weight[first:last] if weighted == 1 else k0
                for r in range(ROWS):
                    i, share, change = begin + r, shares[r, : k0.size], changes[r, : k0.size]
                    if i >= m or inverse[i] == 0.0:  # its slope may be infinite, too
                        slopes[r] = 0.0
                        share[:] = 0.0
                        change[:] = 0.0
                        continue
                    q0, q1, q2 = query[i, 0], query[i, second], query[i, third]
                    unit, middle, times_slope = inverse[i], intercept[i], slope[i]
                    slopes[r], places[0, r], places[1, r], places[2, r] = times_slope, q0, q1, q2
                    here, left = float(mine[i] - first), mine_weight[i]
                    a, b, c, aa, bb, cc = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
                    for j in range(k0.size):
                        t0 = (q0 - k0[j]) * s0
                        t1 = (q1 - k1[j]) * s1 if columns > 1 else 0.0
                        t2 = (q2 - k2[j]) * s2 if columns > 2 else 0.0
                        s = t0 * t0 + t1 * t1 + t2 * t2
                        w = weight_of(s, code, bounded) * unit
                        count = times[j] if weighted == 1 else 1.0
                        if own == 1:
                            count = left if place[j] == here else count
                        if own == 1 or weighted == 1:
                            w *= count
                        moved = w * (times_slope * (v[j] - middle))
                        if code == LAPLACE:  # at distance zero a symmetric kernel has slope zero
                            moved = moved / math.sqrt(s) if s > 0.0 else 0.0
                        if per_key == 1:
                            share[j] = w
                            change[j] = moved
                        a += moved * t0
                        aa += moved * t0 * t0
                        if columns > 1:
                            b += moved * t1
                            bb += moved * t1 * t1
                        if columns > 2:
                            c += moved * t2
                            cc += moved * t2 * t2
                    if by_query.size:
                        by_query[i, 0] -= a * s0
                        if columns > 1:
                            by_query[i, 1] -= b * s1
                        if columns > 2:
                            by_query[i, 2] -= c * s2
                    if by_bandwidth.size:
                        by_bandwidth[i, 0] += aa
                        if columns > 1:
                            by_bandwidth[i, 1] += bb
                        if columns > 2:
                            by_bandwidth[i, 2] += cc
                if per_key == 1:
                    if by_value.size:
                        add_value_gradients(by_value[0, first:last], shares, slopes)
                    if by_key.size:
                        add_key_gradients(by_key[0, first:last], changes, k0, places[0], s0)
                        for a in range(1, columns):
                            add_key_gradients(by_key[a, first:last], changes, key[a, first:last], places[a], scale[a])

    return block
