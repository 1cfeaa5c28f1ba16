"""Compiled search for the keys of largest linear weight of each query, and its effective number of keys."""

import numpy as np

from kernpool.algorithms.loops.kernel_weights import LN_2, tile_weights
from kernpool.execution.compilation import bare_part, loop
from kernpool.inference.loops.cluster_sums import TILE


@bare_part
def multiply_keys(pair, weight, inverse_weight, first):
    """Multiply kernel weights of a tile by those of its keys; return the sum of squares, divided by the latter."""
    total = 0.0
    for j in range(pair.size):
        pair[j] *= weight[first + j]
        total += pair[j] * pair[j] * inverse_weight[first + j]
    return total


@bare_part
def tilt_weights(size, pair, q, key, first, bandwidth, base, tilt):
    """Write absolute linear weights of a tile of keys in a local constant or linear fit to `size`."""
    for j in range(pair.size):
        size[j] = base
    for a in range(tilt.size):
        column, place, slope = key[a, first : first + pair.size], q[a], tilt[a] / bandwidth[a]
        for j in range(pair.size):
            size[j] += slope * (column[j] - place)
    for j in range(pair.size):
        size[j] = abs(size[j] * pair[j])


@bare_part
def insert_larger(row, largest, size, first):
    """Insert the keys of a tile that are larger than the last into a list sorted by decreasing size."""
    last, more = largest[-1], 0
    for j in range(size.size):  # in vectors; of most tiles no key is larger
        more += 1 if size[j] > last else 0
    if more == 0:
        return
    for j in range(size.size):
        if size[j] > largest[-1]:
            place = row.size - 1
            while place > 0 and largest[place - 1] < size[j]:
                largest[place], row[place] = largest[place - 1], row[place - 1]
                place -= 1
            largest[place], row[place] = size[j], first + j


@loop
def find_largest(
    query, key, weight, inverse_weight, query_level, level, tables, bandwidth, code, infinite, product, log_mass, base,
    tilt, row, squares,
):  # fmt: skip
    """Write the keys of largest absolute linear weight of each query to `row`, the largest first.

    Of equal weights the first key comes first; weights of zero are left out, where `row` is unchanged. `squares` gets
    the sum of squared pooling weights, each divided by the frequency of its key. Keys are (columns, n).
    """
    n = key.shape[1]
    weight_buffer, s_buffer, size_buffer = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    exponent_buffer, column_buffer = np.empty(TILE), np.empty(TILE)
    largest = np.empty(row.shape[1])
    for i in range(query.shape[0]):
        if log_mass[i] == -np.inf:
            continue
        for c in range(largest.size):
            largest[c] = 0.0
        unit, total = np.rint(log_mass[i] / LN_2) if infinite else 0.0, 0.0
        for first in range(0, n, TILE):
            length = min(TILE, n - first)
            pair, size = weight_buffer[:length], size_buffer[:length]
            tile_weights(
                pair, s_buffer[:length], exponent_buffer[:length], column_buffer[:length], query[i], key, first,
                bandwidth, code, infinite, product, unit,
            )  # fmt: skip
            for b in range(level.shape[0]):
                table, levels = tables[b, query_level[i, b]], level[b]
                for j in range(length):
                    pair[j] *= table[levels[first + j]]
            total += multiply_keys(pair, weight, inverse_weight, first)
            tilt_weights(size, pair, query[i], key, first, bandwidth, base[i], tilt[i])
            insert_larger(row[i], largest, size, first)
        scale = np.exp(unit * LN_2 - log_mass[i])
        squares[i] = total * scale * scale
