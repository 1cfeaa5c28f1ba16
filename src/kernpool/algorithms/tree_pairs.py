"""Compiled sums of the pairs that a list of visits names: fused loops for what is used most, stages for the rest.

A fused loop leaves some queries to the stages of brute force: those next to an edge, and those that are counted in a
unit. They are put on a list of pairs of a query and a leaf, which `sum_stages` sums when it is full.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from kernpool.algorithms.compiling import loop, part
from kernpool.algorithms.exponential import exp2_minus_64
from kernpool.algorithms.tiles import (
    BIWEIGHT,
    EDGE,
    EPANECHNIKOV,
    GAUSSIAN,
    LAPLACE,
    LN_2,
    LOG2_E,
    TRIWEIGHT,
    tile_weights,
)
from kernpool.algorithms.tree_boxes import MAXIMUM, TAXICAB, reach_of
from kernpool.algorithms.tree_visit import LEAF, START, STOP

PLACE, COUNT, LEFT, PAIRS = range(4)  # what a cursor holds: the next visit, their number, what is left, pairs so far
FUSED, MOST_COLUMNS = (GAUSSIAN, EPANECHNIKOV, BIWEIGHT, TRIWEIGHT, LAPLACE), 3
ROOT = math.sqrt(0.5 * LOG2_E)


@lru_cache
def specialise(code: int, columns: int, one_value: int, infinite: int) -> Callable[..., Any]:
    """Make the loop that follows a list of visits.

    Parameters
    ----------
    code, columns : int
        Kernel code and number of columns, for radial distances; with 0 columns every pair is left to the stages.
    one_value, infinite : int
        1 if values have one column, which then is summed in registers; if the kernel has infinite support.

    Returns
    -------
    callable
        Compiled with the first call, for this specialisation alone. It goes on with the list until about `budget`
        pairs are summed, or the list of what is left is full, and returns whether there is more to do.
    """
    last = columns - 1

    @part
    def sum_pairs(leaf, q0, q1, q2, c0, c1, c2, key, value, buffer):
        """Sum a leaf for a query; on its own, or LLVM does not vectorise it."""
        edges, total, pooled = 0, 0.0, 0.0
        for j in range(key.shape[2]):
            u = (q0 - key[leaf, 0, j]) * c0
            s = u * u
            if columns > 1:
                u = (q1 - key[leaf, 1, j]) * c1
                s += u * u
            if columns > 2:
                u = (q2 - key[leaf, 2, j]) * c2
                s += u * u
            if infinite == 0:
                w = max(1.0 - s, 0.0)
                if code == EPANECHNIKOV:
                    w *= 0.75
                elif code == BIWEIGHT:
                    w *= 15 / 16 * w
                else:
                    w *= 35 / 32 * w * w
                w *= buffer[1, j]
                edges += 1 if abs(1.0 - s) < EDGE else 0
            elif code == LAPLACE:
                w = 0.5 * exp2_minus_64(LOG2_E * math.sqrt(s)) * buffer[1, j]
            else:
                w = exp2_minus_64(s) * buffer[1, j]
            total += w
            if one_value == 1:
                pooled += w * value[leaf, 0, j]
            else:
                buffer[0, j] = w
        return edges, total, pooled

    @loop
    def visit(
        visits, rest, cursor, budget, left, tree, tiles, sums, scale, norm, kernel, floor, slack, share, buffer
    ):  # fmt: skip
        """Add the leaves to the queries of their tiles that need them; returns whether something is left to do."""
        key, key_weight, value, lower, upper = tree.key, tree.weight, tree.value, tree.lower, tree.upper
        query, own, own_weight, active = tiles.query, tiles.own, tiles.own_weight, tiles.active
        unit, least, limit = sums.unit, sums.least, sums.limit
        denominator, numerator = sums.denominator, sums.numerator
        size, waiting, stop_at = key.shape[2], cursor[LEFT], cursor[PAIRS] + budget
        tile, seen, enough = -1, 0, 0.0
        c0 = scale[0]
        c1 = scale[1] if columns > 1 else 0.0
        c2 = scale[2] if columns > 2 else 0.0
        if code == GAUSSIAN:  # a weight is 2**-s
            c0, c1, c2 = c0 * ROOT, c1 * ROOT, c2 * ROOT
        for k in range(cursor[PLACE], cursor[COUNT]):
            leaf, start, stop = visits[k, LEAF], visits[k, START], visits[k, STOP]
            if cursor[PAIRS] > stop_at or waiting + stop - start > left.shape[0]:
                cursor[PLACE], cursor[LEFT] = k, waiting
                return True
            if infinite == 1:
                if start != tile:
                    tile, seen, enough = start, 0, 0.0
                if rest[k] <= enough:
                    continue
                if seen & (seen - 1) == 0 or seen % 8 == 0:
                    smallest = np.inf
                    for i in range(start, stop):
                        if unit[i] > -np.inf and denominator[i] > 0.0:
                            least[i] = max(least[i], unit[i] + np.log2(denominator[i]))
                        limit[i] = reach_of(least[i] + slack, kernel)
                        smallest = min(smallest, least[i])
                    enough = share * math.exp(LN_2 * (smallest - floor[start]))
                    if rest[k] <= enough:
                        continue
                seen += 1
            near = 0
            for i in range(start, stop):
                total = 0.0
                for a in range(query.shape[1] if columns == 0 else columns):
                    gap = max(lower[leaf, a] - query[i, a], query[i, a] - upper[leaf, a])
                    gap = max(gap, 0.0) * scale[a]
                    if columns > 0:
                        total += gap * gap
                    elif norm == TAXICAB:
                        total += gap
                    else:
                        total = max(total, gap * gap) if norm == MAXIMUM else total + gap * gap
                if columns == 0 and norm == TAXICAB:
                    total *= total
                active[near] = i
                near += 1 if total <= limit[i] else 0
            cursor[PAIRS] += near * size
            if columns > 0:  # a copy, not a view: threads would count references to the same array in turns
                for j in range(size):
                    buffer[1, j] = key_weight[leaf, j]
            for r in range(near):
                i = active[r]
                if columns == 0 or unit[i] != 0.0:
                    left[waiting, 0], left[waiting, 1] = i, leaf
                    waiting += 1
                    continue
                place = own[i] - leaf * size
                if 0 <= place < size:  # replaced, not subtracted: what is left may be nothing beside it
                    buffer[1, place] = own_weight[i]
                edges, total, pooled = sum_pairs(
                    leaf, query[i, 0], query[i, min(1, last)], query[i, last], c0, c1, c2, key, value, buffer
                )
                if 0 <= place < size:
                    buffer[1, place] = key_weight[leaf, place]
                if edges > 0:
                    left[waiting, 0], left[waiting, 1] = i, leaf
                    waiting += 1
                    continue
                denominator[i] += total
                if one_value == 1:
                    numerator[i, 0] += pooled
                else:
                    for c in range(value.shape[1]):
                        pooled = 0.0
                        for j in range(size):
                            pooled += buffer[0, j] * value[leaf, c, j]
                        numerator[i, c] += pooled
        cursor[PLACE], cursor[LEFT] = cursor[COUNT], waiting
        return False

    return visit


@loop
def sum_stages(left, count, tree, tiles, sums, bandwidth, code, infinite, product, buffer):
    """Add leaves to queries pair by pair, for every kernel, by the stages of brute force."""
    key, key_weight, value, size = tree.key, tree.weight, tree.value, tree.key.shape[2]
    weight, current, keys = buffer[0], 0, key[0]
    for r in range(count):
        i, leaf = left[r, 0], left[r, 1]
        if leaf != current:  # views are made once per leaf: threads count references to the same array in turns
            current, keys = leaf, key[leaf]
        tile_weights(
            weight, buffer[1], buffer[2], tiles.query[i], keys, 0,
            bandwidth, code, infinite, product, sums.unit[i],
        )  # fmt: skip
        own = tiles.own[i] - leaf * size
        own_kernel = weight[own] if 0 <= own < size else 0.0
        total = 0.0
        for j in range(size):
            weight[j] *= key_weight[leaf, j]
            total += weight[j]
        if 0 <= own < size:
            weight[own] = own_kernel * tiles.own_weight[i]
            total = 0.0
            for j in range(size):
                total += weight[j]
        sums.denominator[i] += total
        for c in range(value.shape[1]):
            pooled = 0.0
            for j in range(size):
                pooled += weight[j] * value[leaf, c, j]
            sums.numerator[i, c] += pooled
