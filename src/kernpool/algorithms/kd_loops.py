"""Compiled loops that put points into kd order, and sum up the nodes of the tree.

The tree has no pointers. Leaves are full but for the last one, so a node is a range of leaves; it is split in the
middle of the range, at a leaf, and that leaf's number names it: see `node_name`.
"""

from __future__ import annotations

import numpy as np

from kernpool.algorithms.compiling import loop, strict_loop


@loop
def node_name(first, last, leaves):
    """Row of the node of leaves first ... last - 1 in all arrays of nodes; every inner node has a middle of its own."""
    return first if last - first == 1 else leaves + (first + last) // 2


@loop
def widest_column(rows, first, last, scale):
    """Column in which these rows are the farthest apart, in bandwidths."""
    column, widest = 0, -1.0
    for a in range(rows.shape[1]):
        low = high = rows[first, a]
        for r in range(first, last):
            low = min(low, rows[r, a])
            high = max(high, rows[r, a])
        extent = (high - low) * scale[a]
        if extent > widest:
            column, widest = a, extent
    return column


@strict_loop
def split(rows, order, first, middle, last, column):
    """Reorder rows first ... last - 1 so that none before `middle` is greater than one after it (Hoare's FIND).

    Rows move whole: 1e7 indices into rows that stay would miss the cache at every comparison. Equal rows stop both
    scans, so that keys that are all the same take no longer than others.
    """
    left, right = first, last - 1
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
                for a in range(rows.shape[1]):
                    rows[i, a], rows[j, a] = rows[j, a], rows[i, a]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            right = j
        elif middle >= i:
            left = i
        else:
            return


@loop
def split_node(rows, order, first, last, size, scale):
    """Split the node of these leaves, of `size` rows each; return its middle leaf."""
    middle, stop = (first + last) // 2, min(last * size, rows.shape[0])
    split(rows, order, first * size, middle * size, stop, widest_column(rows, first * size, stop, scale))
    return middle


@loop
def split_below(rows, order, first, last, size, scale):
    """Split the node of these leaves, and all nodes below it."""
    waiting = np.empty((64, 2), dtype=np.int64)  # a stack of halves: as deep as the tree
    waiting[0, 0], waiting[0, 1] = first, last
    height = 1
    while height > 0:
        height -= 1
        first, last = waiting[height, 0], waiting[height, 1]
        if last - first < 2:
            continue
        middle = split_node(rows, order, first, last, size, scale)
        waiting[height, 0], waiting[height, 1] = first, middle
        waiting[height + 1, 0], waiting[height + 1, 1] = middle, last
        height += 2


@loop
def fill_leaves(first, last, rows, order, weight, value, tree, scale):
    """Lay keys, weights and values of some leaves side by side, the last leaf filled up with keys of weight zero."""
    n, size, d = rows.shape[0], tree.key.shape[2], rows.shape[1]
    for leaf in range(first, last):
        for a in range(d):
            low = high = rows[leaf * size, a]
            for j in range(size):
                x = rows[min(leaf * size + j, n - 1), a]
                tree.key[leaf, a, j] = x
                low = min(low, x)
                high = max(high, x)
            tree.lower[leaf, a], tree.upper[leaf, a] = low, high
            tree.centre[leaf, a] = low + 0.5 * (high - low)
        tree.mass[leaf] = 0.0
        for j in range(size):
            r = leaf * size + j
            w = 0.0 if r >= n else (weight[order[r]] if weight.size else 1.0)
            tree.weight[leaf, j] = w
            tree.mass[leaf] += w
            for c in range(value.shape[1]):
                tree.value[leaf, c, j] = value[order[r], c] if r < n else 0.0
        if tree.moments.size:
            sum_moments(leaf, tree, scale)


@loop
def sum_moments(leaf, tree, scale):
    """Sum w, w t and w t**2 with t = (key - centre) / h, and the same with each value for a factor."""
    d = tree.key.shape[1]
    tree.moments[leaf] = 0.0
    for channel in range(tree.moments.shape[1]):
        for j in range(tree.key.shape[2]):
            w = tree.weight[leaf, j] * (tree.value[leaf, channel - 1, j] if channel > 0 else 1.0)
            squared = 0.0
            for a in range(d):
                t = (tree.key[leaf, a, j] - tree.centre[leaf, a]) * scale[a]
                tree.moments[leaf, channel, 1 + a] += w * t
                squared += t * t
            tree.moments[leaf, channel, 0] += w
            tree.moments[leaf, channel, 1 + d] += w * squared


@loop
def join_nodes(tree, scale):
    """Boxes, masses and moments of inner nodes, from the leaves upwards."""
    leaves, d = tree.key.shape[0], tree.key.shape[1]
    inner = np.empty((leaves, 2), dtype=np.int64)  # parents before their children
    inner[0, 0], inner[0, 1] = 0, leaves
    known = 1 if leaves > 1 else 0
    at = 0
    while at < known:
        first, last = inner[at, 0], inner[at, 1]
        middle = (first + last) // 2
        for low, high in ((first, middle), (middle, last)):
            if high - low > 1:
                inner[known, 0], inner[known, 1] = low, high
                known += 1
        at += 1
    for at in range(known - 1, -1, -1):
        first, last = inner[at, 0], inner[at, 1]
        middle = (first + last) // 2
        node, left, right = leaves + middle, node_name(first, middle, leaves), node_name(middle, last, leaves)
        tree.mass[node] = tree.mass[left] + tree.mass[right]
        for a in range(d):
            low = min(tree.lower[left, a], tree.lower[right, a])
            high = max(tree.upper[left, a], tree.upper[right, a])
            tree.lower[node, a], tree.upper[node, a], tree.centre[node, a] = low, high, low + 0.5 * (high - low)
        if tree.moments.size:
            tree.moments[node] = 0.0
            for child in (left, right):
                move_moments(node, child, tree, scale)


@loop
def move_moments(node, child, tree, scale):
    """Add the moments of a child to those of a node, about the node's own centre."""
    d = tree.key.shape[1]
    for channel in range(tree.moments.shape[1]):
        weight = tree.moments[child, channel, 0]
        squared = tree.moments[child, channel, 1 + d]
        for a in range(d):
            way = (tree.centre[child, a] - tree.centre[node, a]) * scale[a]
            first = tree.moments[child, channel, 1 + a]
            squared += way * (2.0 * first + way * weight)
            tree.moments[node, channel, 1 + a] += first + way * weight
        tree.moments[node, channel, 0] += weight
        tree.moments[node, channel, 1 + d] += squared
