"""Gradients of local constant pooling by fused loops: one to three columns, one value column, float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.fused_moments import FusedMoments
from kernpool.algorithms.brute.loops import fused_gradients
from kernpool.algorithms.brute.precision import read_only
from kernpool.algorithms.loops.tiles import CODES
from kernpool.core.problem import Problem

Array = NDArray[np.float64]


class FusedGradients:
    """The fused loops of the gradients of a problem: the arrays are those of its local linear sums."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.arrays = problem, FusedMoments(replace(problem, degree=1))

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Whether there are fused loops for this problem."""
        return not problem.degree and FusedMoments.can_do(replace(problem, degree=1))

    def add(
        self, queries: slice, keys: slice, inverse: Array, intercept: Array, slopes: Array, sums: dict[str, Array]
    ) -> None:
        """Add the gradients of some queries.

        Parameters
        ----------
        queries, keys : slice
            Which block.
        inverse : ndarray of shape (m,)
            One over the denominators, in units of one; zero for queries that are to be left out.
        intercept, slopes : ndarray of shape (m, 1)
            Pooled values less the center of the values, and cotangents.
        sums : dict
            ``query``, ``log_bandwidth``, ``key`` and ``value``, to which is added; an empty array is not wanted.
        """
        problem, arrays = self.problem, self.arrays
        loop = fused_gradients.specialise(
            CODES[problem.similarity.kernel.name],
            len(arrays.key),
            int(problem.key_weight is not None),
            int(problem.self_index is not None),
            arrays.bounded,
            int(sums["key"].size > 0 or sums["value"].size > 0),
        )
        loop(
            read_only(problem.query[queries]),
            read_only(arrays.key[:, keys]),
            read_only(arrays.value[keys]),
            read_only(arrays.weight[keys]),
            read_only(arrays.place),
            read_only(arrays.own[queries] - keys.start),
            read_only(arrays.own_weight[queries]),
            read_only(arrays.scale),
            read_only(arrays.height * inverse),
            read_only(intercept[:, 0]),
            read_only(slopes[:, 0]),
            *(sums[name] for name in ("query", "log_bandwidth", "key", "value")),
        )
