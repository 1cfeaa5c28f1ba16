"""Compiled gradients of Gaussian pooling for many columns, with squared distances by matrix products.

Squared distances are ``|q|^2 + |k|^2 - 2 q.k`` about a center. The center is that of the block's queries, so nothing
large cancels unless the data are widely spread compared with the bandwidth. The error of a squared distance is
bounded by the radii; queries for which it is too large are computed again from differences.

Tiles of 128 queries and 512 keys stay in the second-level cache.
"""

import numpy as np

from kernpool.algorithms.brute.loops.tiles import TILE, multiply
from kernpool.algorithms.loops.kernel_weights import exp2_minus
from kernpool.execution.compilation import bare_part, loop

ROWS = 128


@bare_part
def center_queries(query, center, scale, left, offset):
    """Write centered, scaled queries times -2 to `left`, and their squared norms before that factor to `offset`."""
    m, d = query.shape
    for i in range(m):
        squares = 0.0
        for a in range(d):
            x = (query[i, a] - center[a]) * scale[a]
            squares += x * x
            left[i, a] = -2.0 * x
        offset[i] = squares


@bare_part
def slopes_of_pairs(
    ratio, low, first, offset, square, value, key_weight, mask, own, own_weight, inverse, middle,
    cotangent, weight, by_row, by_column, by_value,
):  # fmt: skip
    """Replace a tile's products -2 q.k by the loss's derivatives with respect to logits, and write their sums."""
    # The derivatives are R in `algorithms/brute/matrix_products.py`. Their sums go to `by_row` and `by_column`, the
    # gradient with respect to values to `by_value`.
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
    """Add a block's contribution to the gradients of Gaussian pooling, in the `by_*` arrays that are not empty."""
    # Those by queries and keys are in units of the scaled coordinates. Queries with an inverse of zero are excluded.
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
