"""Compiled tree traversal: kd order, distances between boxes, and lists of the nodes and leaves to sum.

**Order.** The tree has no pointers. All leaves but the last are full, so a node is a range of leaves. It is split in
the middle of the range, at a leaf whose number names the node: see `node_indices` in `algorithms/tree/kd_tree.py`.

**Boxes.** Bounds of the distance and of the weight between two boxes. Arrays are passed one by one and not as the
records that hold them, because unpacking a record takes longer than computing the distance.

**Lists.** A query may miss the fraction `tol` of its weight. One half of it is for nodes that are not listed, whose
every key has at most an equal part of it: ``K <= tol / 2 * D / W``. The other half is explained in `leaf_sums.py`.
Lists are made for all tiles of a block, then sums, because a function that contains another large one makes LLVM
compile that again.
"""

import math

import numpy as np

from kernpool.algorithms.loops.kernel_weights import GAUSSIAN, LAPLACE, LOG2_E, tile_weights
from kernpool.execution.compilation import loop, part, strict_loop

# The norm of u = (q - k) / h that the kernel decreases with: radial ones the Euclidean; a product of profiles ends
# where one of them does; a product of exponentials is one of the sum of distances.
EUCLIDEAN, MAXIMUM, TAXICAB = 0, 1, 2
# Boxes this near to the edge of the support are neither inside nor outside: rounding is far below it.
MARGIN = 1e-9
# Upper bound on the relative rounding of exponents: 1e6 bandwidths away it matters compared with the log of `tol`.
ROUNDING = 1e-13


@part
def add_component(total, x, norm):
    """Return the squared norm of a vector with one more component `x`; for the taxicab norm, the norm itself."""
    if norm == EUCLIDEAN:
        return total + x * x
    return max(total, x * x) if norm == MAXIMUM else total + x


@part
def smallest(low, high, node, lower, upper, scale, norm):
    """Return the smallest squared distance, in bandwidths, from a box of queries to the box of a tree node."""
    total = 0.0
    for a in range(low.size):
        gap = max(lower[node, a] - high[a], low[a] - upper[node, a])
        total = add_component(total, max(gap, 0.0) * scale[a], norm)
    return total * total if norm == TAXICAB else total


@part
def node_index(first, last, leaves):
    """Return the array index of the tree node that has the leaves `first` to ``last - 1``."""
    # As `kd_tree.node_indices` does.
    return first if last - first == 1 else leaves + (first + last) // 2


@part
def ceiling(s, code):
    """Return an upper bound on the base-2 logarithm of an infinite-support kernel at squared distance s."""
    if code == GAUSSIAN:
        return -0.5 * LOG2_E * s
    return -LOG2_E * math.sqrt(s)  # laplace and logistic have a factor below one as well


LEAF, START, STOP = range(3)  # columns of a list of visits: queries start ... stop - 1 see a leaf
# Leaves whose bound is within 2**-6 of the largest are summed before the others, so that queries know how much they may
# leave out. Beyond that the order does not matter, and sorting leaves compiles longer than finding them.
EARLY = 6.0


@loop
def list_support(starts, lows, highs, lower, upper, scale, norm, visits):
    """List for each tile of queries the leaves that a compact kernel reaches; return their number."""
    leaves, d, count = lower.shape[0] // 2, lows.shape[1], 0
    low, high, stack = np.empty(d), np.empty(d), np.empty((64, 2), dtype=np.int64)
    for t in range(lows.shape[0]):
        for a in range(d):
            low[a], high[a] = lows[t, a], highs[t, a]
        stack[0, 0], stack[0, 1] = 0, leaves
        height = 1
        while height > 0:
            height -= 1
            first, last = stack[height, 0], stack[height, 1]
            if smallest(low, high, node_index(first, last, leaves), lower, upper, scale, norm) > 1.0 + MARGIN:
                continue
            if last - first == 1:
                visits[count, LEAF], visits[count, START], visits[count, STOP] = first, starts[t], starts[t + 1]
                count += 1
            else:
                middle = (first + last) // 2
                stack[height, 0], stack[height, 1] = first, middle
                stack[height + 1, 0], stack[height + 1, 1] = middle, last
                height += 2
    return count


@loop
def list_leaves(nearest, lows, highs, lower, upper, scale, norm, code, cut, visits):
    """List for each tile of queries the leaves whose weight bound is above a cutoff, except the nearest leaf."""
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
            bound = ceiling(smallest(low, high, node_index(first, last, leaves), lower, upper, scale, norm), code)
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
    """Write the base-2 logit of each query's nearest key, and a lower bound on the log2 of its weight, to `out`."""
    # The logit is without the key weight and the bounded factor that some kernels have. Both are minus infinity if no
    # key is included.
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
            if ceiling(smallest(q, q, node_index(first, last, leaves), lower, upper, scale, norm), code) < best * (
                1.0 + ROUNDING
            ):
                continue
            if last - first > 1:
                middle = (first + last) // 2
                left = smallest(q, q, node_index(first, middle, leaves), lower, upper, scale, norm)
                right = smallest(q, q, node_index(middle, last, leaves), lower, upper, scale, norm)
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


@strict_loop
def split_nodes(rows, order, first, last, size, scale, all_below):
    """Reorder rows so as to split a kd tree node in its middle, and optionally all nodes below it."""
    # The node has the leaves `first` to ``last - 1``, of `size` rows each. Each is split along its widest side in
    # bandwidths: rows are reordered until none before the middle is greater than one after it (Hoare's FIND). Rows move
    # whole: 1e7 indices into rows that stay would miss the cache at every comparison. Equal rows stop both scans, so
    # that keys that are all the same take no longer than others.
    d = rows.shape[1]
    waiting = np.empty((64, 2), dtype=np.int64)  # a stack of halves: as deep as the tree
    waiting[0, 0], waiting[0, 1] = first, last
    height = 1
    while height > 0:
        height -= 1
        first, last = waiting[height, 0], waiting[height, 1]
        if last - first < 2:
            continue
        half = (first + last) // 2
        left, middle, right = first * size, half * size, min(last * size, rows.shape[0]) - 1
        column, widest = 0, -1.0
        for a in range(d):
            low = high = rows[left, a]
            for r in range(left, right + 1):
                low = min(low, rows[r, a])
                high = max(high, rows[r, a])
            if (high - low) * scale[a] > widest:
                column, widest = a, (high - low) * scale[a]
        while left < right:
            x, y, z = rows[left, column], rows[(left + right) // 2, column], rows[right, column]
            pivot = max(min(x, y), min(max(x, y), z))
            i, j = left, right
            while i <= j:
                while rows[i, column] < pivot:
                    i += 1
                while rows[j, column] > pivot:
                    j -= 1
                if i <= j:
                    for a in range(d):
                        rows[i, a], rows[j, a] = rows[j, a], rows[i, a]
                    order[i], order[j] = order[j], order[i]
                    i += 1
                    j -= 1
            if middle <= j:
                right = j
            elif middle >= i:
                left = i
            else:
                break
        if all_below:
            waiting[height, 0], waiting[height, 1] = first, half
            waiting[height + 1, 0], waiting[height + 1, 1] = half, last
            height += 2
