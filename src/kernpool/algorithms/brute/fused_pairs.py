"""Pairs of few columns by fused loops: distance, kernel and sum in one, in registers."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.fused_keys import ALLOWED, FusedKeys
from kernpool.algorithms.brute.loops import columns, fused, products
from kernpool.algorithms.brute.precision import (
    LOST_ON_EDGE,
    UNDERFLOW,
    UNDERFLOW_32,
    farthest_square,
    is_gaussian,
    narrow_type,
    read_only,
)
from kernpool.algorithms.brute.products import Products
from kernpool.algorithms.loops.tiles import CODES, GAUSSIAN
from kernpool.core.problem import Problem
from kernpool.core.state import PoolState
from kernpool.execution.compiling import vector_registers

Array = NDArray[np.float64]

# Columns up to which fused loops are faster than staged tiles or products that are done again (measured), and than
# products that are precise at once, by registers and bytes of a number: at 20 columns with AVX-512 1.17e9 pairs per
# second beside 1.03e9 in float64, 2.2e9 beside 1.8e9 in float32; at 24 .89e9 beside .95e9, and 1.84e9 beside 1.64e9.
MOST_FOR_FUSED = 32
MOST_BEFORE_PRODUCTS = {32: {8: 20, 4: 32}, 16: {8: 15, 4: 15}}


class FusedPairs:
    """The fused loops of a problem, and its arrays in the precision that they run in."""

    def __init__(self, problem: Problem, *, products: bool = True) -> None:
        self.problem, code = problem, CODES[problem.similarity.kernel.name]
        is_compact, d = problem.similarity.kernel.is_compact, problem.key.shape[1]
        dtype = np.dtype(np.float64) if is_compact else narrow_type(problem)
        self.keys = FusedKeys.of(problem, dtype, products=products)
        self.query, self.offset = self.keys.queries(problem.query)
        self.own = np.full(len(self.query), -1) if problem.self_index is None else problem.self_index
        self.own_weight = problem.own_weight
        self.place = np.arange(fused.TILE, dtype=dtype)
        self.height = fused.height(code)
        # Sums up to this times the number of keys are done again: tails have underflowed, or the edge decides.
        self.least = LOST_ON_EDGE if is_compact else UNDERFLOW_32 if dtype == np.float32 else UNDERFLOW
        if self.keys.radius is None:
            farthest = farthest_square(problem, fused.scales(code, problem.similarity.bandwidth))
        else:
            farthest = float(np.sqrt(self.offset.max()) + self.keys.radius) ** 2
        later = (d - 1) // columns.AT_ONCE  # groups of columns that go before the exponential
        # Seven columns of four queries are more numbers than there are registers; LLVM then unrolls the loop twice, and
        # keeps most of them on the stack: 8 columns have 3.7e9 pairs per second in float32, with two queries 4.5e9.
        # With 16 registers one query is faster than two in one and two columns, by a sixth, if values have one.
        if vector_registers() >= 32:
            self.rows = 4 if d <= 6 or later else 2
        else:
            self.rows = 1 if d <= 2 and problem.value.shape[1] == 1 else 2
        self.loop = fused.specialise(
            code,
            d - columns.AT_ONCE * later,
            int(later > 0),
            8 * dtype.itemsize,
            self.keys.way,
            int(problem.key_weight is not None),
            int(problem.self_index is not None),
            int(problem.value.shape[1] == 1),
            int(fused.is_bounded(code, farthest, dtype)),
            self.rows,
        )

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Whether there is a fused loop for this problem."""
        similarity, d = problem.similarity, problem.key.shape[1]
        radial = similarity.composition == "radial" or d == 1 or is_gaussian(problem)
        code = CODES[similarity.kernel.name]
        most = MOST_BEFORE_PRODUCTS[vector_registers()][narrow_type(problem).itemsize]
        few = d <= MOST_FOR_FUSED and not (
            code == GAUSSIAN and d > most and Products.can_do(problem) and Products.is_precise(problem)
        )
        possible = radial and problem.attn_mask is None and code in fused.KERNELS
        return possible and (few or code not in products.KERNELS)

    @cached_property
    def by_differences(self) -> FusedPairs:
        """The loops for queries that products are not precise enough for."""
        return FusedPairs(self.problem, products=False)

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the state of one block, and which of its queries may have lost digits."""
        all_keys, own, offset = self.keys, self.own[queries] - keys.start, self.offset[queries]
        m, n, padding = len(own), keys.stop - keys.start, -len(own) % self.rows  # rows of zeros, at which nobody looks
        denominator, numerator = np.zeros(m + padding), np.zeros((m + padding, len(all_keys.value)))
        self.loop(
            *(_padded(x, padding) for x in (self.query[queries], offset)),
            *(read_only(x[..., keys]) for x in (all_keys.key, all_keys.square, all_keys.value, all_keys.weight)),
            read_only(self.place),
            _padded(own, padding, -1),
            _padded(self.own_weight[queries], padding),
            read_only(all_keys.scale),
            denominator,
            numerator,
        )
        denominator, numerator = self.height * denominator[:m], self.height * numerator[:m]
        if all_keys.value_unit.any():
            numerator = np.ldexp(numerator, all_keys.value_unit)
        state, doubtful = PoolState(np.zeros(m), denominator, numerator), denominator <= self.height * self.least * n
        if all_keys.radius is None:
            return state, doubtful
        # Far from the center products may be anything, not a number included.
        imprecise = ~(all_keys.errors(offset, denominator, n) <= ALLOWED[all_keys.key.itemsize])
        rows = np.flatnonzero(imprecise & ~doubtful)
        if rows.size:
            places = np.arange(queries.start, queries.stop) if isinstance(queries, slice) else queries
            part, doubtful[rows] = self.by_differences.sums(places[rows], keys)
            state.put(rows, part)
        return state, doubtful


def _padded(x: NDArray[Any], rows: int, fill: float = 0.0) -> NDArray[Any]:
    """Return an array as loops take it, with rows more."""
    return read_only(np.concatenate([x, np.full((rows, *x.shape[1:]), fill, x.dtype)]) if rows else x)
