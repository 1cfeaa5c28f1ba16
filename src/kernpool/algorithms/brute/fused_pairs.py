"""Pairs of few columns by fused loops: distance, kernel and sum in one, in registers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.loops import fused, products
from kernpool.algorithms.brute.precision import (
    LOST_ON_EDGE,
    UNDERFLOW,
    UNDERFLOW_32,
    is_gaussian,
    narrow_type,
    read_only,
)
from kernpool.algorithms.brute.products import Products
from kernpool.algorithms.loops.tiles import CODES, GAUSSIAN
from kernpool.core.problem import Problem
from kernpool.core.reading import column_range
from kernpool.core.state import PoolState

Array = NDArray[np.float64]

# Columns up to which fused loops are faster than staged tiles or products that are done again (measured); products that
# are precise at once are faster from 16 columns on.
MOST_FOR_FUSED = 32


class FusedPairs:
    """The fused loops of a problem, and its arrays in the precision that they run in."""

    def __init__(self, problem: Problem) -> None:
        similarity, weight = problem.similarity, problem.key_weight
        code = CODES[similarity.kernel.name]
        dtype = np.dtype(np.float64) if similarity.kernel.is_compact else narrow_type(problem)
        # float32 has a short range: coordinates and values come near 1 by powers of two, which is exact.
        unit = (
            fused.exponent_of(similarity.bandwidth)
            if dtype == np.float32
            else np.zeros(problem.key.shape[1], dtype=int)
        )
        self.query = np.ldexp(problem.query, -unit).astype(dtype)
        self.key, self.value, self.weight, self.value_unit, key_range = problem.prepare(
            "fused", (problem.key, problem.value, weight, unit, dtype), partial(_in_units, problem, unit, dtype)
        )
        self.own = np.full(len(problem.query), -1) if problem.self_index is None else problem.self_index
        self.own_weight = problem.own_weight
        scale = fused.scales(code, np.ldexp(similarity.bandwidth, -unit))
        # Equal bandwidths multiply a sum of squares once, if their squares are in range.
        even = len(scale) > 1 and bool(np.all(scale == scale[0])) and 1e-100 < scale[0] < 1e100
        self.scale = (np.where(np.arange(len(scale)) == 0, scale * scale, 1.0) if even else scale).astype(dtype)
        self.height = fused.height(code)
        # Sums up to this times the number of keys are done again: tails have underflowed, or the edge decides.
        self.least = (
            LOST_ON_EDGE if similarity.kernel.is_compact else UNDERFLOW_32 if dtype == np.float32 else UNDERFLOW
        )
        (query_low, query_high), (key_low, key_high) = column_range(problem.query), key_range
        extent = np.maximum(query_high, key_high) - np.minimum(query_low, key_low)
        self.loop = fused.specialise(
            code,
            min(len(self.key), fused.IN_REGISTERS + 1),
            8 * dtype.itemsize,
            int(weight is not None),
            int(len(self.value) == 1),
            int(even),
            int(fused.is_bounded(code, extent, similarity.bandwidth, dtype)),
        )

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Whether there is a fused loop for this problem."""
        similarity, d = problem.similarity, problem.key.shape[1]
        radial = similarity.composition == "radial" or d == 1 or is_gaussian(problem)
        code = CODES[similarity.kernel.name]
        few = d <= MOST_FOR_FUSED and not (
            code == GAUSSIAN and Products.can_do(problem) and Products.is_precise(problem)
        )
        possible = radial and problem.attn_mask is None and code in fused.KERNELS
        return possible and (few or code not in products.KERNELS)

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the state of one block, and which of its queries may have lost digits."""
        query = read_only(self.query[queries])
        denominator, numerator = np.empty(len(query)), np.empty((len(query), len(self.value)))
        self.loop(
            query,
            read_only(self.key[:, keys]),
            read_only(self.value[:, keys]),
            read_only(self.weight[keys]),
            read_only(self.own[queries] - keys.start),
            read_only(self.own_weight[queries]),
            read_only(self.scale),
            denominator,
            numerator,
        )
        doubtful = denominator <= self.least * (keys.stop - keys.start)
        state = PoolState(
            np.zeros(len(query)), self.height * denominator, np.ldexp(self.height * numerator, self.value_unit)
        )
        return state, doubtful


def _in_units(
    problem: Problem, unit: NDArray[np.int64], dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[np.int64], tuple[Array, Array]]:
    """Return keys, weighted values and weights as fused loops read them, the unit of values, and ends of columns."""
    weight = problem.key_weight
    key = np.ascontiguousarray(np.ldexp(problem.key, -unit).T, dtype=dtype)
    value_unit = fused.exponent_of(np.abs(problem.value).max(axis=0)) * (dtype == np.float32)
    value = np.ldexp(problem.value, -value_unit)
    value = np.ascontiguousarray((value if weight is None else value * weight[:, None]).T, dtype=dtype)
    weights = np.empty(0, dtype) if weight is None else weight.astype(dtype)
    return key, value, weights, value_unit, column_range(problem.key)
