"""Blocks of a brute-force sum in compiled code: array set-up, and the choice among the compiled loops.

A problem is passed to loops as contiguous arrays and kernel codes. `CompiledBlocks` tries the fastest loops first
(fused loops or matrix products). Queries that these mark as imprecise go on to the next, at last to the staged tiles,
which serve every built-in kernel. An empty array stands for None. `sum_items` sums many small problems of one shape
in one call.
"""

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.algorithm import FEWEST_FOR_PRODUCTS, Gradients
from kernpool.algorithms.brute.fused import (
    FusedGradients,
    FusedMoments,
    FusedPairs,
    can_multiply,
    is_gaussian,
    narrow_type,
    read_only,
    transposed,
)
from kernpool.algorithms.brute.loops import tiles as loops
from kernpool.algorithms.brute.matrix_products import ProductGradients, Products
from kernpool.algorithms.loops.kernel_weights import CODES, LN_2
from kernpool.core import LocalFit, PoolState, Problem, Stack, solve

Array = NDArray[np.float64]
_NONE = np.empty(0)
_NO_TABLE = np.empty((0, 0))


class CompiledBlocks:
    """Kernel sums and gradients of blocks by compiled loops, for a problem with a built-in kernel."""

    keys_per_call = 1 << 18

    def __init__(self, problem: Problem) -> None:
        self.problem, columns = problem, problem.key.shape[1]
        self.own, self.own_weight = problem.own
        self.solved: tuple[PoolState, LocalFit] | None = None
        # Sums of offsets need float64, and take longer than the weights.
        self.is_plain = problem.similarity.widening is None  # what the faster loops need
        self.is_fused = self.is_plain and not problem.degree and FusedPairs.can_do(problem)
        products = self.is_plain and columns >= FEWEST_FOR_PRODUCTS and can_multiply(problem)
        self.uses_blas = products and not problem.degree and not self.is_fused
        plain = is_gaussian(problem) and problem.attn_mask is None and not problem.degree
        self.gradients_use_blas = plain and products
        # 3 ms of Gaussian, 40 ms of the slowest kernel, as long for many columns: short for Ctrl-C, long for a call
        # from Python, and for the keys that a call of matrix products centers and scales for all of its queries. Fused
        # loops are so quick that the calls of two threads hold each other up: .2 of 8 ms for 8000 float32 numbers.
        pairs = 1 << 23 if self.is_fused else 1 << 22
        self.pairs_per_call = max(1 << 18, pairs // max(1, columns // (32 if self.uses_blas else 8)))

    @cached_property
    def windows(self) -> tuple[Array, tuple[int, bool | None, bool]]:
        """Bandwidths, in one row or one for each query, and the kernel as the general loop takes it."""
        plain = replace(self.problem, similarity=replace(self.problem.similarity, widening=None))
        return read_only(np.atleast_2d(self.problem.similarity.widths)), kernel_of(plain)[1:]

    @cached_property
    def columns(self) -> tuple[Array, Array]:
        """Keys and values transposed to (columns, keys), computed on first use."""
        return transposed(self.problem)

    @cached_property
    def products(self) -> ProductGradients | None:
        """Computation of gradients by matrix products; None if it is impossible or slower."""
        return ProductGradients(self.problem, narrow_type(self.problem)) if self.gradients_use_blas else None

    @cached_property
    def fused_gradients(self) -> FusedGradients | None:
        """Computation of gradients by fused loops; None if they do not support the problem."""
        return FusedGradients(self.problem) if self.is_plain and FusedGradients.can_do(self.problem) else None

    @cached_property
    def faster(self) -> list[FusedPairs | FusedMoments | Products]:
        """Specialised loops for the kernel sums, to be tried in this order before the general loop (staged tiles)."""
        # Gradients do not use them.
        problem = self.problem
        if self.uses_blas:
            narrow = narrow_type(problem) == np.float32 and is_gaussian(problem)
            return [Products(problem, 32), Products(problem, 64)] if narrow else [Products(problem, 64)]
        if problem.degree:
            return [FusedMoments(problem)] if self.is_plain and FusedMoments.can_do(problem) else []
        return [FusedPairs(problem)] if self.is_fused else []

    def prepare(self) -> None:
        """Create the fastest loops with their arrays, before threads start.

        Slower loops, for queries that these leave, compute their arrays on first use.
        """
        if not self.faster:
            self.columns  # noqa: B018  # made by being asked for

    def _pairs(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[object, ...]:
        problem, (key, value), (bandwidth, kernel) = self.problem, self.columns, self.windows
        mask = np.empty((0, 0), dtype=bool) if problem.attn_mask is None else problem.attn_mask[queries, keys]
        return (
            read_only(problem.query[queries]),
            read_only(key[:, keys]),
            read_only(value[:, keys]),
            read_only(_NONE if problem.key_weight is None else problem.key_weight[keys]),
            read_only(mask),
            read_only(self.own[queries] - keys.start),
            read_only(self.own_weight[queries]),
            bandwidth if len(bandwidth) == 1 else read_only(bandwidth[queries]),
            *kernel,
        )

    def sum_block(self, queries: slice, keys: slice) -> PoolState:
        """Compute a block's kernel sums by the fastest loop, then those of imprecise queries by more precise loops."""
        first, *others = (*self.faster, self)
        state, doubtful = first.sums(queries, keys)
        rows = np.flatnonzero(doubtful)
        for loops_of in others:
            if not rows.size:
                break
            part, doubtful = loops_of.sums(queries.start + rows, keys)
            state.put(rows, part)
            rows = rows[doubtful]
        return state

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return a block's kernel sums by the general loop (staged tiles), and flags of imprecise queries: none."""
        # The staged tiles are precise for all queries.
        pairs, problem = self._pairs(queries, keys), self.problem
        m = len(self.own[queries])
        state = PoolState(np.empty(m), np.empty(m), np.empty((m, problem.layout.width)))
        loops.reduce_block(*pairs, *moments_of(problem), state.shift, state.denominator, state.numerator)
        return state, np.zeros(m, dtype=bool)

    def _fit_of(self, state: PoolState) -> LocalFit:
        """Return the local fits of all queries, solved once for all blocks."""
        # Concurrent calls are harmless.
        solved = self.solved
        if solved is None or solved[0] is not state:
            self.solved = solved = (state, solve(state, self.problem.layout))
        return solved[1]

    def differentiate_block(
        self, queries: slice, keys: slice, state: PoolState, cotangent: Array, wanted: frozenset[str]
    ) -> Gradients:
        """Return the contribution of a slice of queries and a slice of keys to the requested gradients."""
        shift, denominator = state.shift[queries], state.denominator[queries]
        occupied = denominator > 0
        inverse = np.divide(1.0, denominator, where=occupied, out=np.zeros_like(denominator))
        # Loops count in whole powers of two. For states that they made themselves the remainder is exactly zero.
        shift = np.where(occupied, shift, 0.0)
        unit = np.rint(shift / LN_2)
        inverse *= np.exp(unit * LN_2 - shift)
        fit = self._fit_of(state)
        m, n = len(shift), keys.stop - keys.start
        d, c = self.problem.key.shape[1], self.problem.value.shape[1]
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
                    queries, keys, self.columns[0], self.own[queries] - keys.start, self.own_weight[queries],
                    by_products, fit.intercept[queries], slopes, sums,
                )  # fmt: skip
        if self.fused_gradients is not None:
            quick = (unit == 0.0) & np.isfinite(slopes).all(axis=1)
            by_fused, inverse = np.where(quick, inverse, 0.0), np.where(quick, 0.0, inverse)
            if by_fused.any():
                self.fused_gradients.add(queries, keys, by_fused, fit.intercept[queries], slopes, sums)
        if inverse.any():
            loops.pullback_block(
                *self._pairs(queries, keys), unit, inverse,
                fit.intercept[queries], fit.base[queries], fit.slope[queries], fit.tilt[queries],
                slopes, *sums.values(),
            )  # fmt: skip
        return Gradients(
            query=sums["query"], log_bandwidth=sums["log_bandwidth"], key=sums["key"].T, value=sums["value"].T
        )


def kernel_of(problem: Problem) -> tuple[Array, int, bool | None, bool]:
    """Return bandwidths, kernel code, whether the support is infinite, and whether weights are products."""
    # Infinite support is True or None, never False.
    similarity = problem.similarity
    assert similarity.widening is None  # what calls these loops says so
    return (
        read_only(similarity.bandwidth),
        CODES[similarity.kernel.profile_name],
        not similarity.kernel.is_compact or None,  # what a compact kernel does not do is not compiled for it
        similarity.kernel.composition == "product",
    )


def moments_of(problem: Problem) -> tuple[bool | None, bool | None]:
    """Return whether local linear and local quadratic moments are needed, each as True or None (never False)."""
    return True if problem.degree >= 1 else None, True if problem.degree >= 2 else None


def sum_items(first: Problem, stack: Stack) -> PoolState:
    """Return the kernel sums of a stack of problems of one shape, concatenated along the queries."""
    # `first` is one of the problems. The sums are of centered values: those for all queries of one problem, then those
    # of the next.
    (items, m), width = stack.own.shape, first.layout.width
    shift, denominator, numerator = np.empty((items, m)), np.empty((items, m)), np.empty((items, m, width))
    mask = np.empty((items, 0, 0), dtype=bool)
    arrays = (stack.query, stack.key, stack.value, stack.key_weight, mask, stack.own, stack.own_weight)
    sums = shift, denominator, numerator
    bandwidth, *kernel = kernel_of(first)
    arguments: list[Any] = [*map(read_only, arrays), bandwidth[None], *kernel, *moments_of(first), *sums]
    loops.reduce_stack(*arguments)
    shift += np.log(stack.unit)[:, None]
    return PoolState(shift.ravel(), denominator.ravel(), numerator.reshape(-1, width))
