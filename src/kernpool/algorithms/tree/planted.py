"""What is prepared before the first visit: a tree over the keys, queries in kd order, copies of keys for the loops."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.estimate import LEAF, TILE
from kernpool.algorithms.tree.boxes import boxes_of, nearest_leaves
from kernpool.algorithms.tree.copies import Copies, copy_keys
from kernpool.algorithms.tree.kd_tree import Tree, kd_order, plant
from kernpool.algorithms.tree.profile import Profile, profile_of
from kernpool.core.problem import Problem
from kernpool.execution.threads import cut

Array = NDArray[np.float64]

TILES_PER_BLOCK = 16


def _plant(
    problem: Problem, profile: Profile, scale: Array, leaf: int, n_jobs: int
) -> tuple[Tree, NDArray[np.int64], Copies]:
    tree, place = plant(problem, scale, leaf, profile.collapses, n_jobs)
    return tree, place, copy_keys(tree, profile, n_jobs)


class Planted:
    """Queries and keys of a problem in kd order, ready to be visited."""

    def __init__(self, problem: Problem, n_jobs: int = 1, leaf: int = LEAF, tile: int = TILE) -> None:
        self.problem, self.tile = problem, tile
        self.profile = profile_of(problem)
        scale = 1.0 / problem.similarity.bandwidth
        similarity = problem.similarity
        made_of = (problem.key, problem.value, problem.key_weight, similarity.bandwidth, similarity.kernel, leaf)
        self.tree, place, self.copies = problem.prepare(
            f"tree, {similarity.composition}", made_of, partial(_plant, problem, self.profile, scale, leaf, n_jobs)
        )
        self.query, self.order = kd_order(problem.query, scale, tile, n_jobs)
        low, high = self.boxes = boxes_of(self.query, tile)
        middle = (low + 0.5 * (high - low))[: None if self.profile.infinite else 0]
        self.nearest = nearest_leaves(self.tree, middle, self.profile)
        own = np.full(len(self.query), -1) if problem.self_index is None else problem.self_index[self.order]
        self.own = np.where(own >= 0, place[own], -1)
        self.own_weight = problem.own_weight[self.order]
        self.mass = float(self.tree.weight.sum())
        profile = self.profile
        if profile.fused:  # here, or every thread makes and compiles its own
            from kernpool.algorithms.tree.loops import sums as tree_sums

            special = profile.code, len(scale), int(problem.value.shape[1] == 1)
            self.sum_near, self.sum_far = tree_sums.near_loop(*special), tree_sums.far_loop(*special)

    def blocks(self) -> list[slice]:
        """Cut the queries: whole tiles, as many as 16 in a block, fewer where there are few."""
        tiles = -(-len(self.query) // self.tile)
        return cut(len(self.query), self.tile * max(1, min(TILES_PER_BLOCK, tiles // 16)))
