"""A look at a sample of the pairs, for estimates of time; it needs no compiler."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kernpool.algorithms.radius import radius
from kernpool.core.problem import Problem
from kernpool.kernels.forms import Flat, power_of_square

QUERIES, LEAST_KEYS, MOST_KEYS, PAIRS_PER_KEY = 64, 256, 2048, 50_000  # of the problem, per key of the sample
# Boxes of the tree. Keys: sixteen vectors of a processor with AVX-512, in boxes that are still small beside the kernel;
# queries: enough to share the walk through the tree, few enough for a small box.
LEAF, TILE = 128, 32
BOX = 0.6  # how far a box reaches, in radii of the ball that holds as much: fits measured times in 2 and 6 columns


@dataclass(frozen=True)
class Look:
    """Some queries and keys of a problem; nothing is looked at before somebody asks for what it tells.

    Parameters
    ----------
    problem : Problem
        What is to be summed.
    """

    problem: Problem

    @property
    def keys(self) -> int:
        """How many keys are looked at; more for problems that take longer."""
        m, n = self.problem.shape
        return min(n, max(LEAST_KEYS, min(MOST_KEYS, m * n // PAIRS_PER_KEY)))

    @property
    def seconds(self) -> float:
        """How long the look takes."""
        return 200e-6 + QUERIES * self.keys * (30e-9 + 3e-9 * int(self.problem.key.shape[1]))

    @property
    def share(self) -> float:
        """Share of pairs that a tree would visit one by one."""
        return self._found[0]

    @property
    def weight(self) -> float:
        """Mean sum of the weights of a query."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[float, float]:
        problem, (m, n) = self.problem, self.problem.shape
        similarity, d = problem.similarity, problem.key.shape[1]
        kernel = similarity.kernel
        query = problem.query[:: max(1, m // QUERIES)][:QUERIES]
        key = np.array(problem.key[:: max(1, n // self.keys)][: self.keys], order="F")
        distance = similarity.distance(query, key)
        # Balls around queries that hold one key of all, a leaf, a tile; below the first of the sample as if uniform.
        rank = np.array([1 / n, min(1.0, LEAF / n), min(1.0, TILE / m)]) * len(key)
        place = np.clip(np.rint(rank).astype(int), 1, len(key)) - 1
        ball = np.partition(distance, place, axis=1)[:, place] * (rank / (place + 1)).clip(max=1.0) ** (1 / d)
        nearest, boxes = ball[:, 0], BOX * (ball[:, 1] + ball[:, 2])
        weight = kernel.profile(distance).mean(axis=1) * n
        with np.errstate(divide="ignore", invalid="ignore"):
            relative = np.nan_to_num(weight / kernel.profile(nearest), nan=1.0)
        reach = radius(kernel, nearest, problem.tol / n * relative.clip(1.0, n))
        # Leaf and tile meet if any of their places do.
        near = distance <= (reach + boxes)[:, None]
        collapses = isinstance(kernel.form, Flat) or power_of_square(kernel.form) in (0, 1)
        if similarity.composition == "radial" and collapses and not problem.degree:
            near &= distance > (1.0 - boxes)[:, None]  # what lies within the support as a whole is added by moments
        return float(near.mean()), float(weight.mean())
