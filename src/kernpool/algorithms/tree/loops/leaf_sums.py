"""Compiled sums over the leaves of a tree, key by key.

Fused loops serve the most used kernels, radial, in two or three columns; all others run by the stages of brute force.
Specialisations close over integers alone. Coordinates are those of `KdTree.near_key` in `algorithms/tree/kd_tree.py`.

A query may miss the fraction `tol` of its weight. One half of it is for the nodes that `list_leaves` did not list.
The other half is for leaves that it did list for the tile: a query leaves out those whose weight is next to nothing
by a bound from its own distance.

Neither leaves at a medium distance in float32 nor whole nodes by their moments gained more than 1.4 times.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kernpool.algorithms.loops.kernel_weights import (
    BIWEIGHT,
    EDGE,
    EPANECHNIKOV,
    GAUSSIAN,
    LAPLACE,
    TRIWEIGHT,
    exp2_minus_64_unclamped,
    tile_weights,
)
from kernpool.algorithms.tree.loops.traversal import (
    LEAF,
    MARGIN,
    ROUNDING,
    START,
    STOP,
    TAXICAB,
    add_component,
    ceiling,
)
from kernpool.execution.compilation import bare_loop, loop


@lru_cache
def near_loop(code: int, columns: int, one_value: int) -> Callable[..., Any]:
    """Build the compiled float64 loop that adds the keys of leaves to the sums of queries."""
    last = columns - 1

    @bare_loop
    def sum_near(
        pairs, count, key, key_weight, value, center, factor, query, own, own_weight, denominator, numerator, buffers
    ):  # fmt: skip
        """Add leaves' keys to queries' sums for the listed query-leaf pairs; return the number of pairs not summed."""
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


NEAR, STAGED = range(2)  # kinds of pairs: a fused loop, and the stages of brute force
SKIPS = 5.0  # a leaf may be skipped if its bound is 2**-5 of what a query may spend: one alone must not take it all


@loop
def list_pairs(
    visits, place, count, query, lower, upper, scale, norm, code, infinite, budget, lowest, log_mass, unit,
    least, spent, pairs, sizes,
):  # fmt: skip
    """List query-leaf pairs by the loop that sums them, until a list is full; return the next row of `visits`."""
    squared = np.empty(query.shape[1])
    skip = math.log2(budget) - SKIPS if budget > 0.0 else -np.inf
    for kind in range(2):
        sizes[kind] = 0
    for k in range(place, count):
        leaf, start, stop = visits[k, LEAF], visits[k, START], visits[k, STOP]
        if max(sizes[0], sizes[1]) + stop - start > pairs.shape[1]:
            return k
        for i in range(start, stop):  # all queries of the tile at once: this vectorises, what follows does not
            squared[i] = 0.0
        for a in range(query.shape[0]):
            low, high = lower[leaf, a], upper[leaf, a]
            for i in range(start, stop):
                gap = max(max(query[a, i] - high, low - query[a, i]), 0.0)
                squared[i] = add_component(squared[i], gap * scale[a], norm)
        for i in range(start, stop):
            if infinite and least[i] == np.inf:  # no key is included, or the sums are done: nothing is omitted
                continue
            kind, total = NEAR, squared[i]
            if infinite:
                exponent = ceiling(total * total if norm == TAXICAB else total, code)
                share = exponent * (1.0 - ROUNDING) + log_mass[leaf] - least[i]
                if share <= skip:
                    weight = exp2_minus_64_unclamped(min(-share, 1000.0))
                    if spent[i] + weight <= budget:
                        spent[i] += weight
                        continue
                if unit[i] != 0.0 or exponent < lowest[leaf]:
                    kind = STAGED
            elif total > 1.0 + MARGIN:
                continue
            elif lowest[leaf] > 0.0:
                kind = STAGED
            pairs[kind, sizes[kind], 0], pairs[kind, sizes[kind], 1] = i, leaf
            sizes[kind] += 1
    return count


@loop
def sum_stages(
    pairs, count, key, key_weight, value, query, own, own_weight, unit, bandwidth, code, infinite, product,
    denominator, numerator,
):  # fmt: skip
    """Add keys of leaves to sums of queries, for listed query-leaf pairs, by the loop that supports every kernel."""
    size, current, keys = key.shape[2], 0, key[0]
    weight, s, exponent, column = np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    for r in range(count):
        i, leaf = pairs[r, 0], pairs[r, 1]
        if leaf != current:  # views are made once per leaf: threads count references to the same array in turns
            current, keys = leaf, key[leaf]
        tile_weights(weight, s, exponent, column, query[i], keys, 0, bandwidth, code, infinite, product, unit[i])
        place = own[i] - leaf * size
        own_kernel = weight[place] if 0 <= place < size else 0.0
        for j in range(size):
            weight[j] *= key_weight[leaf, j]
        if 0 <= place < size:  # replaced, not subtracted: what is left may be nothing beside it
            weight[place] = own_kernel * own_weight[i]
        total = 0.0
        for j in range(size):
            total += weight[j]
        denominator[i] += total
        for c in range(value.shape[1]):
            pooled = 0.0
            for j in range(size):
                pooled += weight[j] * value[leaf, c, j]
            numerator[i, c] += pooled
