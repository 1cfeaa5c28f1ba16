"""Boxes around runs of points in kd order, and distances between boxes: in NumPy, for many boxes at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.tree.kd_tree import Tree, node_names
from kernpool.algorithms.tree.loops.boxes import MAXIMUM, TAXICAB
from kernpool.algorithms.tree.profile import Profile

Array = NDArray[np.float64]


def boxes_of(points: Array, rows: int) -> tuple[Array, Array]:
    """Return the lowest and the highest coordinates of each run of so many points."""
    starts = np.arange(0, len(points), rows)
    return np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)


def distance(low: Array, high: Array, lower: Array, upper: Array, profile: Profile) -> Array:
    """Return the distance of boxes from boxes, in bandwidths and in the norm of the kernel."""
    with np.errstate(over="ignore"):
        gap = np.maximum(np.maximum(lower - high, low - upper), 0.0) * profile.scale
        if profile.norm == MAXIMUM:
            return np.asarray(gap.max(axis=-1))
        return np.asarray(gap.sum(axis=-1) if profile.norm == TAXICAB else np.sqrt((gap * gap).sum(axis=-1)))


def nearest_leaves(tree: Tree, points: Array, profile: Profile) -> NDArray[np.int64]:
    """Return for each point the leaf that is likely the nearest: a walk down to the nearer half, all at once."""
    leaves = len(tree.key)
    first, last = np.zeros(len(points), dtype=np.int64), np.full(len(points), leaves)
    while (last - first > 1).any():
        middle = (first + last) // 2
        inner = middle > first
        halves = [
            node_names(np.where(inner, start, first), np.where(inner, stop, last), leaves)
            for start, stop in ((first, middle), (middle, last))
        ]
        left, right = (distance(points, points, tree.lower[node], tree.upper[node], profile) for node in halves)
        last, first = np.where(inner & (left <= right), middle, last), np.where(inner & (left > right), middle, first)
    return first
