"""Compiled loops over some queries and the keys in the order of their values: where weights reach a sum."""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.brute.loops.staged import TILE, multiply
from kernpool.algorithms.loops.tiles import tile_weights
from kernpool.execution.compiling import bare_part, loop


@bare_part
def place_in_tile(weight, before, need):
    """Return at which key of a tile the sum, `before` at its start, reaches what is needed: one of positive weight."""
    total, last = before, -1
    for j in range(weight.size):
        if weight[j] > 0.0:
            total += weight[j]
            last = j
            if total >= need:
                break
    return last  # sums of a tile are in another order, and may reach what this one misses by its rounding


@loop
def select_block(
    query, key, key_weight, mask, own, own_weight, query_level, level, tables, bandwidth, code, infinite, product,
    unit, low, high, request, need, found,
):  # fmt: skip
    """Write for each request the key in [low, high) at which the weights of its query reach `need`.

    Weights are in units of ``2**unit``. Requests of query i are ``request[i]`` to ``request[i + 1]``, by rising need. A
    sum that no key reaches is reached by the last key of positive weight: the need comes from sums in another order. -1
    where all weights are zero.
    """
    weight_buffer, s_buffer = np.empty(TILE), np.empty(TILE)
    exponent_buffer, column_buffer = np.empty(TILE), np.empty(TILE)
    for i in range(query.shape[0]):
        row_mask = mask[i] if mask.size else mask.ravel()
        waiting, last, total, most = request[i], request[i + 1], 0.0, np.inf
        for _ in range(2):  # the second turn is for what the first one does not reach
            total = 0.0
            for first in range(low, high, TILE):
                if waiting == last:
                    break
                size = min(TILE, high - first)
                weight = weight_buffer[:size]
                tile_weights(
                    weight, s_buffer[:size], exponent_buffer[:size], column_buffer[:size], query[i], key, first,
                    bandwidth, code, infinite, product, unit[i],
                )  # fmt: skip
                multiply(weight, first, key_weight, row_mask, own[i], own_weight[i])
                for b in range(level.shape[0]):
                    table, levels = tables[b, query_level[i, b]], level[b]
                    for j in range(size):
                        weight[j] *= table[levels[first + j]]
                tile_sum = 0.0
                for j in range(size):
                    tile_sum += weight[j]
                while waiting < last and tile_sum > 0.0 and total + tile_sum >= min(need[waiting], most):
                    found[waiting] = first + place_in_tile(weight, total, min(need[waiting], most))
                    waiting += 1
                total += tile_sum
            if waiting == last or total == 0.0:
                break
            most = total
