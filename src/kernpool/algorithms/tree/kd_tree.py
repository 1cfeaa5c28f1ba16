"""A kd tree over the keys: kd order, bounding boxes, and copies of keys for the fused loops.

Queries are put in kd order like the keys. Points are split at medians, along the side that is widest in bandwidths.
Measured on uniform and on bunched keys, medians and sliding midpoints visit the same number of pairs, and medians
leave every leaf full: 128 keys, a number that suits compiled loops.

`Profile` is the kernel and bandwidths for compiled code. Fused loops read copies of the keys, about the center of
their leaf and in the scale of the kernel. A difference of two such numbers needs no factor, and its rounding depends
on the extent of the leaf, not on its distance from zero. Boxes and their distances are computed in NumPy, for many
boxes at once.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from kernpool._arrays import Array, Integers
from kernpool.algorithms.loops.kernel_weights import BOXCAR, CODES, GAUSSIAN, LOG2_E
from kernpool.algorithms.tree.loops import traversal as kd_loops
from kernpool.algorithms.tree.loops.traversal import EUCLIDEAN, MAXIMUM, TAXICAB
from kernpool.core import Problem
from kernpool.execution import cut, run_blocks
from kernpool.kernels import Exponential, Flat, Gaussian, Polynomial

Order = Integers

ROWS_PER_CALL = 1 << 14  # below this a node is put in order in one call, of 2 ms; above it is split node by node


MOST_COLUMNS = 3  # of fused loops
FUSED_POWERS = (1, 2, 3)  # of 1 - u**2


class Profile(NamedTuple):
    """Kernel, bandwidths and composition (radial or product) of a problem, encoded as numbers for compiled code."""

    bandwidth: Array  # bandwidths and their reciprocals
    scale: Array
    # multiplier of differences in the fused loops: a weight is 2**-s (Gaussian), 2**-sqrt(s) (Laplace) or a power of 1
    # - s, with s the sum of its squares
    factor: Array
    code: int  # kernel, as in `kernpool.algorithms.loops.kernel_weights.CODES`
    infinite: bool  # infinite support; product of profiles
    product: bool
    norm: int  # which norm of the difference the kernel decreases with
    fused: bool  # whether there are fused loops


def profile_of(problem: Problem) -> Profile:
    """Build the `Profile` of a problem: kernel, bandwidths and composition (radial or product) for compiled code."""
    similarity = problem.similarity
    kernel, form = similarity.kernel, similarity.kernel.form
    bandwidth = np.ascontiguousarray(similarity.bandwidth)
    code, infinite = CODES[kernel.profile_name], not kernel.is_compact
    product = kernel.composition == "product"
    if isinstance(form, Flat):  # a boxcar that is wide enough
        code, infinite, product, bandwidth = BOXCAR, False, False, np.full_like(bandwidth, math.inf)
    norm = EUCLIDEAN if not product else TAXICAB if infinite else MAXIMUM
    has_power = isinstance(form, Polynomial) and form.inner == 2 and form.outer in FUSED_POWERS
    has_loop = isinstance(form, Gaussian | Exponential) or has_power
    fused = has_loop and not product and 1 < bandwidth.size <= MOST_COLUMNS
    unit = math.sqrt(0.5 * LOG2_E) if isinstance(form, Gaussian) else LOG2_E if isinstance(form, Exponential) else 1.0
    factor = unit / bandwidth
    return Profile(bandwidth, 1.0 / bandwidth, factor, code, infinite, product, norm, fused)


class KdTree(NamedTuple):
    """A kd tree: keys grouped by leaf, and bounding boxes of all nodes."""

    # Nodes are numbered by `node_indices`.

    key: Array  # transposed within a leaf, so that loops run along memory
    weight: Array  # key weights; the last leaf is filled up with zeros
    value: Array  # values
    lower: Array  # the box around the keys of a node
    upper: Array
    center: Array  # of the box of a leaf
    near_key: Array  # keys less the center, times the factors of the profile; empty where there are no fused loops
    lowest: Array  # smallest exponent, at the nearest point of the box, for which fused loops are valid; positive: none
    log_mass: Array  # logarithm to base two of the sum of weights of a leaf


def node_indices(first: Any, last: Any, leaves: int) -> Any:
    """Return the array indices of the tree nodes that have the leaves `first` to ``last - 1``."""
    # A leaf's index is its own number; an inner node's is made from the middle of its leaves, which is unique.
    return np.where(last - first == 1, first, leaves + (first + last) // 2)


def kd_order(points: Array, scale: Array, size: int, n_jobs: int) -> tuple[Array, Order]:
    """Sort points into the order of the leaves of a kd tree, with `size` points per leaf."""
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


def plant(problem: Problem, profile: Profile, size: int, n_jobs: int) -> tuple[KdTree, Order]:
    """Build a kd tree over the keys of a problem; return it, and the place of each key, -1 if its weight is zero."""
    (taking_part,) = np.nonzero(problem.frequency)
    rows, order = kd_order(problem.key[taking_part], profile.scale, size, n_jobs)
    order = taking_part[order]
    (n, d), c = rows.shape, problem.value.shape[1]
    leaves = -(-n // size)
    tree = KdTree(
        key=np.empty((leaves, d, size)),
        weight=np.empty((leaves, size)),
        value=np.empty((leaves, c, size)),
        lower=np.empty((2 * leaves, d)),
        upper=np.empty((2 * leaves, d)),
        center=np.empty((leaves, d)),
        near_key=np.empty((leaves * profile.fused, d, size)),
        lowest=np.full(leaves, NEVER),
        log_mass=np.empty(leaves),
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
        _measure_leaves(tree, leaves, profile)
        yield

    run_blocks(fill, cut(leaves, max(1, ROWS_PER_CALL // size)), n_jobs, None)
    _join_nodes(tree)
    place = np.full(len(problem.key), -1)
    place[order] = np.arange(n)
    return tree, place


def _measure_leaves(tree: KdTree, leaves: slice, profile: Profile) -> None:
    """Compute the boxes and weights of some leaves, and their copies for the fused loops, in place."""
    key = tree.key[leaves]
    low, high = key.min(axis=2), key.max(axis=2)
    center = low + 0.5 * (high - low)
    tree.lower[leaves], tree.upper[leaves], tree.center[leaves] = low, high, center
    tree.log_mass[leaves] = np.log2(tree.weight[leaves].sum(axis=1))
    if profile.fused:
        with np.errstate(over="ignore"):  # leaves that are too large, whose copies are not read
            tree.near_key[leaves] = (key - center[:, :, None]) * profile.factor[:, None]
            diagonal = (high - low) * profile.factor
            tree.lowest[leaves] = _lowest(0.5 * np.sqrt((diagonal * diagonal).sum(axis=1)), profile)


def _join_nodes(tree: KdTree) -> None:
    """Compute the bounding boxes of inner nodes from those of their children, bottom-up."""
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
        node, left, right = leaves + middle, node_indices(first, middle, leaves), node_indices(middle, last, leaves)
        tree.lower[node] = np.minimum(tree.lower[left], tree.lower[right])
        tree.upper[node] = np.maximum(tree.upper[left], tree.upper[right])


def boxes_of(points: Array, rows: int) -> tuple[Array, Array]:
    """Return the lower and upper corners of the bounding boxes of every `rows` consecutive points."""
    starts = np.arange(0, len(points), rows)
    return np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)


def distance(low: Array, high: Array, lower: Array, upper: Array, profile: Profile) -> Array:
    """Return the smallest distances between pairs of boxes, in bandwidths, in the norm that the kernel depends on."""
    with np.errstate(over="ignore"):
        apart = np.maximum(np.maximum(lower - high, low - upper), 0.0) * profile.scale
        if profile.norm == MAXIMUM:
            return np.asarray(apart.max(axis=-1))
        return np.asarray(apart.sum(axis=-1) if profile.norm == TAXICAB else np.sqrt((apart * apart).sum(axis=-1)))


def nearest_leaves(tree: KdTree, points: Array, profile: Profile) -> Integers:
    """Return for each point a leaf that is likely the nearest, by descending to the nearer half of the tree."""
    leaves = len(tree.key)
    first, last = np.zeros(len(points), dtype=np.int64), np.full(len(points), leaves)
    while (last - first > 1).any():
        middle = (first + last) // 2
        inner = middle > first
        halves = [
            node_indices(np.where(inner, start, first), np.where(inner, stop, last), leaves)
            for start, stop in ((first, middle), (middle, last))
        ]
        left, right = (distance(points, points, tree.lower[node], tree.upper[node], profile) for node in halves)
        last, first = np.where(inner & (left <= right), middle, last), np.where(inner & (left > right), middle, first)
    return first


FARTHEST = 1020.0  # exponent that the fused loops can do without a look at it: they are good to 1021
# Compact kernels: a distance rounds by 2e-16 of the radius of the leaf, and so does a weight where the kernel vanishes,
# which `rounding_bound` allows 1e-15. Wider leaves have few keys in reach, and cost the same without the copies.
COMPACT_RADIUS = 4.0
NEVER = 1.0


def _lowest(radius: Array, profile: Profile) -> Array:
    """Return the smallest exponent for which the fused loops are valid, for leaves of a radius, half a diagonal."""
    # A query is compared with the box of a leaf, not with its keys, so the box must bound their distances: whatever
    # point of the box is nearest to the query, no key is farther from that point than the diagonal, ``2 * radius``. So
    # if query and box are at most ``sqrt(FARTHEST) - 2 * radius`` apart, every squared distance is at most
    # `FARTHEST`, and likewise the distances of a Laplace kernel. The distance of the farthest key from the center is no
    # substitute for the radius: with the nearest point in a corner, a key can be half a diagonal and that distance
    # away.
    if not profile.infinite:
        return np.where(radius <= COMPACT_RADIUS, 0.0, NEVER)
    if profile.code == GAUSSIAN:
        reach = np.sqrt(FARTHEST) - 2.0 * radius
        return np.where(reach > 0.0, -reach * reach, NEVER)
    return np.where(2.0 * radius < FARTHEST, 2.0 * radius - FARTHEST, NEVER)
