"""Fused loops for few columns: distance, kernel and sums in one pass over the keys, nothing but sums in memory.

They exist for the three kernels most used, radial, of up to three columns, and need half the time of staged tiles. A
pair of queries shares every key that is loaded. What a specialisation closes over are integers alone: those fold at
compile time, and the disk cache finds them again in the next process, which it does not for functions.

The loops do not care for what is rare. A query whose sum of weights is faint (all keys far away, or next to the edge
of a compact kernel) is left to the staged tiles, which know shifts and edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kernpool.algorithms.compiling import loop, ordered_loop
from kernpool.algorithms.exponential import exp2_minus_32, exp2_minus_64
from kernpool.algorithms.tiles import EPANECHNIKOV, GAUSSIAN, LAPLACE, LN_2

KERNELS = frozenset({GAUSSIAN, EPANECHNIKOV, LAPLACE})
MOST_COLUMNS = 3
TILE = 512  # float32 sums of more keys than this lose a digit
_ZERO_32, _FAR_32 = np.float32(0.0), np.float32(np.inf)


def scales(code: int, bandwidth: np.ndarray) -> np.ndarray:
    """Factors for differences, so that a weight is 2**-s (Gaussian), 2**-sqrt(s) (Laplace) or 1 - s of s = sum u**2."""
    factor = {GAUSSIAN: math.sqrt(0.5 / LN_2), LAPLACE: 1.0 / LN_2}.get(code, 1.0)
    return factor / bandwidth


def height(code: int) -> float:
    """Return what the loops leave out: the kernel at zero."""
    return {EPANECHNIKOV: 0.75, LAPLACE: 0.5}.get(code, 1.0)


@ordered_loop
def weight_64(q0, q1, q2, k0, k1, k2, scale, code, columns):
    """Weight of a pair, in float64; columns that do not exist are dropped by the compiler."""
    u = (q0 - k0) * scale[0]
    if code == LAPLACE and columns == 1:
        return exp2_minus_64(abs(u))
    s = u * u
    if columns > 1:
        u = (q1 - k1) * scale[1]
        s += u * u
    if columns > 2:
        u = (q2 - k2) * scale[2]
        s += u * u
    if code == EPANECHNIKOV:
        return 1.0 - s if s < 1.0 else 0.0
    if code == LAPLACE:
        return exp2_minus_64(math.sqrt(s))
    return exp2_minus_64(s)


@ordered_loop
def weight_32(q0, q1, q2, k0, k1, k2, scale, code, columns):
    """Weight of a pair, in float32; not for compact kernels, whose 1 - s would lose too many digits."""
    u = (q0 - k0) * scale[0]
    if code == LAPLACE and columns == 1:
        return exp2_minus_32(abs(u))
    s = u * u
    if columns > 1:
        u = (q1 - k1) * scale[1]
        s += u * u
    if columns > 2:
        u = (q2 - k2) * scale[2]
        s += u * u
    if code == LAPLACE:
        return exp2_minus_32(math.sqrt(s))
    return exp2_minus_32(s)


@lru_cache
def specialise(code: int, columns: int, width: int, weighted: int, one_value: int) -> Callable[..., Any]:
    """Make the loops of a kernel, a number of columns, a float width, and with or without key weights.

    Parameters
    ----------
    code, columns, width : int
        Kernel code, 1 to 3, and 32 or 64.
    weighted, one_value : int
        1 if keys have weights, and if values have one column, which then is summed in registers.

    Returns
    -------
    callable
        See `block`. Compiled with the first call, for this specialisation alone.
    """
    last_b, last_c = min(1, columns - 1), min(2, columns - 1)

    @loop
    def block(query, key, value, weight, own, own_weight, scale, denominator, numerator):
        """Sums of a block of queries over a block of keys, into the last two; weighted keys come with weighted values.

        In a tile with an own key the pair is split, and for either query its own key moves to infinity.
        """
        m, n = query.shape[0], key.shape[1]
        if width == 32:
            zero, far = _ZERO_32, _FAR_32
            buffer, keys = np.empty((2, TILE), np.float32), np.empty(TILE, np.float32)
        else:
            zero, far = 0.0, np.inf
            buffer, keys = np.empty((2, TILE)), np.empty(TILE)
        for i in range(0, m, 2):
            second = min(i + 1, m - 1)
            for row in (i, second):
                denominator[row] = 0.0
                for c in range(value.shape[0]):
                    numerator[row, c] = 0.0
            for first in range(0, n, TILE):
                stop = min(first + TILE, n)
                apart = first <= own[i] < stop or first <= own[second] < stop
                for visit in range(2 if apart else 1):
                    row_a = second if visit == 1 else i
                    row_b = row_a if apart else second
                    k0 = key[0, first:stop]
                    if apart:
                        for j in range(k0.size):
                            keys[j] = k0[j]
                        k0 = keys[: stop - first]
                        if first <= own[row_a] < stop:
                            k0[own[row_a] - first] = far
                    k1, k2 = key[last_b, first:stop], key[last_c, first:stop]
                    a0, a1, a2 = query[row_a, 0], query[row_a, last_b], query[row_a, last_c]
                    b0, b1, b2 = query[row_b, 0], query[row_b, last_b], query[row_b, last_c]
                    times = weight[first:stop] if weighted == 1 else k0
                    column, buffer_a, buffer_b = value[0, first:stop], buffer[0], buffer[1]
                    weights_a, weights_b, total_a, total_b = zero, zero, zero, zero
                    for j in range(k0.size):
                        if width == 32:
                            weight_a = weight_32(a0, a1, a2, k0[j], k1[j], k2[j], scale, code, columns)
                            weight_b = weight_32(b0, b1, b2, k0[j], k1[j], k2[j], scale, code, columns)
                        else:
                            weight_a = weight_64(a0, a1, a2, k0[j], k1[j], k2[j], scale, code, columns)
                            weight_b = weight_64(b0, b1, b2, k0[j], k1[j], k2[j], scale, code, columns)
                        if weighted == 1:
                            weights_a += weight_a * times[j]
                            weights_b += weight_b * times[j]
                        else:
                            weights_a += weight_a
                            weights_b += weight_b
                        if one_value == 1:
                            total_a += weight_a * column[j]
                            total_b += weight_b * column[j]
                        else:
                            buffer_a[j] = weight_a
                            buffer_b[j] = weight_b
                    denominator[row_a] += weights_a
                    if not apart and second > i:
                        denominator[row_b] += weights_b
                    for c in range(value.shape[0]):
                        if one_value == 0:
                            column = value[c, first:stop]
                            total_a, total_b = zero, zero
                            for j in range(column.size):
                                total_a += buffer_a[j] * column[j]
                                total_b += buffer_b[j] * column[j]
                        numerator[row_a, c] += total_a
                        if not apart and second > i:
                            numerator[row_b, c] += total_b
                    if first <= own[row_a] < stop and own_weight[row_a] > 0.0:  # some of the own key is left
                        mine = own[row_a]
                        k0, k1, k2 = key[0, mine : mine + 1], k1[mine - first :], k2[mine - first :]
                        if width == 32:
                            left = weight_32(a0, a1, a2, k0[0], k1[0], k2[0], scale, code, columns) * own_weight[row_a]
                        else:
                            left = weight_64(a0, a1, a2, k0[0], k1[0], k2[0], scale, code, columns) * own_weight[row_a]
                        denominator[row_a] += left
                        for c in range(value.shape[0]):
                            numerator[row_a, c] += left * value[c, mine] / weight[mine]
                    if second == i:
                        break

    return block
