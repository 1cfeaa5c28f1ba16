"""Compiled loop of the gradients by matrix products (`product_gradients.py`)."""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.brute.loops.products import center_queries
from kernpool.algorithms.brute.loops.staged import TILE, multiply
from kernpool.algorithms.loops.exponential import exp2_minus
from kernpool.execution.compiling import bare_part, loop

ROWS = 128  # queries whose products with a tile of keys stay in the second-level cache


@bare_part
def slopes_of_pairs(
    ratio, low, first, offset, square, value, key_weight, mask, own, own_weight, inverse, middle,
    cotangent, weight, by_row, by_column, by_value,
):  # fmt: skip
    """Turn products of a tile into R, in place, and write its sums by rows and columns, and the gradient by values."""
    zero, last = value.dtype.type(0.0), first + ratio.shape[1]
    by_column[:] = zero
    by_value[:] = zero
    for r in range(ratio.shape[0]):
        i, s = low + r, ratio[r]
        factor, square_of, total = value.dtype.type(inverse[i]), offset[i], zero
        if factor == zero:
            s[:] = zero
            by_row[r] = zero
            continue
        for j in range(s.size):
            x = s[j] + (square_of + square[j])
            weight[j] = exp2_minus(x if x > zero else zero, 0) * factor
        if key_weight.size or first <= own[i] < last:
            multiply(weight, first, key_weight, mask, own[i], own_weight[i])
        for c in range(by_value.shape[0]):
            out, times = by_value[c], cotangent[i, c]
            for j in range(s.size):
                out[j] += times * weight[j]
        for c in range(value.shape[0]):
            column, times, center_of = value[c, first:last], cotangent[i, c], middle[i, c]
            if c == 0:
                for j in range(s.size):
                    s[j] = times * (column[j] - center_of)
            else:
                for j in range(s.size):
                    s[j] += times * (column[j] - center_of)
        for j in range(s.size):
            s[j] *= weight[j]
            total += s[j]
            by_column[j] += s[j]
        by_row[r] = total


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
    left, offset = np.empty((m, d), value.dtype), np.empty(m, value.dtype)
    center_queries(query, center, scale, left, offset)
    # Made once: an array of this size from the system, page by page, costs as much as what is written into it.
    buffer, right_buffer = np.empty(ROWS * TILE, value.dtype), np.empty(d * TILE, value.dtype)
    to_queries, to_keys = np.empty((ROWS, d), value.dtype), np.empty(d * TILE, value.dtype)
    squares, weight_buffer = np.empty(TILE, value.dtype), np.empty(TILE, value.dtype)
    column_buffer, value_buffer = np.empty(TILE), np.empty(by_value.shape[0] * TILE)
    by_row, mask, total_buffer = np.empty(ROWS, value.dtype), np.empty(0, np.bool_), np.empty(TILE)
    for first in range(0, n, TILE):
        size = min(TILE, n - first)
        last = first + size
        right, square = right_buffer[: d * size].reshape((d, size)), squares[:size]
        square[:] = zero
        for a in range(d):
            column = key[a, first:last]
            for j in range(size):
                x = (column[j] - center[a]) * scale[a]
                right[a, j] = x
                square[j] += x * x
        weight, by_column = weight_buffer[:size], column_buffer[:size]
        to_values, totals = (
            value_buffer[: by_value.shape[0] * size].reshape((by_value.shape[0], size)),
            total_buffer[:size],
        )
        totals[:] = 0.0
        for low in range(0, m, ROWS):
            rows = min(ROWS, m - low)
            ratio = buffer[: rows * size].reshape((rows, size))
            np.dot(left[low : low + rows], right, ratio)
            slopes_of_pairs(
                ratio, low, first, offset, square, value, key_weight, mask, own, own_weight, inverse, middle,
                cotangent, weight, by_row, by_column, to_values,
            )  # fmt: skip
            if by_query.size:
                part = to_queries[:rows]
                np.dot(ratio, right.T, part)
                for i in range(rows):
                    for a in range(d):
                        by_query[low + i, a] += part[i, a] + 0.5 * left[low + i, a] * by_row[i]
            for c in range(by_value.shape[0]):
                out = by_value[c, first:last]
                for j in range(size):
                    out[j] += to_values[c, j]
            if by_key.size:
                # Columns of keys lie along the sums that they are added to: across them it took as long as the product.
                other = to_keys[: d * size].reshape((d, size))
                np.dot(left[low : low + rows].T, ratio, other)
                for a in range(d):
                    out = by_key[a, first:last]
                    for j in range(size):
                        out[j] -= 0.5 * other[a, j]
                for j in range(size):
                    totals[j] += by_column[j]
        if by_key.size:
            for a in range(d):
                out = by_key[a, first:last]
                for j in range(size):
                    out[j] -= totals[j] * right[a, j]
