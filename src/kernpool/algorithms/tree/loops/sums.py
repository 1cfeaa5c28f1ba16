"""Compiled sums of the pairs on a list, by fused loops: for the kernels used most, radial, of two or three columns.

What a specialisation closes over are integers alone, as in those of brute force. Coordinates are those of `copies.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kernpool.algorithms.loops.exponential import exp2_minus_32_unclamped, exp2_minus_64_unclamped
from kernpool.algorithms.loops.tiles import BIWEIGHT, EDGE, EPANECHNIKOV, GAUSSIAN, LAPLACE, TRIWEIGHT
from kernpool.execution.compiling import bare_loop

_ZERO_32 = np.float32(0.0)


@lru_cache
def near_loop(code: int, columns: int, one_value: int) -> Callable[..., Any]:
    """Make the loop in float64.

    Parameters
    ----------
    code, columns : int
        Kernel code and number of columns.
    one_value : int
        1 if values have one column, which then is summed in registers.

    Returns
    -------
    callable
        Compiled with the first call, for this specialisation alone. It returns how many of the pairs have a key next to
        the edge of a compact kernel: those are not summed, and moved to the front of the list.
    """
    last = columns - 1

    @bare_loop
    def sum_near(
        pairs, count, key, key_weight, value, center, factor, query, own, own_weight, denominator, numerator, buffers
    ):  # fmt: skip
        """Add leaves to queries."""
        size, current, edgy = key.shape[2], -1, 0
        weight, buffer = buffers[0], buffers[1]
        for r in range(count):
            i, leaf = pairs[r, 0], pairs[r, 1]
            k0, k1, k2, column = key[leaf, 0], key[leaf, 1], key[leaf, last], value[leaf, 0]
            if leaf != current:
                current = leaf
                for j in range(size):
                    weight[j] = key_weight[leaf, j]
            place = own[i] - leaf * size
            if 0 <= place < size:  # replaced, not subtracted: what is left may be nothing beside it
                weight[place] = own_weight[i]
            q0, q1 = (query[i, 0] - center[leaf, 0]) * factor[0], (query[i, 1] - center[leaf, 1]) * factor[1]
            q2 = (query[i, last] - center[leaf, last]) * factor[last]
            edges, total, pooled = 0, 0.0, 0.0
            for j in range(size):
                u = q0 - k0[j]
                s = u * u
                u = q1 - k1[j]
                s += u * u
                if columns > 2:
                    u = q2 - k2[j]
                    s += u * u
                if code == GAUSSIAN:
                    w = exp2_minus_64_unclamped(s)
                elif code == LAPLACE:
                    w = 0.5 * exp2_minus_64_unclamped(math.sqrt(s))
                else:
                    w = max(1.0 - s, 0.0)
                    edges += 1 if abs(1.0 - s) < EDGE else 0
                    if code == EPANECHNIKOV:
                        w *= 0.75
                    elif code == BIWEIGHT:
                        w *= 15 / 16 * w
                    elif code == TRIWEIGHT:
                        w *= 35 / 32 * w * w
                w *= weight[j]
                total += w
                if one_value == 1:
                    pooled += w * column[j]
                else:
                    buffer[j] = w
            if 0 <= place < size:
                weight[place] = key_weight[leaf, place]
            if edges > 0:
                pairs[edgy, 0], pairs[edgy, 1] = i, leaf
                edgy += 1
                continue
            denominator[i] += total
            if one_value == 1:
                numerator[i, 0] += pooled
            else:
                for c in range(value.shape[1]):
                    column, pooled = value[leaf, c], 0.0
                    for j in range(size):
                        pooled += buffer[j] * column[j]
                    numerator[i, c] += pooled
        return edgy

    return sum_near


@lru_cache
def far_loop(code: int, columns: int, one_value: int) -> Callable[..., Any]:
    """Make the loop in float32, of a kernel of infinite support; see `near_loop`, and `pairs.py` for its error."""
    last = columns - 1

    @bare_loop
    def sum_far(
        pairs, count, key, value, weight_unit, value_unit, center, factor, query, own, own_weight, denominator,
        numerator, buffers,
    ):  # fmt: skip
        """Add leaves to queries, which are at -2 q from their center; the weight at the center is taken out."""
        size, current = key.shape[2], -1
        weight, buffer = buffers[0], buffers[1]
        for r in range(count):
            i, leaf = pairs[r, 0], pairs[r, 1]
            k0, k1, k2, square = key[leaf, 0], key[leaf, 1], key[leaf, last], key[leaf, columns]
            column = value[leaf, 0]
            if leaf != current:
                current = leaf
                for j in range(size):
                    weight[j] = key[leaf, columns + 1, j]
            place = own[i] - leaf * size
            if 0 <= place < size:
                weight[place] = np.float32(own_weight[i] / weight_unit[leaf])
            q0, q1 = (query[i, 0] - center[leaf, 0]) * factor[0], (query[i, 1] - center[leaf, 1]) * factor[1]
            q2 = (query[i, last] - center[leaf, last]) * factor[last]
            squared = q0 * q0 + q1 * q1
            if columns > 2:
                squared += q2 * q2
            distance = math.sqrt(squared)
            unit = exp2_minus_64_unclamped(squared if code == GAUSSIAN else 1.0 + distance) * weight_unit[leaf]
            p0, p1, p2 = np.float32(-2.0 * q0), np.float32(-2.0 * q1), np.float32(-2.0 * q2)
            add, away, total, pooled = np.float32(squared), np.float32(distance), _ZERO_32, _ZERO_32
            for j in range(size):
                t = square[j] + p0 * k0[j] + p1 * k1[j]
                if columns > 2:
                    t += p2 * k2[j]
                if code == LAPLACE:
                    t = np.float32(math.sqrt(t + add)) - away
                w = exp2_minus_32_unclamped(t) * weight[j]
                total += w
                if one_value == 1:
                    pooled += w * column[j]
                else:
                    buffer[j] = w
            if 0 <= place < size:
                weight[place] = key[leaf, columns + 1, place]
            denominator[i] += unit * total
            if one_value == 1:
                numerator[i, 0] += unit * value_unit[0] * pooled
            else:
                for c in range(value.shape[1]):
                    column, pooled = value[leaf, c], _ZERO_32
                    for j in range(size):
                        pooled += buffer[j] * column[j]
                    numerator[i, c] += unit * value_unit[c] * pooled
        return 0

    return sum_far
