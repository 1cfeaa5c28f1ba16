"""A kd tree over the keys of a problem, and the same order for its queries: what `tree` visits.

Both are split at medians, along the widest side in bandwidths. Measured on uniform and on clustered keys, medians and
sliding midpoints visit the same number of pairs, and medians leave every leaf full: 128 keys, a count that compiled
loops like.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import kd_loops
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.problem import Problem

Array = NDArray[np.float64]
Order = NDArray[np.int64]

ROWS_PER_CALL = 1 << 14  # below this a node is put in order in one call, of 2 ms; above it is split node by node
_NONE = np.empty(0)


class Tree(NamedTuple):
    """Keys in leaves, and what is known of the nodes; nodes are numbered by `kd_loops.node_name`.

    Parameters
    ----------
    key : ndarray of shape (leaves, d, size)
        Transposed within a leaf, so that loops run along memory.
    weight : ndarray of shape (leaves, size)
        Key weights; the last leaf is filled up with zeros.
    value : ndarray of shape (leaves, c, size)
        Values.
    lower, upper, centre : ndarray of shape (nodes, d)
        The box around the keys of a node, and its centre.
    mass : ndarray of shape (nodes,)
        Sum of key weights.
    moments : ndarray of shape (nodes, 1 + c, 2 + d)
        Sums of 1, t and t**2 about the centre, in bandwidths, weighted and for each value; empty if nobody asks.
    """

    key: Array
    weight: Array
    value: Array
    lower: Array
    upper: Array
    centre: Array
    mass: Array
    moments: Array


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
    rows, order = np.array(points), np.arange(len(points))
    large, small = [slice(0, -(-len(points) // size))], []
    while large:
        halves: list[slice] = []

        def split(node: slice, halves: list[slice] = halves) -> Iterator[None]:
            middle = int(kd_loops.split_node(rows, order, node.start, node.stop, size, scale))
            halves.extend((slice(node.start, middle), slice(middle, node.stop)))
            yield

        is_large = [(node.stop - node.start) * size > max(ROWS_PER_CALL, size) for node in large]
        small += [node for node, apart in zip(large, is_large, strict=True) if not apart]
        run_blocks(split, [node for node, apart in zip(large, is_large, strict=True) if apart], n_jobs, None)
        large = halves

    def split_below(node: slice) -> Iterator[None]:
        kd_loops.split_below(rows, order, node.start, node.stop, size, scale)
        yield

    run_blocks(split_below, small, n_jobs, None)
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
    weight = _NONE if problem.key_weight is None else problem.key_weight

    def fill(leaves: slice) -> Iterator[None]:
        kd_loops.fill_leaves(leaves.start, leaves.stop, rows, order, weight, problem.value, tree, scale)
        yield

    run_blocks(fill, cut(leaves, max(1, ROWS_PER_CALL // size)), n_jobs, None)
    kd_loops.join_nodes(tree, scale)
    place = np.full(len(problem.key), -1)
    place[order] = np.arange(n)
    return tree, place
