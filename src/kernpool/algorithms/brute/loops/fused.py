"""Fused loops: distance, kernel and sums in one pass over the keys, nothing but sums in memory.

They exist for the three kernels most used, radial. What a specialisation closes over are
integers alone: those fold at compile time, and the disk cache finds them again in the next process, which it does not
for functions.

The loops do not care for what is rare. A query whose sum of weights is tiny (all keys far away, or next to the edge
of a compact kernel) is left to the staged tiles, which know shifts and edges.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from kernpool.algorithms.loops.exponential import exp2_minus
from kernpool.algorithms.loops.tiles import EPANECHNIKOV, GAUSSIAN, LAPLACE, LN_2
from kernpool.execution.compiling import loop, ordered_loop

KERNELS = frozenset({GAUSSIAN, EPANECHNIKOV, LAPLACE})
IN_REGISTERS = 3  # columns whose differences are taken in the same loop as the exponential; the others go before it
TILE = 512  # float32 sums of more keys than this lose a digit


def scales(code: int, bandwidth: np.ndarray) -> np.ndarray:
    """Factors for differences, so that a weight is 2**-s (Gaussian), 2**-sqrt(s) (Laplace) or 1 - s of s = sum u**2."""
    factor = {GAUSSIAN: math.sqrt(0.5 / LN_2), LAPLACE: 1.0 / LN_2}.get(code, 1.0)
    return factor / bandwidth


def height(code: int) -> float:
    """Return what the loops leave out: the kernel at zero."""
    return {EPANECHNIKOV: 0.75, LAPLACE: 0.5}.get(code, 1.0)


@ordered_loop
def weight_of(others, q0, q1, q2, k0, k1, k2, c0, c1, c2, one, code, columns, even, bounded):
    """Weight of a pair, in the width of `one`; what a specialisation does not need is dropped by the compiler."""
    u = q0 - k0 if even == 1 else (q0 - k0) * c0
    s = u * u + others if columns > IN_REGISTERS else u * u
    if columns > 1:
        u = q1 - k1 if even == 1 else (q1 - k1) * c1
        s += u * u
    if columns > 2:
        u = q2 - k2 if even == 1 else (q2 - k2) * c2
        s += u * u
    if even == 1:
        s *= c0
    if code == EPANECHNIKOV:
        return one - s if s < one else one - one
    if code == LAPLACE:
        return exp2_minus(abs(u) if columns == 1 else math.sqrt(s), bounded)
    return exp2_minus(s, bounded)


@loop
def squares_of_others(squares, q, key, first, last, scale):
    """Squared distances to keys from first to last over all columns but the first three, four at a time."""
    d = key.shape[0]
    for j in range(last - first):
        squares[j] = 0.0
    a = IN_REGISTERS
    while a + 4 <= d:
        k0, k1, k2, k3 = key[a, first:last], key[a + 1, first:last], key[a + 2, first:last], key[a + 3, first:last]
        for j in range(k0.size):
            u0, u1 = (q[a] - k0[j]) * scale[a], (q[a + 1] - k1[j]) * scale[a + 1]
            u2, u3 = (q[a + 2] - k2[j]) * scale[a + 2], (q[a + 3] - k3[j]) * scale[a + 3]
            squares[j] += u0 * u0 + u1 * u1 + (u2 * u2 + u3 * u3)
        a += 4
    while a < d:
        k0 = key[a, first:last]
        for j in range(k0.size):
            u0 = (q[a] - k0[j]) * scale[a]
            squares[j] += u0 * u0
        a += 1


_SPECIALISED: dict[tuple[int, ...], Callable[..., Any]] = {}


def is_bounded(code: int, extent: np.ndarray, bandwidth: np.ndarray, dtype: np.dtype) -> bool:
    """Whether no exponent of a pair leaves the range of the floats, if pairs are at most `extent` apart."""
    s = np.sum((extent * scales(code, bandwidth)) ** 2)
    farthest = np.sqrt(s) if code == LAPLACE else s
    return code != EPANECHNIKOV and bool(farthest < (100.0 if dtype == np.float32 else 1000.0))


def specialise(
    code: int, columns: int, width: int, weighted: int, one_value: int, even: int, bounded: int
) -> Callable[..., Any]:
    """Return the loops of a kernel, a number of columns, a float width, and with or without key weights.

    Parameters
    ----------
    code, columns, width : int
        Kernel code, 1 to 3 or 4 for more, and 32 or 64.
    weighted, one_value, even, bounded : int
        1 if keys have weights; if values have one column, which then is summed in registers; if several columns have
        the same bandwidth, which then multiplies their sum, with its square as the scale; if no exponent is out of
        range, see `is_bounded`.

    Returns
    -------
    callable
        See `block`. Compiled with the first call, for this specialisation alone.
    """
    key = (code, columns, width, weighted, one_value, even, bounded)
    # Two threads may both make one; all of them use the first, and it is compiled once, under Numba's own lock.
    return _SPECIALISED.get(key) or _SPECIALISED.setdefault(key, _make(*key))


def _make(
    code: int, columns: int, width: int, weighted: int, one_value: int, even: int, bounded: int
) -> Callable[..., Any]:
    b, c = min(1, columns - 1), min(IN_REGISTERS, columns) - 1
    number = np.float32 if width == 32 else np.float64
    zero, one = number(0.0), number(1.0)

    @loop
    def block(query, key, value, weight, own, own_weight, scale, denominator, numerator):
        """Add a block of queries and keys up, into the last two arguments; weighted keys come with weighted values.

        A query skips its own key: it goes through the keys before that one, and through those after it.
        """
        n, weights, squares = key.shape[1], np.empty(TILE, key.dtype), np.zeros(TILE, key.dtype)
        c0, c1, c2 = scale[0], scale[b], scale[c]
        for i in range(query.shape[0]):
            q0, q1, q2 = query[i, 0], query[i, b], query[i, c]
            mine = own[i] if 0 <= own[i] < n else n
            # Sums of a query stay in variables: written to arrays tile by tile they push constants out of registers.
            weight_sum, total = 0.0, 0.0
            for v in range(value.shape[0]):
                numerator[i, v] = 0.0
            for start, stop in ((0, mine), (mine + 1, n)):
                for first in range(start, stop, TILE):
                    last = min(first + TILE, stop)
                    k0, k1, k2 = key[0, first:last], key[b, first:last], key[c, first:last]
                    column, times = value[0, first:last], weight[first:last] if weighted == 1 else k0
                    if columns > IN_REGISTERS:
                        squares_of_others(squares, query[i], key, first, last, scale)
                    tile_weight, tile_total = zero, zero
                    for j in range(k0.size):
                        others = squares[j] if columns > IN_REGISTERS else zero
                        w = weight_of(
                            others, q0, q1, q2, k0[j], k1[j], k2[j], c0, c1, c2, one, code, columns, even, bounded
                        )
                        tile_weight += w * times[j] if weighted == 1 else w
                        if one_value == 1:
                            tile_total += w * column[j]
                        else:
                            weights[j] = w
                    weight_sum += tile_weight
                    total += tile_total
                    if one_value == 0:
                        for v in range(value.shape[0]):
                            column = value[v, first:last]
                            tile_total = zero
                            for j in range(column.size):
                                tile_total += weights[j] * column[j]
                            numerator[i, v] += tile_total
            if one_value == 1:
                numerator[i, 0] = total
            if weighted == 1 and mine < n and own_weight[i] > 0.0:  # what is left of the own key
                if columns > IN_REGISTERS:
                    squares_of_others(squares, query[i], key, mine, mine + 1, scale)
                left = own_weight[i] * weight_of(
                    squares[0],
                    q0,
                    q1,
                    q2,
                    key[0, mine],
                    key[b, mine],
                    key[c, mine],
                    c0,
                    c1,
                    c2,
                    one,
                    code,
                    columns,
                    even,
                    bounded,
                )
                weight_sum += left
                for v in range(value.shape[0]):
                    numerator[i, v] += left * value[v, mine] / weight[mine]
            denominator[i] = weight_sum

    return block


def exponent_of(x: np.ndarray) -> np.ndarray:
    """Return the power of two below x > 0, as an integer; zero for zero."""
    return np.where(x > 0, np.frexp(x)[1] - 1, 0)
