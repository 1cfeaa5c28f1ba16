"""The bridge from a problem to the compiled visits: queries and keys in order, and one block after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from kernpool.algorithms.kd_boxes import boxes_of, nearest_leaves
from kernpool.algorithms.kd_tree import kd_order, plant
from kernpool.algorithms.threads import cut, run_blocks
from kernpool.algorithms.tree_block import Block
from kernpool.algorithms.tree_copies import copy_keys
from kernpool.algorithms.tree_profile import profile_of
from kernpool.problem import Problem
from kernpool.progress import Progress
from kernpool.state import PoolState

LEAF = 128  # keys: sixteen vectors of a processor with AVX-512, in boxes that are still small beside the kernel
TILE = 32  # queries: enough to share the walk through the tree, few enough for a small box
TILES_PER_BLOCK = 16


class Walk:
    """Queries and keys of a problem in kd order, ready to be visited."""

    def __init__(self, problem: Problem, n_jobs: int = 1, leaf: int = LEAF, tile: int = TILE) -> None:
        self.problem, self.tile = problem, tile
        self.profile = profile_of(problem)
        scale = 1.0 / problem.similarity.bandwidth
        self.tree, place = plant(problem, scale, leaf, self.profile.collapses, n_jobs)
        self.query, self.order = kd_order(problem.query, scale, tile, n_jobs)
        low, high = self.boxes = boxes_of(self.query, tile)
        middle = (low + 0.5 * (high - low))[: None if self.profile.infinite else 0]
        self.nearest = nearest_leaves(self.tree, middle, self.profile)
        own = np.full(len(self.query), -1) if problem.self_index is None else problem.self_index[self.order]
        self.own = np.where(own >= 0, place[own], -1)
        self.own_weight = problem.own_weight[self.order]
        self.mass = float(self.tree.weight.sum())
        profile = self.profile
        self.copies = copy_keys(self.tree, profile, n_jobs)
        if profile.fused:  # here, or every thread makes and compiles its own
            from kernpool.algorithms import tree_sums

            special = profile.code, len(scale), int(problem.value.shape[1] == 1)
            self.sum_near, self.sum_far = tree_sums.near_loop(*special), tree_sums.far_loop(*special)

    def reduce(self, blocks: list[slice], n_jobs: int, progress: Progress | None) -> tuple[PoolState, int]:
        """Sum over keys for some blocks of queries; return the state of all and the number of pairs looked at."""
        m, c = len(self.query), self.problem.value.shape[1]
        state, pairs = PoolState(np.empty(m), np.empty(m), np.empty((m, c))), np.zeros(m, dtype=np.int64)

        def work(block: slice) -> Iterator[None]:
            visit = Block(self, block)
            yield from visit.infinite() if self.profile.infinite else visit.compact()
            rows = self.order[block]
            state.shift[rows] = visit.unit * math.log(2.0)
            state.denominator[rows] = visit.denominator
            state.numerator[rows] = visit.numerator
            pairs[block.start] = visit.pairs_seen
            yield

        run_blocks(work, blocks, n_jobs, progress)
        return state, int(pairs.sum())

    def blocks(self) -> list[slice]:
        """Cut the queries: whole tiles, as many as 16 in a block, fewer where there are few."""
        tiles = -(-len(self.query) // self.tile)
        return cut(len(self.query), self.tile * max(1, min(TILES_PER_BLOCK, tiles // 16)))
