"""The bridge from a problem to the compiled loops: contiguous arrays, codes for kernels, empty arrays for None."""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import FEWEST_FOR_PRODUCTS, Gradients
from kernpool.algorithms.brute.loops import fused, products
from kernpool.algorithms.brute.loops import staged as loops
from kernpool.algorithms.brute.loops.products import STEEPEST
from kernpool.algorithms.brute.product_gradients import ProductGradients
from kernpool.algorithms.loops.tiles import CODES, GAUSSIAN, LN_2
from kernpool.core.local_fit import LocalFit, solve
from kernpool.core.problem import Problem
from kernpool.core.reading import column_range
from kernpool.core.state import PoolState
from kernpool.kernels.forms import Gaussian

Array = NDArray[np.float64]
_NONE = np.empty(0)
_NO_TABLE = np.empty((0, 0))
# Columns up to which fused loops are faster than staged tiles or products that are done again (measured); products that
# are precise at once are faster from 16 columns on.
MOST_FOR_FUSED = 32
# Sums of weights per key below which digits may be lost: to underflow, or at the edge of a compact kernel.
UNDERFLOW, UNDERFLOW_32, LOST_ON_EDGE = 1e-280, 1e-30, 1e-10


def _transposed(problem: Problem) -> tuple[Array, Array]:
    return np.ascontiguousarray(problem.key.T), np.ascontiguousarray(problem.value.T)


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


