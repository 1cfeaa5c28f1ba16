"""One block of queries: lists of what its tiles have to visit, and the sums over them.

Every step is a call for all tiles of the block: large enough to be worth a call from Python, and small to compile.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import tree_pairs, tree_visit
from kernpool.algorithms.loops import FAINT
from kernpool.algorithms.tiles import BOXCAR, CODES
from kernpool.algorithms.tree_boxes import EUCLIDEAN, MARGIN, MAXIMUM, TAXICAB
from kernpool.problem import Problem

if TYPE_CHECKING:
    from kernpool.algorithms.tree_walk import Walk

Array = NDArray[np.float64]

PAIRS_PER_CALL = 1 << 22
LEFT_PER_CALL = 1 << 11  # pairs of a query and a leaf that wait for the stages; a tile's sums are as old as that
FAR_PER_CALL = 16  # queries that look for their nearest key, which in many columns may be in any leaf
# Sums of moments below this share of the keys they come from have lost digits, and are done again pair by pair.
CANCELLED = 1e-3
NEAR = -800.0  # denominators of queries this near, as exponents of two, are far from underflow in the unit of 1


class Profile(NamedTuple):
    """The similarity, for compiled code.

    Parameters
    ----------
    bandwidth, scale : ndarray of shape (d,)
        Bandwidths and their reciprocals.
    code : int
        Kernel, as in `tiles.CODES`.
    infinite, product : bool
        Infinite support; product of profiles.
    norm : int
        Which norm of the difference the kernel decreases with.
    collapses : bool
        Whether the moments of a node can stand for its keys.
    """

    bandwidth: Array
    scale: Array
    code: int
    infinite: bool
    product: bool
    norm: int
    collapses: bool


class Tiles(NamedTuple):
    """Queries of a block in kd order.

    Parameters
    ----------
    query : ndarray of shape (m, d)
        The queries.
    own : ndarray of shape (m,)
        Place of the own key of each among the keys, or -1.
    own_weight : ndarray of shape (m,)
        What is left of its weight.
    active : ndarray of shape (m + 1,)
        Room for the queries of a tile that need a leaf.
    """

    query: Array
    own: NDArray[np.int64]
    own_weight: Array
    active: NDArray[np.int64]


class Sums(NamedTuple):
    """What is summed for the queries of a block.

    Parameters
    ----------
    unit : ndarray of shape (m,)
        Exponent of the power of two that the sums are counted in; minus infinity where no key takes part.
    least : ndarray of shape (m,)
        Lower bound of the logarithm to base two of the denominator.
    denominator, numerator : ndarray of shape (m,) and (m, c)
        The sums.
    collapsed : ndarray of shape (m,)
        Weight of the keys that came in by their moments.
    limit : ndarray of shape (m,)
        Squared distance, in bandwidths, beyond which a leaf is left out.
    """

    unit: Array
    least: Array
    denominator: Array
    numerator: Array
    collapsed: Array
    limit: Array


def profile_of(problem: Problem) -> Profile:
    """Translate the similarity of a problem."""
    similarity = problem.similarity
    kernel, bandwidth = similarity.kernel, np.ascontiguousarray(similarity.bandwidth)
    code, infinite = CODES[kernel.name], not kernel.is_compact
    # For one column and for the Gaussian the compositions agree, and the radial one is the shorter way.
    product = similarity.composition == "product" and bandwidth.size > 1 and kernel.name != "gaussian"
    if kernel.name == "constant":  # a boxcar that is wide enough
        code, infinite, product, bandwidth = BOXCAR, False, False, np.full_like(bandwidth, math.inf)
    norm = EUCLIDEAN if not product else TAXICAB if infinite else MAXIMUM
    collapses = code == BOXCAR or (kernel.name == "epanechnikov" and not product)
    return Profile(bandwidth, 1.0 / bandwidth, code, infinite, product, norm, collapses)


def loop_of(profile: Profile, value_columns: int) -> Callable[..., Any]:
    """Return the loop that follows visits: a fused one if there is one."""
    columns = len(profile.scale)
    is_fused = profile.code in tree_pairs.FUSED and not profile.product and 1 < columns <= tree_pairs.MOST_COLUMNS
    if not is_fused:
        return tree_pairs.specialise(-1, 0, 0, int(profile.infinite))
    return tree_pairs.specialise(profile.code, columns, int(value_columns == 1), int(profile.infinite))


class Block:
    """A block of queries on its way through the tree.

    Parameters
    ----------
    walk : Walk
        The tree and all queries.
    block : slice
        Which queries.
    """

    def __init__(self, walk: Walk, block: slice) -> None:
        m, c, leaves = block.stop - block.start, walk.problem.value.shape[1], len(walk.tree.key)
        self.walk, self.tree, self.profile = walk, walk.tree, walk.profile
        self.tiles = Tiles(walk.query[block], walk.own[block], walk.own_weight[block], np.empty(m + 1, dtype=np.int64))
        self.sums = Sums(np.zeros(m), np.full(m, -np.inf), np.zeros(m), np.zeros((m, c)), np.zeros(m), np.zeros(m))
        self.cursor = np.zeros(4, dtype=np.int64)
        self.number = -(-m // walk.tile)
        self.visits = np.empty((self.number * leaves + m, 3), dtype=np.int64)
        self.rest = np.empty(self.number * leaves + m if self.profile.infinite else 0)
        self.left = np.empty((max(LEFT_PER_CALL, walk.tile), 2), dtype=np.int64)
        self.buffer = np.empty((3, walk.tree.key.shape[2]))
        self.floor, self.slack = np.zeros(m), 0.0

    def compact(self) -> Iterator[None]:
        """Sum for a kernel of compact support."""
        tree, sums, profile = self.tree, self.sums, self.profile
        sums.limit[:] = 1.0 + MARGIN
        tiles, collapse = np.arange(self.number), profile.collapses
        room = np.empty((len(self.visits) if collapse else 0, 4), dtype=np.int64)
        while tiles.size:
            count, nodes = tree_visit.list_support(
                tiles, self.walk.tile, self.tiles.query, tree.lower, tree.upper, profile.scale, profile.norm,
                collapse, self.visits, room,
            )  # fmt: skip
            yield
            if nodes:
                from kernpool.algorithms.tree_moments import add_nodes

                count = add_nodes(
                    room, nodes, self.visits, count, self.tiles, sums, tree.key.shape[2], tree.centre, tree.moments,
                    profile.scale, profile.code,
                )  # fmt: skip
                yield
            yield from self.follow(self.visits, count)
            lost = sums.denominator < CANCELLED * sums.collapsed
            if not lost.any():
                return
            # moments have lost the digits of some query: its tile is done again without them
            tiles, collapse = np.unique(np.flatnonzero(lost) // self.walk.tile), False
            again = np.isin(np.arange(len(lost)) // self.walk.tile, tiles)
            sums.denominator[again], sums.numerator[again], sums.collapsed[again] = 0.0, 0.0, 0.0

    def infinite(self) -> Iterator[None]:
        """Sum for a kernel of infinite support: the nearest leaf first, which says how far a query has to look."""
        tree, sums, profile = self.tree, self.sums, self.profile
        nearest = np.empty((self.number, 3), dtype=np.int64)
        geometry = tree.lower, tree.upper
        tree_visit.list_nearest(self.walk.tile, self.tiles.query, *geometry, profile.scale, profile.norm, nearest)
        self.rest[: self.number] = np.inf
        yield from self.follow(nearest, self.number)
        faint = sums.denominator <= FAINT
        np.log2(sums.denominator, where=~faint, out=sums.least)
        far = np.flatnonzero(faint)
        for first in range(0, len(far), FAR_PER_CALL):
            self.begin_far(far[first : first + FAR_PER_CALL], nearest)
            yield
        self.slack = math.log2(0.5 * self.walk.problem.tol / self.walk.mass)
        count = tree_visit.list_leaves(
            nearest, self.tiles.query, *geometry, tree.mass, profile.scale, profile.norm, profile.code, sums.least,
            self.slack, self.floor, self.visits, self.rest,
        )  # fmt: skip
        yield
        yield from self.follow(self.visits, count)

    def begin_far(self, far: NDArray[np.int64], nearest: NDArray[np.int64]) -> None:
        """Begin anew with queries whose nearest leaf weighs next to nothing: their nearest key gives them a unit."""
        tree, sums, profile, out = self.tree, self.sums, self.profile, np.empty((len(far), 2))
        tree_visit.find_nearest_key(
            far, *self.tiles[:3], tree.lower, tree.upper, tree.key, tree.weight, profile.bandwidth, profile.norm,
            profile.product, profile.code, self.buffer, out,
        )  # fmt: skip
        best, bound = out.T
        none = best == -np.inf  # no key takes part
        sums.denominator[far], sums.numerator[far] = 0.0, 0.0
        sums.unit[far] = np.where(none | (bound < NEAR), np.rint(best), 0.0)
        sums.least[far] = np.where(none, np.inf, bound)
        rows = far[~none]
        self.left[: len(rows), 0], self.left[: len(rows), 1] = rows, nearest[rows // self.walk.tile, tree_visit.LEAF]
        self.cursor[tree_pairs.LEFT] = len(rows)
        self.cursor[tree_pairs.PAIRS] += len(rows) * tree.key.shape[2]
        self.sum_left()

    def follow(self, visits: NDArray[np.int64], count: int) -> Iterator[None]:
        """Make these visits."""
        self.cursor[tree_pairs.PLACE], self.cursor[tree_pairs.COUNT] = 0, count
        profile, more = self.profile, True
        while more:
            more = self.walk.visit(
                visits, self.rest, self.cursor, PAIRS_PER_CALL, self.left, self.tree, self.tiles, self.sums,
                profile.scale, profile.norm, profile.code, self.floor, self.slack, 0.5 * self.walk.problem.tol,
                self.buffer,
            )  # fmt: skip
            self.sum_left()
            yield

    def sum_left(self) -> None:
        """Sum the pairs that are left to the stages."""
        if count := int(self.cursor[tree_pairs.LEFT]):
            profile = self.profile
            tree_pairs.sum_stages(
                self.left, count, self.tree, self.tiles, self.sums, profile.bandwidth, profile.code,
                profile.infinite, profile.product, self.buffer,
            )  # fmt: skip
            self.cursor[tree_pairs.LEFT] = 0
