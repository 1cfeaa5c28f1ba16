"""Copies of the keys that fused loops read: about the center of their leaf, in the scale of the kernel.

A difference of two such numbers needs no factor, and rounds by the extent of the leaf, not by its distance from zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.loops.tiles import GAUSSIAN
from kernpool.algorithms.tree.kd_tree import Tree
from kernpool.algorithms.tree.profile import Profile
from kernpool.execution.threads import cut, run_blocks

Array = NDArray[np.float64]

LEAVES_PER_CALL = 128
FARTHEST = 1020.0  # exponent that the loops in float64 can do without a look at it: they are good to 1021
# Leaves of this radius, and queries so far from them, have the error that `loops/pairs.py` promises of float32.
FAR_RADIUS, FAR_RADIUS_LAPLACE, FAR_EXPONENT = 2.5, 8.0, 100.0
# Compact kernels: a distance rounds by 1e-16 of the radius of the leaf, and has to know on which side of an edge it is
# to 1e-12.
COMPACT_RADIUS = 100.0
NEVER = 1.0


class Copies(NamedTuple):
    """Keys of each leaf; the arrays of keys are empty where there are no fused loops that read them.

    Parameters
    ----------
    key : ndarray of shape (leaves, d, size)
        Differences from the center, times the factors of the profile.
    far_key : ndarray of shape (leaves, d + 2, size), float32
        The same, then the sum of their squares, then key weights.
    far_value : ndarray of shape (leaves, c, size), float32
        Values.
    weight_unit, value_unit : ndarray of shape (leaves,) and (c,)
        Powers of two that bring weights and values into the range of float32; per leaf, because small weights may
        belong to near keys and large ones to far keys.
    lowest : ndarray of shape (leaves, 2)
        Smallest exponent, at the nearest place of the box, with which the loops in float64 and in float32 can do a
        leaf; positive if they never can.
    log_mass : ndarray of shape (leaves,)
        Logarithm to base two of the sum of weights.
    """

    key: Array
    far_key: NDArray[np.float32]
    far_value: NDArray[np.float32]
    weight_unit: Array
    value_unit: Array
    lowest: Array
    log_mass: Array


def copy_keys(tree: Tree, profile: Profile, n_jobs: int) -> Copies:
    """Make the copies; those in float32 only for kernels that have far keys."""
    (leaves, d, size), c = tree.key.shape, tree.value.shape[1]
    near, far = leaves * profile.fused, leaves * (profile.fused and profile.infinite)
    copies = Copies(
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
    """`Copies.lowest` of leaves whose boxes have these radii, half of their diagonals.

    A query is compared with the box of a leaf, not with its keys, so the box has to vouch for them: whatever place of
    the box is nearest to the query, no key is farther from that place than the diagonal, ``2 * radius``. So if the gap
    between query and box is at most ``sqrt(FARTHEST) - 2 * radius``, every squared distance is at most `FARTHEST`, and
    likewise the distances of a Laplace kernel. The distance of the farthest key from the center is no substitute for
    the radius: with the nearest place in a corner, a key can be half a diagonal and that distance away.

    The center is within the radius of the nearest place and of every key, which bounds both coordinates that the loop
    in float32 multiplies: ``|q| <= gap + radius`` and ``|k| <= radius``.
    """
    if not profile.infinite:
        return np.where(radius <= COMPACT_RADIUS, 0.0, NEVER)[:, None]
    if profile.code == GAUSSIAN:
        reach = np.sqrt(FARTHEST) - 2.0 * radius
        near, widest = np.where(reach > 0.0, -reach * reach, NEVER), FAR_RADIUS
    else:
        near, widest = np.where(2.0 * radius < FARTHEST, 2.0 * radius - FARTHEST, NEVER), FAR_RADIUS_LAPLACE
    return np.stack([near, np.where(radius <= widest, -FAR_EXPONENT, NEVER)], axis=1)


def _power_of_two(x: Array) -> Array:
    """Return the power of two below x > 0, and 1 for 0."""
    return np.where(x > 0, np.ldexp(1.0, np.frexp(x)[1] - 1), 1.0)
