"""Fused loops for few columns: distance, kernel and sums in one pass over the keys, nothing but sums in memory.

They exist for the three kernels most used, radial, of up to three columns. What a specialisation closes over are
integers alone: those fold at compile time, and the disk cache finds them again in the next process, which it does not
for functions.

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
def weight_64(q0, q1, q2, k0, k1, k2, c0, c1, c2, code, columns, even):
    """Weight of a pair, in float64; what a specialisation does not need is dropped by the compiler."""
    u = q0 - k0 if even == 1 else (q0 - k0) * c0
    s = u * u
    if columns > 1:
        u = q1 - k1 if even == 1 else (q1 - k1) * c1
        s += u * u
    if columns > 2:
        u = q2 - k2 if even == 1 else (q2 - k2) * c2
        s += u * u
    if even == 1:
        s *= c0
    if code == EPANECHNIKOV:
        return 1.0 - s if s < 1.0 else 0.0
    if code == LAPLACE:
        return exp2_minus_64(abs(u) if columns == 1 else math.sqrt(s))
    return exp2_minus_64(s)


@ordered_loop
def weight_32(q0, q1, q2, k0, k1, k2, c0, c1, c2, code, columns, even):
    """Weight of a pair, in float32; not for compact kernels, whose 1 - s would lose too many digits."""
    u = q0 - k0 if even == 1 else (q0 - k0) * c0
    s = u * u
    if columns > 1:
        u = q1 - k1 if even == 1 else (q1 - k1) * c1
        s += u * u
    if columns > 2:
        u = q2 - k2 if even == 1 else (q2 - k2) * c2
        s += u * u
    if even == 1:
        s *= c0
    if code == LAPLACE:
        return exp2_minus_32(abs(u) if columns == 1 else math.sqrt(s))
    return exp2_minus_32(s)


@lru_cache
def specialise(code: int, columns: int, width: int, weighted: int, one_value: int, even: int) -> Callable[..., Any]:
    """Make the loops of a kernel, a number of columns, a float width, and with or without key weights.

    Parameters
    ----------
    code, columns, width : int
        Kernel code, 1 to 3, and 32 or 64.
    weighted, one_value, even : int
        1 if keys have weights; if values have one column, which then is summed in registers; if several columns have
        the same bandwidth, which then multiplies their sum, with its square as the scale.

    Returns
    -------
    callable
        See `block`. Compiled with the first call, for this specialisation alone.
    """
    b, c = min(1, columns - 1), min(2, columns - 1)

    @loop
    def block(query, key, value, weight, own, own_weight, scale, denominator, numerator):
        """Add a block of queries and keys up, into the last two arguments; weighted keys come with weighted values.

        In the tile of its own key a query sees that key at infinity.
        """
        if width == 32:
            zero, far = _ZERO_32, _FAR_32
            weights, moved = np.empty(TILE, np.float32), np.empty(TILE, np.float32)
        else:
            zero, far = 0.0, np.inf
            weights, moved = np.empty(TILE), np.empty(TILE)
        c0, c1, c2 = scale[0], scale[b], scale[c]
        for i in range(query.shape[0]):
            q0, q1, q2, mine = query[i, 0], query[i, b], query[i, c], own[i]
            denominator[i] = 0.0
            for v in range(value.shape[0]):
                numerator[i, v] = 0.0
            for first in range(0, key.shape[1], TILE):
                stop = min(first + TILE, key.shape[1])
                k0, k1, k2, column = key[0, first:stop], key[b, first:stop], key[c, first:stop], value[0, first:stop]
                if first <= mine < stop:
                    for j in range(k0.size):
                        moved[j] = k0[j]
                    moved[mine - first] = far
                    k0 = moved[: stop - first]
                times = weight[first:stop] if weighted == 1 else k0
                tile_weight, tile_total = zero, zero
                for j in range(k0.size):
                    if width == 32:
                        w = weight_32(q0, q1, q2, k0[j], k1[j], k2[j], c0, c1, c2, code, columns, even)
                    else:
                        w = weight_64(q0, q1, q2, k0[j], k1[j], k2[j], c0, c1, c2, code, columns, even)
                    if weighted == 1:
                        tile_weight += w * times[j]
                    else:
                        tile_weight += w
                    if one_value == 1:
                        tile_total += w * column[j]
                    else:
                        weights[j] = w
                denominator[i] += tile_weight
                if one_value == 1:
                    numerator[i, 0] += tile_total
                else:
                    for v in range(value.shape[0]):
                        column = value[v, first:stop]
                        tile_total = zero
                        for j in range(column.size):
                            tile_total += weights[j] * column[j]
                        numerator[i, v] += tile_total
            if weighted == 1 and 0 <= mine < key.shape[1] and own_weight[i] > 0.0:  # what is left of the own key
                k0, k1, k2 = key[0, mine:], key[b, mine:], key[c, mine:]
                if width == 32:
                    left = weight_32(q0, q1, q2, k0[0], k1[0], k2[0], c0, c1, c2, code, columns, even) * own_weight[i]
                else:
                    left = weight_64(q0, q1, q2, k0[0], k1[0], k2[0], c0, c1, c2, code, columns, even) * own_weight[i]
                denominator[i] += left
                for v in range(value.shape[0]):
                    numerator[i, v] += left * value[v, mine] / weight[mine]

    return block
