"""A kd tree over the keys of a problem, and the same order for its queries: what `tree` visits.

Both are split at medians, along the widest side in bandwidths. Measured on uniform and on clustered keys, medians and
sliding midpoints visit the same number of pairs, and medians leave every leaf full: 128 keys, a count that compiled
loops like.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.tree.loops import split as kd_loops
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut, run_blocks

Array = NDArray[np.float64]
Order = NDArray[np.int64]

ROWS_PER_CALL = 1 << 14  # below this a node is put in order in one call, of 2 ms; above it is split node by node


class Tree(NamedTuple):
    """Keys in leaves, and what is known of the nodes; nodes are numbered by `node_names`.

    Parameters
    ----------
    key : ndarray of shape (leaves, d, size)
        Transposed within a leaf, so that loops run along memory.
    weight : ndarray of shape (leaves, size)
        Key weights; the last leaf is filled up with zeros.
    value : ndarray of shape (leaves, c, size)
        Values.
    lower, upper, center : ndarray of shape (nodes, d)
        The box around the keys of a node, and its center.
    mass : ndarray of shape (nodes,)
        Sum of key weights.
    degree : ndarray of shape (nodes, 1 + c, 2 + d)
        Sums of 1, t and t**2 about the center, in bandwidths, weighted and for each value; empty if nobody asks.
    """

    key: Array
    weight: Array
    value: Array
    lower: Array
    upper: Array
    center: Array
    mass: Array
    moments: Array


def node_names(first: Any, last: Any, leaves: int) -> Any:
    """Row of the node of leaves first ... last - 1 in all arrays of nodes; every inner node has a middle of its own."""
    return np.where(last - first == 1, first, leaves + (first + last) // 2)


def kd_order(points: Array, scale: Array, size: int, n_jobs: int) -> tuple[Array, Order]:
    """Put points into kd order, in leaves of `size`.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        They stay as they are.
    scale : ndarray of shape (d,)
        Reciprocal bandwidths.
    size : int
        Points per leaf.
    n_jobs : int
        Threads; the order does not depend on it.

    Returns
    -------
    rows : ndarray of shape (n, d)
        The points in order.
    order : ndarray of shape (n,)
        Where they were.
    """
    rows, order = np.array(points, order="C"), np.arange(len(points))

    def split(node: slice, all_below: bool = False) -> Iterator[None]:
        kd_loops.split_nodes(rows, order, node.start, node.stop, size, scale, all_below)
        yield

    large, small = [slice(0, -(-len(points) // size))], []
    while large:
        is_large = [(node.stop - node.start) * size > max(ROWS_PER_CALL, size) for node in large]
        small += [node for node, apart in zip(large, is_large, strict=True) if not apart]
        large = [node for node, apart in zip(large, is_large, strict=True) if apart]
        run_blocks(split, large, n_jobs, None)
        middles = [(node.start + node.stop) // 2 for node in large]
        large = [
            half
            for node, middle in zip(large, middles, strict=True)
            for half in (slice(node.start, middle), slice(middle, node.stop))
        ]
    run_blocks(lambda node: split(node, True), small, n_jobs, None)
    return rows, order


def plant(problem: Problem, scale: Array, size: int, with_moments: bool, n_jobs: int) -> tuple[Tree, Order]:
    """Make the tree of a problem's keys.

    Parameters
    ----------
    problem : Problem
        Keys, weights and values. Keys of weight zero are left out: their boxes would promise weight that is not there.
    scale : ndarray of shape (d,)
        Reciprocal bandwidths.
    size : int
        Keys per leaf.
    with_moments : bool
        Whether nodes get moments.
    n_jobs : int
        Threads.

    Returns
    -------
    tree : Tree
        The tree.
    place : ndarray of shape (n,)
        Place of each key in the leaves, -1 if it was left out.
    """
    (taking_part,) = np.arange(len(problem.key))[None] if problem.key_weight is None else np.nonzero(problem.key_weight)
    rows, order = kd_order(problem.key[taking_part], scale, size, n_jobs)
    order = taking_part[order]
    (n, d), c = rows.shape, problem.value.shape[1]
    leaves = -(-n // size)
    tree = Tree(
        np.empty((leaves, d, size)),
        np.empty((leaves, size)),
        np.empty((leaves, c, size)),
        np.empty((2 * leaves, d)),
        np.empty((2 * leaves, d)),
        np.empty((2 * leaves, d)),
        np.empty(2 * leaves),
        np.empty((2 * leaves if with_moments else 0, 1 + c, 2 + d)),
    )

    def fill(leaves: slice) -> Iterator[None]:
        taken = np.arange(leaves.start * size, leaves.stop * size)
        beyond = taken >= n  # the last leaf is filled up with the last key, of weight zero
        taken[beyond] = n - 1
        shape = (leaves.stop - leaves.start, size, -1)
        weight = np.ones(len(taken)) if problem.key_weight is None else problem.key_weight[order[taken]]
        weight[beyond] = 0.0
        tree.key[leaves] = rows[taken].reshape(shape).transpose(0, 2, 1)
        tree.weight[leaves] = weight.reshape(shape[:2])
        tree.value[leaves] = problem.value[order[taken]].reshape(shape).transpose(0, 2, 1)
        _sum_leaves(tree, leaves, scale)
        yield

    run_blocks(fill, cut(leaves, max(1, ROWS_PER_CALL // size)), n_jobs, None)
    _join_nodes(tree, scale)
    place = np.full(len(problem.key), -1)
    place[order] = np.arange(n)
    return tree, place


def _sum_leaves(tree: Tree, leaves: slice, scale: Array) -> None:
    """Boxes, masses and moments of some leaves, from their keys."""
    key, weight = tree.key[leaves], tree.weight[leaves]
    low, high = key.min(axis=2), key.max(axis=2)
    center = low + 0.5 * (high - low)
    tree.lower[leaves], tree.upper[leaves], tree.center[leaves] = low, high, center
    tree.mass[leaves] = weight.sum(axis=1)
    if tree.moments.size:
        t = (key - center[:, :, None]) * scale[:, None]
        moments = tree.moments[leaves]
        for channel in range(moments.shape[1]):
            weighted = weight if channel == 0 else weight * tree.value[leaves, channel - 1]
            moments[:, channel, 0] = weighted.sum(axis=1)
            moments[:, channel, -1] = 0.0
            for a in range(len(scale)):
                product = weighted * t[:, a]
                moments[:, channel, 1 + a] = product.sum(axis=1)
                moments[:, channel, -1] += (product * t[:, a]).sum(axis=1)


def _join_nodes(tree: Tree, scale: Array) -> None:
    """Boxes, masses and moments of inner nodes, from the leaves upwards, a level at a time."""
    leaves = len(tree.key)
    first, last = np.array([0]), np.array([leaves])
    levels = []
    while len(first):
        is_inner = last - first > 1
        first, last = first[is_inner], last[is_inner]
        middle = (first + last) // 2
        levels.append((first, middle, last))
        first, last = np.concatenate([first, middle]), np.concatenate([middle, last])
    for first, middle, last in reversed(levels):
        node, left, right = leaves + middle, node_names(first, middle, leaves), node_names(middle, last, leaves)
        low = np.minimum(tree.lower[left], tree.lower[right])
        high = np.maximum(tree.upper[left], tree.upper[right])
        center = low + 0.5 * (high - low)
        tree.lower[node], tree.upper[node], tree.center[node] = low, high, center
        tree.mass[node] = tree.mass[left] + tree.mass[right]
        if tree.moments.size:
            tree.moments[node] = _moved(tree, left, center, scale) + _moved(tree, right, center, scale)


def _moved(tree: Tree, node: Order, center: Array, scale: Array) -> Array:
    """Moments of nodes about other centers."""
    way = ((tree.center[node] - center) * scale)[:, None, :]
    moments = tree.moments[node]
    weight, first = moments[:, :, :1], moments[:, :, 1:-1]
    squared = moments[:, :, -1] + (way * (2.0 * first + way * weight)).sum(axis=2)
    return np.concatenate([weight, first + way * weight, squared[:, :, None]], axis=2)
