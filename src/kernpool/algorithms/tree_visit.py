"""Compiled lists: which nodes the queries of a tile have to see, and in which order.

Of the share `tol` of its weight that a query may miss, one half is for the nodes that are not listed, whose every key
is below an equal share: ``K <= tol / 2 * D / W``. What becomes of the other half, `tree_pairs` says.

Lists are made for all tiles of a block, then sums: no function holds another large one, which LLVM would compile again.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.tiles import GAUSSIAN, LAPLACE, tile_weights
from kernpool.algorithms.tree_boxes import MARGIN, ROUNDING, box_of, ceiling, largest, node_name, smallest

LEAF, START, STOP = range(3)  # columns of a list of visits: queries start ... stop - 1 see a leaf
FIRST, LAST = 2, 3  # the last columns of a list of nodes: queries start ... stop - 1 see leaves first ... last - 1
BUCKETS = 64  # leaves are visited bucket by bucket, of bounds that are alike to a bit or so
EARLY = 7  # leaves of a tile that are summed before the others, so that queries know how much they may leave out


@loop
def list_support(tiles, tile_size, query, lower, upper, scale, norm, collapse, visits, nodes):
    """List what a compact kernel reaches from somewhere in each tile: leaves, and nodes that lie within as a whole.

    Returns
    -------
    visits, nodes : int
        How many there are.
    """
    leaves, d, visit_count, node_count = lower.shape[0] // 2, query.shape[1], 0, 0
    low, high, stack = np.empty(d), np.empty(d), np.empty((64, 2), dtype=np.int64)
    for t in range(tiles.size):
        start, stop = tiles[t] * tile_size, min((tiles[t] + 1) * tile_size, query.shape[0])
        box_of(query, start, stop, low, high)
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
def list_nearest(tile_size, query, lower, upper, scale, norm, visits):
    """List for each tile the leaf that is likely the nearest to its centre."""
    leaves, d = lower.shape[0] // 2, query.shape[1]
    low, high = np.empty(d), np.empty(d)
    for t in range(visits.shape[0]):
        start, stop = t * tile_size, min((t + 1) * tile_size, query.shape[0])
        box_of(query, start, stop, low, high)
        for a in range(d):
            low[a] += 0.5 * (high[a] - low[a])
        first, last = 0, leaves
        while last - first > 1:
            middle = (first + last) // 2
            left = smallest(low, low, node_name(first, middle, leaves), lower, upper, scale, norm)
            if left <= smallest(low, low, node_name(middle, last, leaves), lower, upper, scale, norm):
                last = middle
            else:
                first = middle
        visits[t, LEAF], visits[t, START], visits[t, STOP] = first, start, stop


@loop
def list_leaves(nearest, query, lower, upper, scale, norm, code, least, slack, visits):
    """List for each tile the leaves, but for its nearest, whose bound is above the cut, by decreasing bound.

    Parameters
    ----------
    nearest : ndarray of shape (tiles, 3)
        The visits that are done, one per tile.
    least, slack : ndarray of shape (m,), and float
        Logarithms of the weight of each query, at the least, and of the share of it that a key must reach.
    visits : ndarray of shape (room, 3)
        Written: the first `EARLY` leaves of every tile, then the others. Tiles with fewer leaves see none twice: those
        visits have no queries.

    Returns
    -------
    int
        How many there are.
    """
    leaves, d, count = lower.shape[0] // 2, query.shape[1], nearest.shape[0] * EARLY
    low, high, stack = np.empty(d), np.empty(d), np.empty((64, 2), dtype=np.int64)
    found, exponent = np.empty(leaves, dtype=np.int64), np.empty(leaves)
    begins = np.empty(BUCKETS + 1, dtype=np.int64)
    for k in range(count):
        visits[k, LEAF], visits[k, START], visits[k, STOP] = 0, 0, 0
    for t in range(nearest.shape[0]):
        done, start, stop = nearest[t, LEAF], nearest[t, START], nearest[t, STOP]
        box_of(query, start, stop, low, high)
        base = np.inf
        for i in range(start, stop):
            base = min(base, least[i])
        size, top, bottom = 0, -np.inf, np.inf
        stack[0, 0], stack[0, 1] = 0, leaves
        height = 1
        while height > 0:
            height -= 1
            first, last = stack[height, 0], stack[height, 1]
            bound = ceiling(smallest(low, high, node_name(first, last, leaves), lower, upper, scale, norm), code)
            if bound * (1.0 - ROUNDING) < base + slack:
                continue
            if last - first > 1:
                middle = (first + last) // 2
                stack[height, 0], stack[height, 1] = first, middle
                stack[height + 1, 0], stack[height + 1, 1] = middle, last
                height += 2
            elif first != done:
                found[size], exponent[size] = first, bound
                top, bottom = max(top, bound), min(bottom, bound)
                size += 1
        # counting sort into buckets
        width = max(top - bottom, 1.0) / BUCKETS
        for b in range(BUCKETS + 1):
            begins[b] = 0
        for k in range(size):
            begins[1 + min(int((top - exponent[k]) / width), BUCKETS - 1)] += 1
        for b in range(BUCKETS):
            begins[b + 1] += begins[b]
        for k in range(size):
            b = min(int((top - exponent[k]) / width), BUCKETS - 1)
            rank = begins[b]
            begins[b] += 1
            place = t * EARLY + rank if rank < EARLY else count + rank - EARLY
            visits[place, LEAF], visits[place, START], visits[place, STOP] = found[k], start, stop
        count += max(size - EARLY, 0)
    return count


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
                buffer[0], buffer[1], buffer[2], q, key[first], 0, bandwidth, code, True, product, 0.0
            )  # fmt: skip
            for j in range(size):
                weight = own_weight[i] if first * size + j == own[i] else key_weight[first, j]
                if weight > 0.0 and buffer[2, j] > best:
                    best, bound = buffer[2, j], buffer[2, j] + np.log2(weight)
        # the bounded factors of the logistic kernel are at least 1/4, that of the Laplace kernel is 1/2, in each column
        factors = 0.0 if code == GAUSSIAN else (1.0 if code == LAPLACE else 2.0) * d
        out[r, 0], out[r, 1] = best, bound - factors
