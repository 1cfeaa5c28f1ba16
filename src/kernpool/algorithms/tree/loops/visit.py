"""Compiled lists: which nodes and leaves the queries of a tile have to see.

Of the share `tol` of its weight that a query may miss, one half is for the nodes that are not listed, whose every key
is below an equal share: ``K <= tol / 2 * D / W``. What becomes of the other half, `pairs.py` says.

Lists are made for all tiles of a block, then sums: no function holds another large one, which LLVM would compile again.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.loops.tiles import GAUSSIAN, LAPLACE, tile_weights
from kernpool.algorithms.tree.loops.boxes import MARGIN, ROUNDING, ceiling, largest, node_name, smallest
from kernpool.execution.compiling import loop

LEAF, START, STOP = range(3)  # columns of a list of visits: queries start ... stop - 1 see a leaf
FIRST, LAST = 2, 3  # the last columns of a list of nodes: queries start ... stop - 1 see leaves first ... last - 1
# Leaves whose bound is within 2**-6 of the largest are summed before the others, so that queries know how much they may
# leave out. Beyond that the order does not matter, and sorting leaves compiles longer than finding them.
EARLY = 6.0


@loop
def list_support(tiles, starts, lows, highs, lower, upper, scale, norm, collapse, visits, nodes):
    """List what a compact kernel reaches from somewhere in each tile: leaves, and nodes that lie within as a whole.

    Parameters
    ----------
    tiles : ndarray of int
        Which of them.
    starts : ndarray of shape (tiles + 1,)
        First query of each tile.
    lows, highs : ndarray of shape (tiles, d)
        The boxes around tiles.
    visits : ndarray of shape (size, 3)
        Written: leaves to be seen.
    nodes : ndarray of shape (size, 4)
        Written: nodes that lie within.

    Returns
    -------
    visits, nodes : int
        How many there are.
    """
    leaves, d, visit_count, node_count = lower.shape[0] // 2, lows.shape[1], 0, 0
    low, high, stack = np.empty(d), np.empty(d), np.empty((64, 2), dtype=np.int64)
    for t in tiles:
        start, stop = starts[t], starts[t + 1]
        for a in range(d):
            low[a], high[a] = lows[t, a], highs[t, a]
        stack[0, 0], stack[0, 1] = 0, leaves
        height = 1
        while height > 0:
            height -= 1
            first, last = stack[height, 0], stack[height, 1]
            node = node_name(first, last, leaves)
            if smallest(low, high, node, lower, upper, scale, norm) > 1.0 + MARGIN:
                continue
            if collapse and largest(low, high, node, lower, upper, scale, norm) < 1.0 - MARGIN:
                nodes[node_count, 0], nodes[node_count, 1] = start, stop
                nodes[node_count, FIRST], nodes[node_count, LAST] = first, last
                node_count += 1
            elif last - first == 1:
                visits[visit_count, LEAF], visits[visit_count, START], visits[visit_count, STOP] = first, start, stop
                visit_count += 1
            else:
                middle = (first + last) // 2
                stack[height, 0], stack[height, 1] = first, middle
                stack[height + 1, 0], stack[height + 1, 1] = middle, last
                height += 2
    return visit_count, node_count


@loop
def list_leaves(nearest, lows, highs, lower, upper, scale, norm, code, cut, visits):
    """List for each tile the leaves, but for its nearest, whose bound is above the cut.

    Parameters
    ----------
    nearest : ndarray of shape (tiles, 3)
        The visits that are done, one per tile.
    lows, highs : ndarray of shape (tiles, d)
        The boxes around tiles.
    cut : ndarray of shape (tiles,)
        Logarithm of the weight that a key must reach.
    visits : ndarray of shape (size, 3)
        Written: from the front those to be summed first, `EARLY`, and the others from the end.

    Returns
    -------
    early, others : int
        Where the first of them stop, and where the others start.
    """
    leaves, d, early, others = lower.shape[0] // 2, lows.shape[1], 0, visits.shape[0]
    low, high, stack = np.empty(d), np.empty(d), np.empty((64, 2), dtype=np.int64)
    found, exponent = np.empty(leaves, dtype=np.int64), np.empty(leaves)
    for t in range(nearest.shape[0]):
        for a in range(d):
            low[a], high[a] = lows[t, a], highs[t, a]
        size, top = 0, -np.inf
        stack[0, 0], stack[0, 1] = 0, leaves
        height = 1
        while height > 0:
            height -= 1
            first, last = stack[height, 0], stack[height, 1]
            bound = ceiling(smallest(low, high, node_name(first, last, leaves), lower, upper, scale, norm), code)
            if bound * (1.0 - ROUNDING) < cut[t]:
                continue
            if last - first > 1:
                middle = (first + last) // 2
                stack[height, 0], stack[height, 1] = first, middle
                stack[height + 1, 0], stack[height + 1, 1] = middle, last
                height += 2
            elif first != nearest[t, LEAF]:
                found[size], exponent[size] = first, bound
                top = max(top, bound)
                size += 1
        for k in range(size):
            if exponent[k] > top - EARLY:
                place = early
                early += 1
            else:
                others -= 1
                place = others
            visits[place, LEAF], visits[place, START], visits[place, STOP] = (
                found[k],
                nearest[t, START],
                nearest[t, STOP],
            )
    return early, others


@loop
def find_nearest_key(
    rows, query, own, own_weight, lower, upper, key, key_weight, bandwidth, norm, product, code, buffer, out
):  # fmt: skip
    """Write the exponent of the key nearest to each of these queries, and a lower bound of its weight, into `out`.

    Minus infinity if no key takes part.
    """
    leaves, d, size = lower.shape[0] // 2, query.shape[1], key.shape[2]
    stack, scale = np.empty((64, 2), dtype=np.int64), 1.0 / bandwidth
    for r in range(rows.size):
        i = rows[r]
        q = query[i]
        best, bound = -np.inf, -np.inf
        stack[0, 0], stack[0, 1] = 0, leaves
        height = 1
        while height > 0:
            height -= 1
            first, last = stack[height, 0], stack[height, 1]
            # a rounding of the far distance must not hide the nearest key
            if ceiling(smallest(q, q, node_name(first, last, leaves), lower, upper, scale, norm), code) < best * (
                1.0 + ROUNDING
            ):
                continue
            if last - first > 1:
                middle = (first + last) // 2
                left = smallest(q, q, node_name(first, middle, leaves), lower, upper, scale, norm)
                right = smallest(q, q, node_name(middle, last, leaves), lower, upper, scale, norm)
                swap = 1 if left <= right else 0  # the nearer half goes on top
                stack[height + swap, 0], stack[height + swap, 1] = first, middle
                stack[height + 1 - swap, 0], stack[height + 1 - swap, 1] = middle, last
                height += 2
                continue
            # the stages, because it has to be their number to the bit: exponents of 1e20 round by thousands
            tile_weights(
                buffer[0], buffer[1], buffer[2], buffer[3], q, key[first], 0, bandwidth, code, True, product, 0.0
            )  # fmt: skip
            for j in range(size):
                weight = own_weight[i] if first * size + j == own[i] else key_weight[first, j]
                if weight > 0.0 and buffer[2, j] > best:
                    best, bound = buffer[2, j], buffer[2, j] + np.log2(weight)
        # the bounded factors of the logistic kernel are at least 1/4, that of the Laplace kernel is 1/2, in each column
        factors = 0.0 if code == GAUSSIAN else (1.0 if code == LAPLACE else 2.0) * d
        out[r, 0], out[r, 1] = best, bound - factors
