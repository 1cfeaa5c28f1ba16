"""A kd tree over the keys: kd order, bounding boxes, moments of nodes, and copies of keys for loops.

Queries are put in kd order like the keys. Points are split at medians, along the side that is widest in bandwidths.
Measured on uniform and on clustered keys, medians and sliding midpoints visit the same number of pairs, and medians
leave every leaf full: 128 keys, a number that suits compiled loops.

`Profile` is the kernel and bandwidths for compiled code. `LeafCopies` holds the keys for fused loops: about the
center of their leaf, in the scale of the kernel. A difference of two such numbers needs no factor, and its rounding
depends on the extent of the leaf, not on its distance from zero. Boxes and their distances are computed in NumPy, for
many boxes at once.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.loops.kernel_weights import BOXCAR, CODES, GAUSSIAN, LOG2_E
from kernpool.algorithms.tree.loops import traversal as kd_loops
from kernpool.algorithms.tree.loops.traversal import EUCLIDEAN, MAXIMUM, TAXICAB
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut, run_blocks
from kernpool.kernels.registry import Exponential, Flat, Gaussian, power_of_square

Array = NDArray[np.float64]
Order = NDArray[np.int64]

ROWS_PER_CALL = 1 << 14  # below this a node is put in order in one call, of 2 ms; above it is split node by node


class KdTree(NamedTuple):
    """A kd tree: keys grouped by leaf, and bounding boxes, weights and moments of all nodes."""

    # Nodes are numbered by `node_indices`.

    key: Array  # transposed within a leaf, so that loops run along memory
    weight: Array  # key weights; the last leaf is filled up with zeros
    value: Array  # values
    lower: Array  # the box around the keys of a node, and its center
    upper: Array
    center: Array
    mass: Array  # sum of key weights
    # sums of 1, t and t**2 about the center, in bandwidths, weighted and for each value; empty if not requested
    moments: Array


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


def plant(problem: Problem, scale: Array, size: int, with_moments: bool, n_jobs: int) -> tuple[KdTree, Order]:
    """Build a kd tree over the keys of a problem."""
    (taking_part,) = np.arange(len(problem.key))[None] if problem.key_weight is None else np.nonzero(problem.key_weight)
    rows, order = kd_order(problem.key[taking_part], scale, size, n_jobs)
    order = taking_part[order]
    (n, d), c = rows.shape, problem.value.shape[1]
    leaves = -(-n // size)
    tree = KdTree(
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


def _sum_leaves(tree: KdTree, leaves: slice, scale: Array) -> None:
    """Compute the bounding boxes, weights and moments of some leaves from their keys, in place."""
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


def _join_nodes(tree: KdTree, scale: Array) -> None:
    """Compute the bounding boxes, weights and moments of inner nodes from their children, bottom-up."""
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
        low = np.minimum(tree.lower[left], tree.lower[right])
        high = np.maximum(tree.upper[left], tree.upper[right])
        center = low + 0.5 * (high - low)
        tree.lower[node], tree.upper[node], tree.center[node] = low, high, center
        tree.mass[node] = tree.mass[left] + tree.mass[right]
        if tree.moments.size:
            tree.moments[node] = _moved(tree, left, center, scale) + _moved(tree, right, center, scale)


def _moved(tree: KdTree, node: Order, center: Array, scale: Array) -> Array:
    """Return the moments of tree nodes, shifted from the nodes' own centers to the given ones."""
    way = ((tree.center[node] - center) * scale)[:, None, :]
    moments = tree.moments[node]
    weight, first = moments[:, :, :1], moments[:, :, 1:-1]
    squared = moments[:, :, -1] + (way * (2.0 * first + way * weight)).sum(axis=2)
    return np.concatenate([weight, first + way * weight, squared[:, :, None]], axis=2)


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
    collapses: bool  # whether the moments of a node can stand for its keys; whether there are fused loops
    fused: bool


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
    power = power_of_square(form)
    collapses = code == BOXCAR or (power == 1 and not product)
    has_loop = isinstance(form, Gaussian | Exponential) or power in FUSED_POWERS
    fused = has_loop and not product and 1 < bandwidth.size <= MOST_COLUMNS
    unit = math.sqrt(0.5 * LOG2_E) if isinstance(form, Gaussian) else LOG2_E if isinstance(form, Exponential) else 1.0
    factor = unit / bandwidth
    return Profile(bandwidth, 1.0 / bandwidth, factor, code, infinite, product, norm, collapses, fused)


def boxes_of(points: Array, rows: int) -> tuple[Array, Array]:
    """Return the lower and upper corners of the bounding boxes of every `rows` consecutive points."""
    starts = np.arange(0, len(points), rows)
    return np.minimum.reduceat(points, starts), np.maximum.reduceat(points, starts)


def distance(low: Array, high: Array, lower: Array, upper: Array, profile: Profile) -> Array:
    """Return the smallest distances between pairs of boxes, in bandwidths, in the norm that the kernel depends on."""
    with np.errstate(over="ignore"):
        gap = np.maximum(np.maximum(lower - high, low - upper), 0.0) * profile.scale
        if profile.norm == MAXIMUM:
            return np.asarray(gap.max(axis=-1))
        return np.asarray(gap.sum(axis=-1) if profile.norm == TAXICAB else np.sqrt((gap * gap).sum(axis=-1)))


