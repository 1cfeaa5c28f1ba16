"""Pairs of many columns by matrix products, and which of them are not precise enough."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import FEWEST_FOR_PRODUCTS
from kernpool.algorithms.brute.loops import fused, products
from kernpool.algorithms.brute.loops.products import STEEPEST
from kernpool.algorithms.brute.precision import (
    UNDERFLOW,
    UNDERFLOW_32,
    is_gaussian,
    narrow_type,
    read_only,
)
from kernpool.algorithms.loops.tiles import CODES, GAUSSIAN, LN_2
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState

Array = NDArray[np.float64]


class Products:
    """The matrix products of a problem of many columns."""

    def __init__(self, problem: Problem, width: int) -> None:
        self.problem, self.narrow = problem, width == 32
        similarity, dtype = problem.similarity, np.float32 if self.narrow else np.float64
        self.code = CODES[similarity.kernel.name]
        self.block = products.GAUSSIAN_BLOCK if self.code == GAUSSIAN else products.OTHER_BLOCK
        self.key = np.ascontiguousarray(problem.key.T)
        self.value_unit = fused.exponent_of(np.abs(problem.value).max(axis=0)) * self.narrow
        self.value = np.ascontiguousarray(np.ldexp(problem.value, -self.value_unit).T, dtype=dtype)
        self.weight = np.empty(0, dtype) if problem.key_weight is None else problem.key_weight.astype(dtype)
        self.own = np.full(len(problem.query), -1) if problem.self_index is None else problem.self_index
        self.own_weight = problem.own_weight
        self.scale = fused.scales(self.code, similarity.bandwidth)
        self.epsilon = float(np.finfo(dtype).eps)
        self.least = UNDERFLOW_32 if self.narrow else UNDERFLOW

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Whether matrix products are possible, and faster than differences."""
        similarity = problem.similarity
        radial = similarity.composition == "radial" or is_gaussian(problem)
        enough = problem.key.shape[1] >= FEWEST_FOR_PRODUCTS
        return radial and enough and CODES[similarity.kernel.name] in products.KERNELS

    @staticmethod
    def is_precise(problem: Problem) -> bool:
        """Whether few queries, if any, will be found not precise enough: what keys alone say about it."""
        scale = fused.scales(GAUSSIAN, problem.similarity.bandwidth)
        squares = np.sum(((problem.key - problem.key.mean(axis=0)) * scale) ** 2, axis=1)
        narrow = narrow_type(problem) == np.float32
        return bool(
            0.5 * LN_2 * float(np.finfo(narrow_type(problem)).eps) * squares.max() <= (1e-6 if narrow else 5e-13)
        )

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the state of one block, and which of its queries are not precise enough."""
        problem = self.problem
        query, mask = read_only(problem.query[queries]), problem.attn_mask
        center = query.mean(axis=0)
        denominator, numerator = np.empty(len(query)), np.empty((len(query), len(self.value)))
        near = np.empty(len(query))
        radius = self.block(
            query,
            read_only(self.key[:, keys]),
            read_only(self.value[:, keys]),
            read_only(self.weight[keys]),
            read_only(np.empty((0, 0), dtype=bool) if mask is None else mask[queries, keys]),
            read_only(self.own[queries] - keys.start),
            read_only(self.own_weight[queries]),
            read_only(center),
            read_only(self.scale),
            self.code,
            denominator,
            numerator,
            near,
        )
        own_radius = np.sqrt(np.sum(((query - center) * self.scale) ** 2, axis=1))
        rounding = 0.25 * self.epsilon * (own_radius + np.sqrt(radius)) ** 2  # of a squared distance
        if problem.similarity.kernel.is_compact:
            # An error of each weight in the support is no error of the sum's digits; the window may be all edge.
            doubtful = (STEEPEST * rounding * near > 5e-13 * denominator) | (rounding > 1e-7)
        else:
            # Errors of exponents move a mean by their size times the mean absolute deviation of the values, which is at
            # most half of their range. Where the nearest key is beyond four bandwidths the promise allows for more.
            with np.errstate(divide="ignore"):
                nearest = -np.log(denominator) if problem.key_weight is None else np.zeros(len(query))
            allowed = np.where(nearest > 8.0, 4 * self.epsilon * (1 + nearest), 0.0) + (1e-6 if self.narrow else 5e-13)
            doubtful = (denominator <= self.least * (keys.stop - keys.start)) | (0.5 * LN_2 * rounding > allowed)
        return PoolState(np.zeros(len(query)), denominator, np.ldexp(numerator, self.value_unit)), doubtful
