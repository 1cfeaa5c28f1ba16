"""Compiled loops for the moments of a local quadratic fit: what they add to those of a local linear one, tile by tile.

A file of its own, because what `staged.py` compiles for degrees 0 and 1 is not to wait for it.
"""

from __future__ import annotations

from kernpool.execution.compiling import bare_part


@bare_part
def add_products(total, weight, offset, product, q, key, value, first, bandwidth):
    """Add the sums of products of three and four offsets, and of two with values, behind those of `add_moments`.

    `offset` and `product` are buffers, of shapes (columns, at least the tile) and of the tile.
    """
    values, d, size = value.shape[0], q.size, weight.size
    third = values + d + d * (d + 1) // 2 + d * values
    fourth = third + d * (d + 1) * (d + 2) // 6
    cross = fourth + d * (d + 1) * (d + 2) * (d + 3) // 24
    for a in range(d):
        column, place, inverse = key[a, first : first + size], q[a], 1.0 / bandwidth[a]
        for j in range(size):
            offset[a, j] = (column[j] - place) * inverse
    for a in range(d):
        for b in range(a, d):
            for j in range(size):
                product[j] = weight[j] * offset[a, j] * offset[b, j]
            for c in range(b, d):
                tile_sum = 0.0
                for j in range(size):
                    tile_sum += product[j] * offset[c, j]
                total[third] += tile_sum
                third += 1
                for e in range(c, d):
                    tile_sum = 0.0
                    for j in range(size):
                        tile_sum += product[j] * offset[c, j] * offset[e, j]
                    total[fourth] += tile_sum
                    fourth += 1
            for c in range(values):
                column = value[c, first : first + size]
                tile_sum = 0.0
                for j in range(size):
                    tile_sum += product[j] * column[j]
                total[cross] += tile_sum
                cross += 1
