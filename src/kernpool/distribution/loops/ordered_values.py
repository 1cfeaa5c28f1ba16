"""Compiled loops over queries and keys ordered by value: CRPS, distributions smoothed in y, and quantile search."""

import math

import numpy as np

from kernpool.algorithms.brute.loops.tiles import TILE, multiply
from kernpool.algorithms.loops.kernel_weights import tile_weights
from kernpool.execution.compilation import bare_part, loop

HALF_ROOT, ROOT_OF_TWO_PI = math.sqrt(0.5), math.sqrt(2 * math.pi)
NOTHING = 39.0  # standard deviations, beyond which a normal distribution has nothing that a double holds


@bare_part
def weights_of_tile(
    weight, buffers, i, first, query, key, key_weight, row_mask, own, own_weight, query_level, level, tables, bandwidth,
    code, infinite, product, unit,
):  # fmt: skip
    """Write into `weight` the weights of query i on a tile of keys from `first` on, in units of ``2**unit[i]``."""
    size = weight.size
    tile_weights(
        weight, buffers[0, :size], buffers[1, :size], buffers[2, :size], query[i], key, first, bandwidth, code,
        infinite, product, unit[i],
    )  # fmt: skip
    multiply(weight, first, key_weight, row_mask, own[i], own_weight[i])
    for b in range(level.shape[0]):
        table, levels = tables[b, query_level[i, b]], level[b]
        for j in range(size):
            weight[j] *= table[levels[first + j]]


@loop
def score_block(
    query, key, key_weight, mask, own, own_weight, query_level, level, tables, bandwidth, code, infinite, product,
    unit, value, seen, rank, found,
):  # fmt: skip
    """Write into `found` each query's continuous ranked probability score (CRPS) at its observation `seen`.

    It is the integral of the squared difference of the distribution function and a step at `seen`.

    Keys up to the rank of `seen` are summed from the lowest value upwards, the others from the highest downwards, so
    that both tails are computed without subtraction.
    """
    n, tile, buffers = len(value), np.empty(TILE), np.empty((3, TILE))
    for i in range(query.shape[0]):
        row_mask = mask[i] if mask.size else mask.ravel()
        r, below, above, score = rank[i], 0.0, 0.0, 0.0
        forward = (r + TILE - 1) // TILE
        for number in range(forward + (n - r + TILE - 1) // TILE):  # in one place: a second one takes long to compile
            upwards = number < forward
            last = min(r, (number + 1) * TILE) if upwards else n - (number - forward) * TILE
            first = number * TILE if upwards else max(r, last - TILE)
            weight = tile[: last - first]
            weights_of_tile(
                weight, buffers, i, first, query, key, key_weight, row_mask, own, own_weight, query_level, level,
                tables, bandwidth, code, infinite, product, unit,
            )  # fmt: skip
            if upwards:
                for j in range(weight.size):
                    below += weight[j]
                    upper = value[first + j + 1] if first + j + 1 < r else seen[i]
                    score += (upper - value[first + j]) * below * below
            else:
                for back in range(weight.size):
                    j = weight.size - 1 - back
                    above += weight[j]
                    lower = value[first + j - 1] if first + j > r else seen[i]
                    score += (value[first + j] - lower) * above * above
        total = below + above
        found[i] = score / (total * total) if total > 0.0 else np.nan


@loop
def smooth_block(
    query, key, key_weight, mask, own, own_weight, query_level, level, tables, bandwidth, code, infinite, product,
    unit, value, threshold, width, density, found,
):  # fmt: skip
    """Write into `found` each query's weighted mixture of normal distribution functions, or densities, by threshold."""
    n, tile, buffers = len(value), np.empty(TILE), np.empty((3, TILE))
    for i in range(query.shape[0]):
        row_mask = mask[i] if mask.size else mask.ravel()
        total = 0.0
        found[i, :] = 0.0
        for first in range(0, n, TILE):
            weight = tile[: min(TILE, n - first)]
            weights_of_tile(
                weight, buffers, i, first, query, key, key_weight, row_mask, own, own_weight, query_level, level,
                tables, bandwidth, code, infinite, product, unit,
            )  # fmt: skip
            for j in range(weight.size):
                total += weight[j]
            for b in range(found.shape[1]):
                part = 0.0
                for j in range(weight.size):
                    u = (threshold[i, b] - value[first + j]) / width
                    if weight[j] == 0.0 or u < -NOTHING:
                        continue
                    if density:
                        part += weight[j] * math.exp(-0.5 * u * u)
                    elif u > NOTHING:
                        part += weight[j]
                    else:
                        part += weight[j] * (0.5 * math.erfc(-u * HALF_ROOT))
                found[i, b] += part
        for b in range(found.shape[1]):
            scale = total * ROOT_OF_TWO_PI if density else total
            found[i, b] = found[i, b] / scale if total > 0.0 else np.nan


@bare_part
def place_in_tile(weight, before, need):
    """Return the index in a tile of keys at which cumulative weight, which starts from `before`, reaches `need`.

    If it is not reached, the last key of positive weight; -1 if there is none.
    """
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
    """Write into `found`, for each request, the key index in [low, high) at which cumulative weight reaches `need`.

    Weights are in units of ``2**unit``. Requests of query i are ``request[i]`` to ``request[i + 1]``, by rising need. A
    target that no key reaches, due to rounding of sums in another order, is assigned to the last key of positive
    weight. -1 where all weights are zero.
    """
    tile, buffers = np.empty(TILE), np.empty((3, TILE))
    for i in range(query.shape[0]):
        row_mask = mask[i] if mask.size else mask.ravel()
        waiting, last, total, most = request[i], request[i + 1], 0.0, np.inf
        for _ in range(2):  # the second turn is for what the first one does not reach
            total = 0.0
            for first in range(low, high, TILE):
                if waiting == last:
                    break
                weight = tile[: min(TILE, high - first)]
                weights_of_tile(
                    weight, buffers, i, first, query, key, key_weight, row_mask, own, own_weight, query_level, level,
                    tables, bandwidth, code, infinite, product, unit,
                )  # fmt: skip
                tile_sum = 0.0
                for j in range(weight.size):
                    tile_sum += weight[j]
                while waiting < last and tile_sum > 0.0 and total + tile_sum >= min(need[waiting], most):
                    found[waiting] = first + place_in_tile(weight, total, min(need[waiting], most))
                    waiting += 1
                total += tile_sum
            if waiting == last or total == 0.0:
                break
            most = total
