"""Compiled loop of the gradients by matrix products (`product_gradients.py`)."""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.exponential import exp2_minus
from kernpool.algorithms.loops import TILE, multiply
from kernpool.algorithms.products import ROWS, center_queries


@loop
def gradient_block(
    query,
    key,
    value,
    key_weight,
    own,
    own_weight,
    center,
    scale,
    inverse,
    middle,
    cotangent,
    by_query,
    by_key,
    by_value,
):
    """Add the gradients of a block to the last three arguments; an empty array is not wanted.

    Those by queries and keys are in units of the scaled coordinates. Queries with an inverse of zero are left out.
    """
    (m, d), n, zero = query.shape, key.shape[1], value.dtype.type(0.0)
    left, offset = np.empty((m, d + 1), value.dtype), np.empty(m, value.dtype)
    center_queries(query, center, scale, left, offset)
    room, right_room = np.empty(ROWS * TILE, value.dtype), np.empty((d + 1) * TILE, value.dtype)
    to_queries, to_keys = np.empty((ROWS, d + 1), value.dtype), np.empty(TILE * (d + 1), value.dtype)
    weight_buffer, mask = np.empty(TILE, value.dtype), np.empty(0, np.bool_)
    for first in range(0, n, TILE):
        size = min(TILE, n - first)
        last = first + size
        right = right_room[: (d + 1) * size].reshape((d + 1, size))
        right[d] = zero
        for a in range(d):
            column = key[a, first:last]
            for j in range(size):
                x = (column[j] - center[a]) * scale[a]
                right[a, j] = x
                right[d, j] += x * x
        weight = weight_buffer[:size]
        for low in range(0, m, ROWS):
            rows = min(ROWS, m - low)
            ratio = room[: rows * size].reshape((rows, size))
            np.dot(left[low : low + rows], right, ratio)
            for i in range(low, low + rows):
                s, factor = ratio[i - low], value.dtype.type(inverse[i])
                if factor == zero:
                    s[:] = zero
                    continue
                for j in range(size):
                    x = s[j] + offset[i]
                    weight[j] = exp2_minus(x if x > zero else zero, 0) * factor
                if key_weight.size or first <= own[i] < last:
                    multiply(weight, first, key_weight, mask, own[i], own_weight[i])
                if by_value.size:
                    for c in range(value.shape[0]):
                        out, times = by_value[c, first:last], cotangent[i, c]
                        for j in range(size):
                            out[j] += times * weight[j]
                for c in range(value.shape[0]):
                    column, times, center_of = value[c, first:last], cotangent[i, c], middle[i, c]
                    if c == 0:
                        for j in range(size):
                            s[j] = times * (column[j] - center_of)
                    else:
                        for j in range(size):
                            s[j] += times * (column[j] - center_of)
                total = zero
                for j in range(size):
                    s[j] *= weight[j]
                    total += s[j]
                if by_query.size:
                    for a in range(d):
                        by_query[i, a] += 0.5 * left[i, a] * total
            if by_query.size:
                part = to_queries[:rows]
                np.dot(ratio, right.T, part)
                for i in range(rows):
                    for a in range(d):
                        by_query[low + i, a] += part[i, a]
            if by_key.size:
                other = to_keys[: size * (d + 1)].reshape((size, d + 1))
                np.dot(ratio.T, left[low : low + rows], other)
                for a in range(d):
                    out, column = by_key[a, first:last], right[a]
                    for j in range(size):
                        out[j] -= 0.5 * other[j, a] + other[j, d] * column[j]
