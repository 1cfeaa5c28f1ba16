"""Compiled visits: which nodes the queries of a tile have to see, in which order, and when they have seen enough.

Of the share `tol` of its weight that a query may miss, one half is for nodes and leaves whose every key is below an
equal share, ``K <= tol / 2 * D / W``; the other half is for the leaves that are left once the tile stops. Sums of
bounds are taken from the far end, of positive terms: nothing is subtracted.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.compiling import loop
from kernpool.algorithms.kd_loops import node_name
from kernpool.algorithms.loops import FAINT
from kernpool.algorithms.tiles import GAUSSIAN, exp2, tile_weights
from kernpool.algorithms.tree_boxes import MARGIN, ROUNDING, box_of, ceiling, largest, reach_of, select_near, smallest
from kernpool.algorithms.tree_pairs import add_pairs, add_whole

TILE, PLACE, COUNT, PLAIN, PAIRS = range(5)  # what a cursor holds
BUCKETS = 64  # leaves are visited bucket by bucket, of bounds that are alike to a bit or so
# Sums of moments below this share of the keys they come from have lost digits, and are done again pair by pair.
CANCELLED = 1e-3
NEAR = -800.0  # denominators of queries this near, as exponents of two, are far from underflow in the unit of 1


@loop
def push(stack, height, first, last):
    """Put a node on a stack; return the height."""
    stack[height, 0], stack[height, 1] = first, last
    return height + 1


@loop
def list_support(low, high, tree, profile, collapse, visits):
    """List what a compact kernel reaches from somewhere in the box: nodes that lie within as a whole, and leaves."""
    lower, upper, scale, norm = tree.lower, tree.upper, profile.scale, profile.norm
    leaves, count = tree.key.shape[0], 0
    stack = np.empty((64, 2), dtype=np.int64)
    height = push(stack, 0, 0, leaves)
    while height > 0:
        height -= 1
        first, last = stack[height, 0], stack[height, 1]
        node = node_name(first, last, leaves)
        if smallest(low, high, node, lower, upper, scale, norm) > 1.0 + MARGIN:
            continue
        whole = collapse and largest(low, high, node, lower, upper, scale, norm) < 1.0 - MARGIN
        if whole or last - first == 1:
            visits.first[count], visits.last[count], visits.whole[count] = first, last, whole
            count += 1
        else:
            middle = (first + last) // 2
            height = push(stack, height, first, middle)
            height = push(stack, height, middle, last)
    return count


@loop
def nearest_leaf(low, high, tree, profile):
    """Leaf that is likely the nearest to the centre of a box."""
    lower, upper, scale, norm = tree.lower, tree.upper, profile.scale, profile.norm
    leaves, first, last = tree.key.shape[0], 0, tree.key.shape[0]
    centre = low + 0.5 * (high - low)
    while last - first > 1:
        middle = (first + last) // 2
        left = smallest(centre, centre, node_name(first, middle, leaves), lower, upper, scale, norm)
        if left <= smallest(centre, centre, node_name(middle, last, leaves), lower, upper, scale, norm):
            last = middle
        else:
            first = middle
    return first


@loop
def nearest_key(i, tree, tiles, profile, buffers):
    """Exponent of the nearest key that takes part, and a lower bound of its weight; minus infinity if none does."""
    lower, upper, scale, norm, code = tree.lower, tree.upper, profile.scale, profile.norm, profile.code
    leaves, size, q = tree.key.shape[0], tree.key.shape[2], tiles.query[i]
    best, bound = -np.inf, -np.inf
    stack = np.empty((64, 2), dtype=np.int64)
    height = push(stack, 0, 0, leaves)
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
            if left <= right:  # the nearer half goes on top
                height = push(stack, height, middle, last)
                height = push(stack, height, first, middle)
            else:
                height = push(stack, height, first, middle)
                height = push(stack, height, middle, last)
            continue
        tile_weights(
            buffers[0], buffers[1], buffers[2], q, tree.key[first], 0,
            profile.bandwidth, code, profile.infinite, profile.product, 0.0,
        )  # fmt: skip
        for j in range(size):
            own = first * size + j == tiles.own[i]
            weight = tiles.own_weight[i] if own else tree.weight[first, j]
            if weight > 0.0 and buffers[2, j] > best:
                best, bound = buffers[2, j], buffers[2, j] + np.log2(weight)
    # the bounded factors of the logistic kernel are at least 1/4, those of the Laplace kernel 1/2
    return best, bound - (0.0 if code == GAUSSIAN else 2.0 * q.size)


@loop
def begin(start, stop, leaf, tree, tiles, sums, profile, buffers):
    """Sum a first leaf, to know the unit of every query and how much weight it has at the least."""
    for i in range(start, stop):
        tiles.active[i - start] = i
    add_pairs(tiles.active, stop - start, leaf, tree, tiles, sums, profile, buffers)
    faint = 0
    for i in range(start, stop):
        sums.least[i] = np.log2(sums.denominator[i])
        if sums.denominator[i] > FAINT:
            continue
        sums.denominator[i] = 0.0
        for c in range(sums.numerator.shape[1]):
            sums.numerator[i, c] = 0.0
        best, bound = nearest_key(i, tree, tiles, profile, buffers)
        if best == -np.inf:  # no key takes part
            sums.unit[i], sums.least[i] = -np.inf, np.inf
            continue
        sums.least[i] = bound
        if bound < NEAR:  # else not so far after all: the first leaf was not the nearest one
            sums.unit[i] = np.rint(best)
        tiles.active[faint] = i
        faint += 1
    add_pairs(tiles.active, faint, leaf, tree, tiles, sums, profile, buffers)


@loop
def list_leaves(low, high, done, cut, floor, tree, profile, visits):
    """List the leaves, but for the one that is done, whose bound is above the cut, by decreasing bound."""
    lower, upper, scale, norm, code = tree.lower, tree.upper, profile.scale, profile.norm, profile.code
    leaves, count = tree.key.shape[0], 0
    top, bottom = -np.inf, np.inf
    stack = np.empty((64, 2), dtype=np.int64)
    height = push(stack, 0, 0, leaves)
    while height > 0:
        height -= 1
        first, last = stack[height, 0], stack[height, 1]
        exponent = ceiling(smallest(low, high, node_name(first, last, leaves), lower, upper, scale, norm), code)
        if exponent * (1.0 - ROUNDING) < cut:
            continue
        if last - first > 1:
            middle = (first + last) // 2
            height = push(stack, height, first, middle)
            height = push(stack, height, middle, last)
        elif first != done:
            visits.last[count], visits.exponent[count] = first, exponent
            top, bottom = max(top, exponent), min(bottom, exponent)
            count += 1
    # counting sort into buckets; `rest` is what a query may miss at most if it stops before that leaf
    width = max(top - bottom, 1.0) / BUCKETS
    begins = np.zeros(BUCKETS + 1, dtype=np.int64)
    for k in range(count):
        begins[1 + min(int((top - visits.exponent[k]) / width), BUCKETS - 1)] += 1
    for b in range(BUCKETS):
        begins[b + 1] += begins[b]
    for k in range(count):
        b = min(int((top - visits.exponent[k]) / width), BUCKETS - 1)
        leaf, place = visits.last[k], begins[b]
        begins[b] += 1
        visits.first[place] = leaf
        visits.rest[place] = tree.mass[leaf] * exp2(visits.exponent[k] * (1.0 - ROUNDING) - floor)
    for k in range(count - 2, -1, -1):
        visits.rest[k] += visits.rest[k + 1]
    return count


@loop
def smallest_weight(start, stop, sums, slack, code):
    """Raise what is known of the weights of the queries, and so how far they have to look; return the smallest."""
    floor = np.inf
    for i in range(start, stop):
        if sums.unit[i] > -np.inf:
            sums.least[i] = max(sums.least[i], sums.unit[i] + np.log2(sums.denominator[i]))
        sums.limit[i] = reach_of(sums.least[i] + slack, code)
        floor = min(floor, sums.least[i])
    return floor


@loop
def prepare(start, stop, tree, tiles, sums, profile, plain, tol, visits, buffers):
    """Begin a tile: list what it has to visit, and return how much that is."""
    d = tiles.query.shape[1]
    low, high = np.empty(d), np.empty(d)
    box_of(tiles.query, start, stop, low, high)
    for i in range(start, stop):
        sums.unit[i], sums.least[i], sums.denominator[i], sums.collapsed[i] = 0.0, 0.0, 0.0, 0.0
        sums.limit[i] = 1.0 + MARGIN
        for c in range(sums.numerator.shape[1]):
            sums.numerator[i, c] = 0.0
    if not profile.infinite:
        return list_support(low, high, tree, profile, profile.collapses and not plain, visits)
    leaf = nearest_leaf(low, high, tree, profile)
    begin(start, stop, leaf, tree, tiles, sums, profile, buffers)
    mass = tree.mass[node_name(0, tree.key.shape[0], tree.key.shape[0])]
    visits.slack[0] = np.log2(0.5 * tol / mass)
    visits.floor[0] = smallest_weight(start, stop, sums, visits.slack[0], profile.code)
    return list_leaves(low, high, leaf, visits.floor[0] + visits.slack[0], visits.floor[0], tree, profile, visits)


@loop
def cancelled(start, stop, sums):
    """Whether moments have lost the digits of some query of the tile."""
    for i in range(start, stop):
        if sums.denominator[i] < CANCELLED * sums.collapsed[i]:
            return True
    return False


@loop
def advance(tree, tiles, sums, profile, visits, cursor, tile_size, tol, budget):
    """Go on with the tiles of a block until about `budget` pairs are summed; return whether something is left to do."""
    m = tiles.query.shape[0]
    buffers = np.empty((3, tree.key.shape[2]))
    begun = cursor[PAIRS]
    while cursor[TILE] * tile_size < m:
        start, stop = cursor[TILE] * tile_size, min((cursor[TILE] + 1) * tile_size, m)
        if cursor[COUNT] < 0:
            cursor[COUNT] = prepare(start, stop, tree, tiles, sums, profile, cursor[PLAIN] > 0, tol, visits, buffers)
            cursor[PLACE] = 0
            cursor[PAIRS] += tree.key.shape[2] * (stop - start) if profile.infinite else 0
        enough = 0.0
        while cursor[PLACE] < cursor[COUNT]:
            k = cursor[PLACE]
            if cursor[PAIRS] - begun > budget:
                return True
            if profile.infinite:
                if k & (k - 1) == 0 or k % 8 == 0 or enough == 0.0:
                    least = smallest_weight(start, stop, sums, visits.slack[0], profile.code)
                    enough = 0.5 * tol * exp2(least - visits.floor[0])
                if visits.rest[k] <= enough:
                    break
            first, last = visits.first[k], visits.last[k]
            if not profile.infinite and visits.whole[k]:
                cursor[PAIRS] += add_whole(start, stop, first, last, tree, tiles, sums, profile, buffers)
            else:
                count = select_near(
                    tiles.active, tiles.query, start, stop, first, tree.lower, tree.upper, profile.scale, profile.norm,
                    sums.limit,
                )  # fmt: skip
                cursor[PAIRS] += add_pairs(tiles.active, count, first, tree, tiles, sums, profile, buffers)
            cursor[PLACE] += 1
        again = cursor[PLAIN] == 0 and cancelled(start, stop, sums)
        cursor[PLAIN] = 1 if again else 0
        cursor[TILE] += 0 if again else 1
        cursor[COUNT] = -1
    return False