def nearest_leaves(tree: KdTree, points: Array, profile: Profile) -> NDArray[np.int64]:
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


LEAVES_PER_CALL = 128
FARTHEST = 1020.0  # exponent that the loops in float64 can do without a look at it: they are good to 1021
# Leaves of this radius, and queries so far from them, have the error that `loops/leaf_sums.py` promises of float32.
FAR_RADIUS, FAR_RADIUS_LAPLACE, FAR_EXPONENT = 2.5, 8.0, 100.0
# Compact kernels: a distance rounds by 2e-16 of the radius of the leaf, and so does a weight where the kernel vanishes,
# which `rounding_bound` allows 1e-15. Wider leaves have few keys in reach, and cost the same without the copies.
COMPACT_RADIUS = 4.0
NEVER = 1.0


class LeafCopies(NamedTuple):
    """Copies of the keys of each leaf, centered and scaled for the fused loops."""

    # The arrays of keys are empty where there are no such loops.

    key: Array  # differences from the center, times the factors of the profile
    far_key: NDArray[np.float32]  # the same, then the sum of their squares, then key weights
    far_value: NDArray[np.float32]  # values
    # powers of two that bring weights and values into the range of float32; per leaf, because small weights may belong
    # to near keys and large ones to far keys
    weight_unit: Array
    value_unit: Array
    # smallest exponent, at the nearest point of the box, with which the loops in float64 and in float32 can do a leaf;
    # positive if they never can
    lowest: Array
    log_mass: Array  # logarithm to base two of the sum of weights


def copy_keys(tree: KdTree, profile: Profile, n_jobs: int) -> LeafCopies:
    """Build the `LeafCopies` of a tree: its keys, centered and scaled in float64 and float32."""
    # Those in float32 are only for kernels that have far keys.
    (leaves, d, size), c = tree.key.shape, tree.value.shape[1]
    near, far = leaves * profile.fused, leaves * (profile.fused and profile.infinite)
    copies = LeafCopies(
        np.empty((near, d, size)),
        np.empty((far, d + 2, size), np.float32),
        np.empty((far, c, size), np.float32),
        _power_of_two(tree.weight.max(axis=1)),
        _power_of_two(np.abs(tree.value).max(axis=(0, 2), initial=0.0)),
        np.full((leaves, 2), NEVER),
        np.log2(tree.mass[:leaves]),
    )

    def fill(part: slice) -> Iterator[None]:
        with np.errstate(over="ignore"):  # leaves that are too large, and are not read
            key = (tree.key[part] - tree.center[part, :, None]) * profile.factor[:, None]
            squared = (key * key).sum(axis=1)
            copies.key[part] = key
            diagonal = (tree.upper[part] - tree.lower[part]) * profile.factor
            copies.lowest[part] = _lowest(0.5 * np.sqrt((diagonal * diagonal).sum(axis=1)), profile)
            if far:
                copies.far_key[part, :d], copies.far_key[part, d] = key, squared
        if far:
            copies.far_key[part, d + 1] = tree.weight[part] / copies.weight_unit[part, None]
            copies.far_value[part] = tree.value[part] / copies.value_unit[:, None]
        yield

    if near:
        run_blocks(fill, cut(leaves, LEAVES_PER_CALL), n_jobs, None)
    return copies


def _lowest(radius: Array, profile: Profile) -> Array:
    """Return per leaf the smallest exponents for which the float64 and the float32 loops are valid."""
    # As `LeafCopies.lowest`; `radius` is half of the diagonal of a leaf's box.
    # A query is compared with the box of a leaf, not with its keys, so the box must bound their distances: whatever
    # point of the box is nearest to the query, no key is farther from that point than the diagonal, ``2 * radius``. So
    # if the gap between query and box is at most ``sqrt(FARTHEST) - 2 * radius``, every squared distance is at most
    # `FARTHEST`, and likewise the distances of a Laplace kernel. The distance of the farthest key from the center is no
    # substitute for the radius: with the nearest point in a corner, a key can be half a diagonal and that distance
    # away.
    # The center is within the radius of the nearest point and of every key, which bounds both coordinates that the loop
    # in float32 multiplies: ``|q| <= gap + radius`` and ``|k| <= radius``.
    if not profile.infinite:
        return np.where(radius <= COMPACT_RADIUS, 0.0, NEVER)[:, None]
    if profile.code == GAUSSIAN:
        reach = np.sqrt(FARTHEST) - 2.0 * radius
        near, widest = np.where(reach > 0.0, -reach * reach, NEVER), FAR_RADIUS
    else:
        near, widest = np.where(2.0 * radius < FARTHEST, 2.0 * radius - FARTHEST, NEVER), FAR_RADIUS_LAPLACE
    return np.stack([near, np.where(radius <= widest, -FAR_EXPONENT, NEVER)], axis=1)


def _power_of_two(x: Array) -> Array:
    """Return the largest power of two not above each x > 0, and 1 for x = 0."""
    return np.where(x > 0, np.ldexp(1.0, np.frexp(x)[1] - 1), 1.0)
