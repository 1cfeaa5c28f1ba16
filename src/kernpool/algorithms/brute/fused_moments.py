"""Pairs of local linear fits by fused loops: one to three columns, one value column, float64."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.loops import fused, fused_moments
from kernpool.algorithms.brute.loops.staged import UNDERFLOW_OF_MOMENTS
from kernpool.algorithms.brute.precision import farthest_square, is_gaussian, read_only, transposed
from kernpool.algorithms.loops.tiles import CODES
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState

_NONE = np.empty(0)


class FusedMoments:
    """The fused loop of a problem of degree 1, and its arrays."""

    def __init__(self, problem: Problem) -> None:
        self.problem, code = problem, CODES[problem.similarity.kernel.name]
        self.key, (self.value,) = transposed(problem)
        self.weight = _NONE if problem.key_weight is None else problem.key_weight
        self.own = np.full(len(problem.query), -1) if problem.self_index is None else problem.self_index
        self.own_weight = problem.own_weight
        self.place, self.scale = np.arange(fused_moments.TILE, dtype=float), 1.0 / problem.similarity.bandwidth
        self.height, bandwidth = fused.height(code), problem.similarity.bandwidth
        farthest = farthest_square(problem, fused.scales(code, bandwidth))
        self.bounded = int(fused.is_bounded(code, farthest, self.key.dtype))
        weighted, own = int(problem.key_weight is not None), int(problem.self_index is not None)
        self.loop = fused_moments.specialise(code, len(self.key), weighted, own, self.bounded)

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Whether there is a fused loop for this problem."""
        similarity, d = problem.similarity, problem.key.shape[1]
        code = CODES[similarity.kernel.name]
        radial = similarity.composition == "radial" or d == 1 or is_gaussian(problem)
        plain = problem.degree == 1 and problem.attn_mask is None and problem.value.shape[1] == 1
        return code in fused_moments.KERNELS and radial and plain and d <= fused_moments.COLUMNS

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the state of one block, and which of its queries may have lost digits."""
        own = self.own[queries] - keys.start
        m = len(own)
        denominator, numerator = np.zeros(m), np.zeros((m, self.problem.layout.width))
        self.loop(
            read_only(self.problem.query[queries]),
            read_only(self.key[:, keys]),
            read_only(self.value[keys]),
            read_only(self.weight[keys]),
            read_only(self.place),
            read_only(own),
            read_only(self.own_weight[queries]),
            read_only(self.scale),
            denominator,
            numerator,
        )
        denominator *= self.height
        numerator *= self.height
        return PoolState(np.zeros(m), denominator, numerator), denominator <= UNDERFLOW_OF_MOMENTS
