"""Fused loops of local linear fits in one to three columns: distance, kernel and all sums of a pair in registers.

By stages a pair of `degree=1` passes through the cache once for each sum, four of them in one column and ten in three.
Here it does not, which takes a third to a half of the time. Only in float64, since sums of offsets need it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from kernpool.algorithms.loops.exponential import exp2, exp2_minus
from kernpool.algorithms.loops.tiles import GAUSSIAN, LAPLACE, LN_2
from kernpool.execution.compiling import bare_part, loop, ordered_loop, use_widest_vectors

COLUMNS = 3  # at most: four have nineteen sums, and there are not as many registers
TILE = 512
KERNELS = frozenset({GAUSSIAN, LAPLACE})  # of compact ones the edge decides, which is to be where NumPy has it
HALF_BIT, BIT = 0.5 / LN_2, 1.0 / LN_2


@ordered_loop
def weight_of(s, code, bounded):
    """Return the weight of a pair, without the height of the kernel, from its squared distance in bandwidths.

    Where exponents may be out of range it vanishes there, and is not clamped: beside large offsets that would count.
    """
    exponent = math.sqrt(s) * BIT if code == LAPLACE else s * HALF_BIT
    return exp2_minus(exponent, 1) if bounded == 1 else exp2(-exponent)


@bare_part
def with_pair(sums, w, t, v, columns):
    """Add a pair to fourteen sums: of weights and values, then column by column; those beyond `columns` stay."""
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
def put(sums, i, denominator, numerator, columns):
    """Add the sums of a tile to those of a query, in the order of `kernpool.core.moments`."""
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
    """Return the loop of a kernel and a number of columns.

    Parameters
    ----------
    code, columns : int
        Kernel code; 1 to 3.
    weighted, own, bounded : int
        1 if keys have weights; if queries leave one of their own key out; if no exponent is out of range.

    Returns
    -------
    callable
        See `block`. Compiled with the first call, for this specialisation alone.
    """
    key = (code, columns, weighted, own, bounded)
    # Two threads may both make one; all of them use the first, and it is compiled once, under Numba's own lock.
    return _SPECIALISED.get(key) or _SPECIALISED.setdefault(key, _make(*key))


def _make(code: int, columns: int, weighted: int, own: int, bounded: int) -> Callable[..., Any]:
    second, third = min(1, columns - 1), columns - 1  # those beyond `columns` are not looked at
    nothing = (0.0,) * 14

    @loop
    def block(query, key, value, weight, place, mine, mine_weight, scale, denominator, numerator):
        """Add a block of queries and keys up, into the last two arguments."""
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
                put(sums, i, denominator, numerator, columns)

    return block