class CompiledBlocks:
    """Blocks of a problem whose kernel is built in."""

    keys_per_call = 1 << 18

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.key, self.value = problem.prepare(
            "transposed", (problem.key, problem.value), partial(_transposed, problem)
        )
        self.own = np.full(len(problem.query), -1) if problem.self_index is None else problem.self_index
        self.own_weight = problem.own_weight
        similarity = problem.similarity
        self.kernel = (
            read_only(similarity.bandwidth),
            CODES[similarity.kernel.name],
            not similarity.kernel.is_compact,
            # For one column and for the Gaussian the compositions agree, and the radial loop is the shorter one.
            similarity.composition == "product" and len(self.key) > 1 and not is_gaussian(problem),
        )
        self.solved: tuple[PoolState, LocalFit] | None = None
        # Sums of offsets need float64, and take longer than the weights.
        self.uses_blas = not problem.degree and not FusedPairs.can_do(problem) and Products.can_do(problem)
        plain = is_gaussian(problem) and problem.attn_mask is None and not problem.degree
        self.gradients_use_blas = plain and Products.can_do(problem)
        # 3 ms of Gaussian, 40 ms of the slowest kernel, as long for many columns: short for Ctrl-C, long for a call
        # from Python, and for the keys that a call of matrix products centers and scales for all of its queries.
        self.pairs_per_call = max(1 << 18, (1 << 22) // max(1, len(self.key) // (32 if self.uses_blas else 8)))

    @cached_property
    def products(self) -> ProductGradients | None:
        """Gradients by matrix products, where they are possible and faster."""
        return ProductGradients(self.problem, narrow_type(self.problem)) if self.gradients_use_blas else None

    @cached_property
    def faster(self) -> list[FusedPairs | Products]:
        """Loops to be tried before the staged tiles; gradients have none."""
        problem = self.problem
        if self.uses_blas:
            narrow = narrow_type(problem) == np.float32 and is_gaussian(problem)
            return [Products(problem, 32), Products(problem, 64)] if narrow else [Products(problem, 64)]
        return [FusedPairs(problem)] if not problem.degree and FusedPairs.can_do(problem) else []

    def _pairs(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[object, ...]:
        problem = self.problem
        mask = np.empty((0, 0), dtype=bool) if problem.attn_mask is None else problem.attn_mask[queries, keys]
        return (
            read_only(problem.query[queries]),
            read_only(self.key[:, keys]),
            read_only(self.value[:, keys]),
            read_only(_NONE if problem.key_weight is None else problem.key_weight[keys]),
            read_only(mask),
            read_only(self.own[queries] - keys.start),
            read_only(self.own_weight[queries]),
            *self.kernel,
        )

    def sum_block(self, queries: slice, keys: slice) -> PoolState:
        """Return the state of one block: the fastest loops first, and what they cannot hold with the next."""
        m = queries.stop - queries.start
        state = PoolState(np.empty(m), np.empty(m), np.empty((m, self.problem.layout.width)))
        rows = np.arange(m)
        for loops_of in (*self.faster, self):
            part, doubtful = loops_of.sums(queries.start + rows if len(rows) < m else queries, keys)
            state.shift[rows], state.denominator[rows] = part.shift, part.denominator
            state.numerator[rows] = part.numerator
            rows = rows[doubtful]
            if not rows.size:
                break
        return state

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the state by staged tiles, of which nothing is doubtful."""
        state = self._staged(queries, keys)
        return state, np.zeros(len(state.shift), dtype=bool)

    def _staged(self, queries: slice | NDArray[np.intp], keys: slice) -> PoolState:
        pairs = self._pairs(queries, keys)
        m = len(self.own[queries])
        state = PoolState(np.empty(m), np.empty(m), np.empty((m, self.problem.layout.width)))
        loops.reduce_block(*pairs, self.problem.degree or None, state.shift, state.denominator, state.numerator)
        return state

    def _fit_of(self, state: PoolState) -> LocalFit:
        """Solve the local fits of all queries once, for all blocks; several threads that do so at once do no harm."""
        solved = self.solved
        if solved is None or solved[0] is not state:
            self.solved = solved = (state, solve(state, self.problem.layout))
        return solved[1]

    def differentiate_block(
        self, queries: slice, keys: slice, state: PoolState, cotangent: Array, wanted: frozenset[str]
    ) -> Gradients:
        """Return the part of the gradients that one block contributes."""
        shift, denominator = state.shift[queries], state.denominator[queries]
        occupied = denominator > 0
        inverse = np.divide(1.0, denominator, where=occupied, out=np.zeros_like(denominator))
        # Loops count in whole powers of two. For states that they made themselves the remainder is exactly zero.
        shift = np.where(occupied, shift, 0.0)
        unit = np.rint(shift / LN_2)
        inverse *= np.exp(unit * LN_2 - shift)
        fit = self._fit_of(state)
        m, n, d, c = len(shift), keys.stop - keys.start, len(self.key), len(self.value)
        shapes = {"query": (m, d), "log_bandwidth": (m, d), "key": (d, n), "value": (c, n)}
        sums = {name: np.zeros(shape) if name in wanted else _NO_TABLE for name, shape in shapes.items()}
        slopes = np.ascontiguousarray(cotangent[queries])
        if self.products is not None and "log_bandwidth" not in wanted:
            # Each query by one way alone: the other passes over queries whose weights are zero.
            moderate = (inverse < 1e30) & np.isfinite(slopes).all(axis=1)  # in float32 it would overflow
            quick = (unit == 0.0) & moderate & self.products.near_enough(queries)
            by_products, inverse = np.where(quick, inverse, 0.0), np.where(quick, 0.0, inverse)
            if by_products.any():
                self.products.add(
                    queries, keys, self.key, self.own[queries] - keys.start, self.own_weight[queries],
                    by_products, fit.intercept[queries], slopes, sums,
                )  # fmt: skip
        if inverse.any():
            loops.pullback_block(
                *self._pairs(queries, keys), unit, inverse,
                fit.intercept[queries], fit.base[queries], fit.slope[queries], fit.tilt[queries],
                slopes, *sums.values(),
            )  # fmt: skip
        return Gradients(
            query=sums["query"], log_bandwidth=sums["log_bandwidth"], key=sums["key"].T, value=sums["value"].T
        )


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


def is_gaussian(problem: Problem) -> bool:
    """Whether the kernel is the one whose two compositions agree."""
    return isinstance(problem.similarity.kernel.form, Gaussian)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array as loops take it: contiguous, and read-only whether or not it was.

    To Numba both are part of the type, and every mix of types is compiled by itself: six of two seconds were seen.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def narrow_type(problem: Problem) -> np.dtype[Any]:
    """Return the float width to compute pairs in: float32 if the arrays came so and are in its range."""
    bandwidth = problem.similarity.bandwidth
    farthest = max((np.abs(x) / bandwidth).max() for x in (problem.query, problem.key))
    return problem.dtype if farthest < 1e15 else np.dtype(np.float64)
