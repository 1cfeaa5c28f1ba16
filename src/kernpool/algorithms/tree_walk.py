"""The bridge from a problem to the compiled visits: what they are given, and one block of queries after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms import tree_visit
from kernpool.algorithms.kd_tree import kd_order, plant
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.algorithms.tiles import BOXCAR, CODES
from kernpool.algorithms.tree_boxes import EUCLIDEAN, MAXIMUM, TAXICAB
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

Array = NDArray[np.float64]

LEAF = 128  # keys: sixteen vectors of a processor with AVX-512, in boxes that are still small beside the kernel
TILE = 32  # queries: enough to share the walk through the tree, few enough for a small box
TILES_PER_BLOCK = 16
PAIRS_PER_CALL = 1 << 22


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
    own_place, active : ndarray of shape (m,) and (m + 1,)
        Room for the place of the own key in a leaf, and for the queries of a tile that need a leaf.
    """

    query: Array
    own: NDArray[np.int64]
    own_weight: Array
    own_place: NDArray[np.int64]
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


class Visits(NamedTuple):
    """Room for the list of what a tile has to visit; see `tree_visit`.

    Parameters
    ----------
    first, last : ndarray of shape (leaves + 1,)
        Ranges of leaves.
    whole : ndarray of shape (leaves + 1,)
        Whether the range lies in the support of all queries of the tile.
    exponent, rest : ndarray of shape (leaves + 1,)
        Bound on a leaf's kernel, and what a query misses at most that stops before this leaf.
    floor, slack : ndarray of shape (1,)
        Logarithms of the unit of `rest`, and of the share of its weight that a key must reach.
    """

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    whole: NDArray[np.bool_]
    exponent: Array
    rest: Array
    floor: Array
    slack: Array


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


class Walk:
    """Queries and keys of a problem in kd order, ready to be visited."""

    def __init__(self, problem: Problem, n_jobs: int = 1, leaf: int = LEAF, tile: int = TILE) -> None:
        self.problem, self.tile = problem, tile
        self.profile = profile_of(problem)
        scale = 1.0 / problem.similarity.bandwidth
        self.tree, place = plant(problem, scale, leaf, self.profile.collapses, n_jobs)
        self.query, self.order = kd_order(problem.query, scale, tile, n_jobs)
        own = np.full(len(self.query), -1) if problem.self_index is None else problem.self_index[self.order]
        self.own = np.where(own >= 0, place[own], -1)
        self.own_weight = problem.own_weight[self.order]

    def sums(self, block: slice) -> tuple[Tiles, Sums, Visits]:
        """Make room for the sums of a block of queries."""
        m, c, most = block.stop - block.start, self.problem.value.shape[1], len(self.tree.key) + 1
        return (
            Tiles(
                self.query[block],
                self.own[block],
                self.own_weight[block],
                np.empty(m, dtype=np.int64),
                np.empty(m + 1, dtype=np.int64),
            ),
            Sums(np.zeros(m), np.zeros(m), np.zeros(m), np.zeros((m, c)), np.zeros(m), np.zeros(m)),
            Visits(
                np.empty(most, dtype=np.int64),
                np.empty(most, dtype=np.int64),
                np.empty(most, dtype=np.bool_),
                np.empty(most),
                np.empty(most),
                np.empty(1),
                np.empty(1),
            ),
        )

    def reduce(self, blocks: list[slice], n_jobs: int, progress: Progress | None) -> tuple[PoolState, int]:
        """Sum over keys for some blocks of queries; return the state of all and the number of pairs looked at."""
        m, c = len(self.query), self.problem.value.shape[1]
        state, pairs = PoolState(np.empty(m), np.empty(m), np.empty((m, c))), np.zeros(m, dtype=np.int64)

        def work(block: slice) -> Iterator[None]:
            tiles, sums, visits = self.sums(block)
            cursor = np.array([0, 0, -1, 0, 0])
            while tree_visit.advance(
                self.tree, tiles, sums, self.profile, visits, cursor, self.tile, self.problem.tol, PAIRS_PER_CALL
            ):
                yield
            rows = self.order[block]
            state.shift[rows] = sums.unit * math.log(2.0)
            state.denominator[rows] = sums.denominator
            state.numerator[rows] = sums.numerator
            pairs[block.start] = cursor[tree_visit.PAIRS]
            yield

        run_blocks(work, blocks, n_jobs, progress)
        return state, int(pairs.sum())

    def blocks(self) -> list[slice]:
        """Cut the queries: whole tiles, as many as 16 in a block, fewer where there are few."""
        tiles = -(-len(self.query) // self.tile)
        return cut(len(self.query), self.tile * max(1, min(TILES_PER_BLOCK, tiles // 16)))
