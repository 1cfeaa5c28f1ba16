"""Compiled loop that puts points into kd order.

The tree has no pointers. Leaves are full but for the last one, so a node is a range of leaves; it is split in the
middle of the range, at a leaf, and that leaf's number names it: see `kd_tree.node_names`.
"""

from __future__ import annotations

import numpy as np

from kernpool.execution.compiling import strict_loop


@strict_loop
def split_nodes(rows, order, first, last, size, scale, all_below):
    """Split the node of these leaves, of `size` rows each, and maybe all nodes below it.

    Each is split along its widest side in bandwidths: rows are reordered until none before the middle is greater than
    one after it (Hoare's FIND). Rows move whole: 1e7 indices into rows that stay would miss the cache at every
    comparison. Equal rows stop both scans, so that keys that are all the same take no longer than others.
    """
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
