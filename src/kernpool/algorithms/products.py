"""Gaussian sums for many columns: squared distances by matrix products, ``|q|^2 + |k|^2 - 2 q.k`` about a centre.

The centre is that of the block's queries, so that nothing large cancels unless the data are widely spread beside the
bandwidth. The error of an exponent is bounded by the radii; queries for which that is too much are done again from
differences. Tiles of 64 queries and 512 keys stay in the second-level cache.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.exponential import exp2_minus_32, exp2_minus_64
from kernpool.algorithms.loops import TILE, multiply

ROWS = 64
_ZERO_32 = np.float32(0.0)


@loop
def block_64(query, key, value, key_weight, mask, own, own_weight, center, scale, denominator, numerator):
    """Add a block up into the last two arguments, and return the keys' squared radius, in units of the exponent."""
    (m, d), n = query.shape, key.shape[0]
    denominator[:] = 0.0
    numerator[:] = 0.0
    radius = 0.0
    left, offset, weight_buffer = np.empty((m, d + 1)), np.empty(m), np.empty(TILE)
    for i in range(m):
        offset[i] = 0.0
        for a in range(d):
            x = (query[i, a] - center[a]) * scale[a]
            offset[i] += x * x
            left[i, a] = -2.0 * x
        left[i, d] = 1.0
    for first in range(0, n, TILE):
        size = min(TILE, n - first)
        right = np.empty((d + 1, size))
        right[d, :] = 0.0
        for a in range(d):
            for j in range(size):
                x = (key[first + j, a] - center[a]) * scale[a]
                right[a, j] = x
                right[d, j] += x * x
        for j in range(size):
            radius = max(radius, right[d, j])
        weight = weight_buffer[:size]
        for low in range(0, m, ROWS):
            distances = np.dot(left[low : low + ROWS], right)
            for i in range(low, min(low + ROWS, m)):
                for j in range(size):
                    s = distances[i - low, j] + offset[i]
                    weight[j] = exp2_minus_64(s if s > 0.0 else 0.0)
                row_mask = mask[i] if mask.size else mask.ravel()
                multiply(weight, first, key_weight, row_mask, own[i], own_weight[i])
                total = 0.0
                for j in range(size):
                    total += weight[j]
                denominator[i] += total
                for c in range(value.shape[0]):
                    total = 0.0
                    for j in range(size):
                        total += weight[j] * value[c, first + j]
                    numerator[i, c] += total
    return radius


@loop
def block_32(query, key, value, key_weight, mask, own, own_weight, center, scale, denominator, numerator):
    """Do the same with products and weights in float32; coordinates are centred and scaled in float64."""
    (m, d), n = query.shape, key.shape[0]
    denominator[:] = 0.0
    numerator[:] = 0.0
    radius = 0.0
    left, offset, weight_buffer = np.empty((m, d + 1), np.float32), np.empty(m, np.float32), np.empty(TILE, np.float32)
    for i in range(m):
        squares = 0.0
        for a in range(d):
            x = (query[i, a] - center[a]) * scale[a]
            squares += x * x
            left[i, a] = -2.0 * x
        left[i, d] = 1.0
        offset[i] = squares
    squared = np.empty(TILE)
    for first in range(0, n, TILE):
        size = min(TILE, n - first)
        right = np.empty((d + 1, size), np.float32)
        squared[:] = 0.0
        for a in range(d):
            for j in range(size):
                x = (key[first + j, a] - center[a]) * scale[a]
                right[a, j] = x
                squared[j] += x * x
        for j in range(size):
            right[d, j] = squared[j]
            radius = max(radius, squared[j])
        weight = weight_buffer[:size]
        for low in range(0, m, ROWS):
            distances = np.dot(left[low : low + ROWS], right)
            for i in range(low, min(low + ROWS, m)):
                for j in range(size):
                    s = distances[i - low, j] + offset[i]
                    weight[j] = exp2_minus_32(s if s > _ZERO_32 else _ZERO_32)
                row_mask = mask[i] if mask.size else mask.ravel()
                multiply(weight, first, key_weight, row_mask, own[i], own_weight[i])
                total = _ZERO_32
                for j in range(size):
                    total += weight[j]
                denominator[i] += total
                for c in range(value.shape[0]):
                    total = _ZERO_32
                    for j in range(size):
                        total += weight[j] * value[c, first + j]
                    numerator[i, c] += total
    return radius
