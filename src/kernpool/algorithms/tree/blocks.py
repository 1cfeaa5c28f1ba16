"""Blocks of queries in a tree sum: lists of the leaves and nodes that each block needs, and the sums over them.

`PreparedTree` is what is prepared before the first visit: a tree over the keys, queries in kd order, copies of keys for
the loops. `Block` makes the visits for all tiles of a block of queries. Every step is one call for all tiles: large
enough to be worth a call from Python, and small to compile.
"""

import math
from collections.abc import Iterator
from functools import partial

import numpy as np

from kernpool._arrays import Integers
from kernpool.algorithms.algorithm import LEAF, TILE
from kernpool.algorithms.brute.fused import read_only
from kernpool.algorithms.brute.loops.tiles import UNDERFLOW
from kernpool.algorithms.tree.kd_tree import boxes_of, kd_order, nearest_leaves, plant, profile_of
from kernpool.algorithms.tree.loops import leaf_sums as tree_pairs
from kernpool.algorithms.tree.loops import traversal as tree_visit
from kernpool.core import PoolState, Problem
from kernpool.execution import Progress, cut, run_blocks

TILES_PER_BLOCK = 16


class PreparedTree:
    """A problem prepared for a sum by the tree: kd tree over keys, queries in kd order, compiled loops."""

    def __init__(self, problem: Problem, n_jobs: int = 1, leaf: int = LEAF, tile: int = TILE) -> None:
        self.problem, self.tile = problem, tile
        self.profile = profile_of(problem)
        scale = 1.0 / problem.similarity.bandwidth
        similarity = problem.similarity
        made_of = (problem.key, problem.value, problem.key_weight, similarity.bandwidth, similarity.kernel, leaf)
        self.tree, place = problem.prepare("tree", made_of, partial(plant, problem, self.profile, leaf, n_jobs))
        self.query, self.order = kd_order(problem.query, scale, tile, n_jobs)
        low, high = self.boxes = boxes_of(self.query, tile)
        middle = (low + 0.5 * (high - low))[: None if self.profile.infinite else 0]
        self.nearest = nearest_leaves(self.tree, middle, self.profile)
        own, self.own_weight = (each[self.order] for each in problem.own)
        self.own = np.where(own >= 0, place[own], -1)
        self.mass = float(self.tree.weight.sum())
        profile = self.profile
        if profile.fused:  # here, or every thread makes and compiles its own
            from kernpool.algorithms.tree.loops import leaf_sums as tree_sums

            self.sum_near = tree_sums.near_loop(profile.code, len(scale), int(problem.value.shape[1] == 1))

    def blocks(self) -> list[slice]:
        """Return slices that cut the queries into blocks of up to 16 whole tiles, fewer if there are few queries."""
        tiles = -(-len(self.query) // self.tile)
        return cut(len(self.query), self.tile * max(1, min(TILES_PER_BLOCK, tiles // 16)))


Visits = Integers

PAIRS_PER_CALL = 1 << 14  # of a query and a leaf: two million of a query and a key
FAR_PER_CALL = 16  # queries that look for their nearest key, which in many columns may be in any leaf
NEAR = -800.0  # denominators of queries this near, as exponents of two, are far from underflow in the unit of 1


class Block:
    """A block of queries and its partial sums during the traversal of the tree."""

    def __init__(self, planted: PreparedTree, block: slice) -> None:
        m, leaves = block.stop - block.start, len(planted.tree.key)
        self.planted, self.tree, self.profile = planted, planted.tree, planted.profile
        self.query, self.own, self.own_weight = planted.query[block], planted.own[block], planted.own_weight[block]
        self.columns = np.ascontiguousarray(self.query.T)
        self.denominator, self.numerator = np.zeros(m), np.zeros((m, planted.problem.value.shape[1]))
        self.unit, self.least, self.spent = np.zeros(m), np.full(m, -np.inf), np.zeros(m)
        self.starts = np.append(np.arange(0, m, planted.tile), m)
        self.tiles = len(self.starts) - 1
        tiles = slice(block.start // planted.tile, block.start // planted.tile + self.tiles)
        self.boxes, self.nearest = (planted.boxes[0][tiles], planted.boxes[1][tiles]), planted.nearest[tiles]
        self.visits = np.empty((self.tiles * leaves, 3), dtype=np.int64)
        self.pairs, self.sizes = np.empty((2, PAIRS_PER_CALL, 2), dtype=np.int64), np.zeros(2, dtype=np.int64)
        self.pairs_seen = 0
        # For weights, and for products: loops without new arrays avoid reference counts, which threads would share.
        self.buffers = np.empty((2, planted.tree.key.shape[2]))

    def compact(self) -> Iterator[None]:
        """Compute the sums of the block for a kernel of compact support, yielding between the steps."""
        count = tree_visit.list_support(
            self.starts, *self.boxes, self.tree.lower, self.tree.upper, self.profile.scale, self.profile.norm,
            self.visits,
        )  # fmt: skip
        yield
        yield from self.add_leaves(self.visits, 0, count)

    def infinite(self) -> Iterator[None]:
        """Compute the sums of the block for a kernel of infinite support, yielding between the steps.

        The nearest leaf comes first, which bounds how far a query must look.
        """
        tree, profile = self.tree, self.profile
        nearest = np.stack([self.nearest, self.starts[:-1], self.starts[1:]], axis=1)
        yield from self.add_leaves(nearest, 0, self.tiles)
        far = np.flatnonzero(self.denominator <= UNDERFLOW)
        for first in range(0, len(far), FAR_PER_CALL):
            self.begin_far(far[first : first + FAR_PER_CALL], nearest)
            yield
        self.raise_bounds()
        budget = 0.5 * self.planted.problem.tol
        cut = np.minimum.reduceat(self.least, self.starts[:-1]) + math.log2(budget / self.planted.mass)
        early, others = tree_visit.list_leaves(
            nearest, *self.boxes, tree.lower, tree.upper, profile.scale, profile.norm, profile.code, cut, self.visits
        )
        yield
        yield from self.add_leaves(self.visits, 0, early, budget)
        yield from self.add_leaves(self.visits, others, len(self.visits), budget)

    def begin_far(self, far: Integers, nearest: Visits) -> None:
        """Restart the sums of queries far from their nearest leaf, in units of the weight of each one's nearest key."""
        # Their nearest leaf has almost no weight. The unit stays 1 where the nearest key's weight is far from
        # underflow.
        tree, profile, out = self.tree, self.profile, np.empty((len(far), 2))
        tree_visit.find_nearest_key(
            far, self.query, self.own, self.own_weight, tree.lower, tree.upper, tree.key, tree.weight,
            profile.bandwidth, profile.norm, profile.product, profile.code, np.empty((4, tree.key.shape[2])), out,
        )  # fmt: skip
        best, bound = out.T
        none = best == -np.inf  # no key takes part
        self.denominator[far], self.numerator[far] = 0.0, 0.0
        self.unit[far] = np.where(none | (bound < NEAR), np.rint(best), 0.0)
        self.least[far] = np.where(none, np.inf, bound)
        rows = far[~none]
        pairs = np.stack([rows, nearest[rows // self.planted.tile, tree_visit.LEAF]], axis=1)
        self.sum_stages(pairs, len(rows))
        self.pairs_seen += len(rows) * tree.key.shape[2]

    def raise_bounds(self) -> None:
        """Raise the lower bounds on the queries' sums of weights to the sums found so far."""
        known = (self.denominator > UNDERFLOW) & (self.least < np.inf)
        exponent = np.log2(self.denominator, where=known, out=np.full(len(known), -np.inf))
        np.maximum(self.least, self.unit + exponent, where=known, out=self.least)

    def add_leaves(self, visits: Visits, place: int, count: int, budget: float = 0.0) -> Iterator[None]:
        """Add the keys of the leaves listed in ``visits[place:count]`` to the sums of their queries."""
        # A query may omit leaves, up to the fraction `budget` of its sum.
        planted, tree, profile = self.planted, self.tree, self.profile
        while place < count:
            if budget:
                self.raise_bounds()
            place = tree_pairs.list_pairs(
                visits, place, count, self.columns, tree.lower, tree.upper, profile.scale, profile.norm, profile.code,
                profile.infinite, budget, tree.lowest, tree.log_mass, self.unit, self.least, self.spent, self.pairs,
                self.sizes,
            )  # fmt: skip
            self.pairs_seen += int(self.sizes.sum()) * tree.key.shape[2]
            near, staged = self.sizes.tolist()
            if staged:
                self.sum_stages(self.pairs[tree_pairs.STAGED], staged)
            if near:
                pairs = self.pairs[tree_pairs.NEAR]
                on_edge = planted.sum_near(
                    pairs, near, tree.near_key, tree.weight, tree.value, tree.center, profile.factor, self.query,
                    self.own, self.own_weight, self.denominator, self.numerator, self.buffers,
                )  # fmt: skip
                if on_edge:
                    self.sum_stages(pairs, on_edge)
            yield

    def sum_stages(self, pairs: Integers, count: int) -> None:
        """Add leaves' keys to queries' sums, for the first `count` query-leaf pairs, by the loop for every kernel."""
        # It is the staged loop of brute force.
        tree, profile = self.tree, self.profile
        tree_pairs.sum_stages(
            pairs, count, read_only(tree.key), tree.weight, tree.value, read_only(self.query), self.own,
            self.own_weight, self.unit, read_only(profile.bandwidth), profile.code, profile.infinite or None,
            profile.product, self.denominator, self.numerator,
        )  # fmt: skip


def visit_blocks(
    planted: PreparedTree, blocks: list[slice], n_jobs: int = 1, progress: Progress | None = None
) -> tuple[PoolState, int]:
    """Compute kernel sums of some blocks of queries by the tree; return them and the number of pairs summed."""
    # The state has a row for every query of the problem; rows of queries in other blocks are arbitrary.
    m, c = len(planted.query), planted.problem.value.shape[1]
    state, pairs = PoolState(np.empty(m), np.empty(m), np.empty((m, c))), np.zeros(m, dtype=np.int64)

    def work(block: slice) -> Iterator[None]:
        visit = Block(planted, block)
        yield from visit.infinite() if planted.profile.infinite else visit.compact()
        rows = planted.order[block]
        state.shift[rows] = visit.unit * math.log(2.0)
        state.denominator[rows] = visit.denominator
        state.numerator[rows] = visit.numerator
        pairs[block.start] = visit.pairs_seen
        yield

    run_blocks(work, blocks, n_jobs, progress)
    return state, int(pairs.sum())
