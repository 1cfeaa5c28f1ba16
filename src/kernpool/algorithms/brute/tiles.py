"""Blocks of a brute-force sum in compiled code: array set-up, and the choice among the compiled loops.

A problem is passed to loops as contiguous arrays and kernel codes. `CompiledBlocks` sums by a fused loop if there is
one for the problem. Queries that it marks as imprecise go on to the staged tiles, which serve every built-in kernel. An
empty array stands for None. `sum_items` sums many small problems of one shape in one call.
"""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import Array, Flags, Index
from kernpool.algorithms.algorithm import FEWEST_FOR_PRODUCTS, PER_QUERY, Gradients
from kernpool.algorithms.brute.fused import (
    NO_WEIGHTS,
    FusedMoments,
    FusedPairs,
    fused_loop,
    is_near_zero,
    read_only,
    transposed,
)
from kernpool.algorithms.brute.loops import fused_means
from kernpool.algorithms.brute.loops import tiles as loops
from kernpool.algorithms.brute.loops.matrix_products import gradient_block
from kernpool.algorithms.loops.kernel_weights import CODES, GAUSSIAN, LN_2
from kernpool.core import FLOAT64, LocalFit, PoolState, Problem, Stack, solve
from kernpool.execution import Progress, blas_threads, cut
from kernpool.execution.threads import run_passes
from kernpool.kernels import Gaussian

Pieces = Callable[[slice], Iterator[slice]]
_NO_TABLE = np.empty((0, 0))


class ProductGradients:
    """Gradients of Gaussian pooling in many columns, by matrix products (`loops/matrix_products.py`)."""

    # With ``R_ij = w_ij g_i . (v_j - yhat_i)`` the gradient by a query is ``sum_j R_ij (k_j - q_i) / h^2``, and that by
    # a key is its mirror image: a product of R with the keys, less row sums times the query. Coordinates are taken
    # about the center of the block's queries, in bandwidths, so nothing large is subtracted. Queries that are too far
    # from that center for the promised precision are left to the staged tiles.

    def __init__(self, problem: Problem) -> None:
        self.problem, (self.own, self.own_weight) = problem, problem.own
        self.key, _ = transposed(problem)
        self.scale = fused_means.scales(GAUSSIAN, problem.similarity.bandwidth)
        # float32 has a short range: values and slopes come near 1 by powers of two, which is exact.
        narrow = problem.dtype == np.float32 and is_near_zero(problem)
        self.dtype = dtype = problem.dtype if narrow else FLOAT64
        self.value_unit = fused_means.exponent_of(np.abs(problem.value).max(axis=0)) * narrow
        self.value = np.ascontiguousarray(np.ldexp(problem.value, -self.value_unit).T, dtype=dtype)
        self.weight = np.empty(0, dtype) if problem.key_weight is None else problem.key_weight.astype(dtype)
        self.center = problem.key.mean(axis=0)
        self.radius = float(np.sqrt(np.sum(((problem.key - self.center) * self.scale) ** 2, axis=1)).max())

    def near_enough(self, queries: slice) -> Flags:
        """Return flags of queries near enough to the block's center for matrix products to be precise."""
        # Errors of squared distances then move a pooled value by at most 1e-6 (float32) or 5e-13 of the values' range.
        query = self.problem.query[queries]
        center = query.mean(axis=0)
        own = np.sqrt(np.sum(((query - center) * self.scale) ** 2, axis=1))
        apart = float(np.sqrt(np.sum(((self.center - center) * self.scale) ** 2)))
        rounding = 0.25 * float(np.finfo(self.dtype).eps) * (own + self.radius + apart) ** 2
        return np.asarray(0.5 * LN_2 * rounding <= (1e-6 if self.dtype == np.float32 else 5e-13))

    def add(
        self, queries: slice, keys: slice, inverse: Array, intercept: Array, cotangent: Array, sums: dict[str, Array]
    ) -> None:
        """Add what a slice of queries and a slice of keys contribute to the gradients; as `FusedMoments.add`."""
        query = self.problem.query[queries]
        found = {name: np.zeros_like(sums[name]) for name in ("query", "key", "value")}
        # One unit for the products of slopes and values of all columns, since these are added up.
        unit = np.max(self.value_unit + fused_means.exponent_of(np.abs(cotangent).max(axis=0, initial=0.0)))
        unit *= self.dtype == np.float32
        slope_unit = unit - self.value_unit
        gradient_block(
            query,
            self.key[:, keys],
            self.value[:, keys],
            self.weight[keys],
            self.own[queries] - keys.start,
            self.own_weight[queries],
            query.mean(axis=0),
            self.scale,
            inverse,
            np.ldexp(intercept, -self.value_unit).astype(self.dtype),
            np.ldexp(cotangent, -slope_unit).astype(self.dtype),
            found["query"],
            found["key"],
            found["value"],
        )
        scale = np.ldexp(2.0 * LN_2 * self.scale, unit)
        if found["query"].size:
            sums["query"] += found["query"] * scale
        if found["key"].size:
            sums["key"] += found["key"] * scale[:, None]
        if found["value"].size:
            sums["value"] += np.ldexp(found["value"], slope_unit[:, None])


class CompiledBlocks:
    """Kernel sums and gradients of blocks by compiled loops, for a problem with a built-in kernel."""

    keys_per_call = 1 << 18

    def __init__(self, problem: Problem, staged: bool = False) -> None:
        self.problem, columns = problem, problem.key.shape[1]
        self.own, self.own_weight = problem.own
        self.solved: tuple[PoolState, LocalFit] | None = None
        # The loop for the kernel sums that is tried before the staged tiles. Gradients do not use it.
        self.faster = None if staged else fused_loop(problem)
        if self.faster is None:
            self.columns  # noqa: B018  # made by being asked for, before threads start
        similarity = problem.similarity
        plain = similarity.is_uniform and problem.attn_mask is None and not problem.degree
        many = columns >= FEWEST_FOR_PRODUCTS
        self.gradients_use_blas = plain and many and isinstance(similarity.kernel.form, Gaussian)
        # 3 ms of Gaussian, 40 ms of the slowest kernel, as long for many columns: short for Ctrl-C, long for a call
        # from Python. Fused loops are so quick that the calls of two threads hold each other up: .2 of 8 ms for 8000
        # float32 numbers.
        pairs = 1 << 23 if isinstance(self.faster, FusedPairs) else 1 << 22
        self.pairs_per_call = max(1 << 18, pairs // max(1, columns // 8))

    @cached_property
    def columns(self) -> tuple[Array, Array]:
        """Keys and values transposed to (columns, keys), computed on first use."""
        return transposed(self.problem)

    @cached_property
    def gradients(self) -> ProductGradients | FusedMoments | None:
        """The loops for gradients that are tried before the staged tiles: matrix products, or a fused loop."""
        if self.gradients_use_blas:
            return ProductGradients(self.problem)
        loop = None if self.problem.degree else fused_loop(replace(self.problem, degree=1))
        return loop if isinstance(loop, FusedMoments) else None

    def _pairs(self, queries: slice | Index, keys: slice) -> tuple[object, ...]:
        """Return queries, keys, values, weights, windows and the kernel of a block as the staged tiles take them."""
        problem, (key, value) = self.problem, self.columns
        mask = np.empty((0, 0), dtype=bool) if problem.attn_mask is None else problem.attn_mask[queries, keys]
        return (
            read_only(problem.query[queries]),
            read_only(key[:, keys]),
            read_only(value[:, keys]),
            read_only(NO_WEIGHTS if problem.key_weight is None else problem.key_weight[keys]),
            read_only(mask),
            read_only(self.own[queries] - keys.start),
            read_only(self.own_weight[queries]),
            read_only(np.atleast_2d(problem.similarity.widths(queries))),
            *kernel_of(problem),
        )

    def sum_block(self, queries: slice, keys: slice) -> PoolState:
        """Compute a block's kernel sums by the fused loop, then those of imprecise queries by the general loop."""
        if self.faster is None:
            return self.sums(queries, keys)
        state, doubtful = self.faster.sums(queries, keys)
        rows = np.flatnonzero(doubtful)
        if rows.size:
            state.put(rows, self.sums(queries.start + rows, keys))
        return state

    def sums(self, queries: slice | Index, keys: slice) -> PoolState:
        """Return a block's kernel sums by the general loop (staged tiles), which is precise for all queries."""
        pairs, problem = self._pairs(queries, keys), self.problem
        m = len(self.own[queries])
        state = PoolState(np.empty(m), np.empty(m), np.empty((m, problem.layout.width)))
        moments = problem.degree >= 1 or None, problem.degree >= 2 or None  # of planes, of quadratics; never False
        loops.reduce_block(*pairs, *moments, state.shift, state.denominator, state.numerator)
        return state

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
        solved = self.solved
        if solved is None or solved[0] is not state:  # the fits of all queries, once for all blocks
            self.solved = solved = (state, solve(state, self.problem.layout))
        fit = solved[1]
        m, n = len(shift), keys.stop - keys.start
        d, c = self.problem.key.shape[1], self.problem.value.shape[1]
        shapes = {"query": (m, d), "log_bandwidth": (m, d), "key": (d, n), "value": (c, n)}
        sums = {name: np.zeros(shape) if name in wanted else _NO_TABLE for name, shape in shapes.items()}
        slopes = np.ascontiguousarray(cotangent[queries])
        faster = self.gradients
        if isinstance(faster, ProductGradients) and "log_bandwidth" in wanted:
            faster = None
        if faster is not None:
            # Each query by one way alone: the other passes over queries whose weights are zero.
            quick = (unit == 0.0) & np.isfinite(slopes).all(axis=1)
            if isinstance(faster, ProductGradients):
                quick &= (inverse < 1e30) & faster.near_enough(queries)  # in float32 it would overflow
            quickly, inverse = np.where(quick, inverse, 0.0), np.where(quick, 0.0, inverse)
            if quickly.any():
                faster.add(queries, keys, quickly, fit.intercept[queries], slopes, sums)
        if inverse.any():
            loops.pullback_block(
                *self._pairs(queries, keys), unit, inverse,
                fit.intercept[queries], fit.base[queries], fit.slope[queries], fit.tilt[queries],
                slopes, *sums.values(),
            )  # fmt: skip
        return Gradients(
            query=sums["query"], log_bandwidth=sums["log_bandwidth"], key=sums["key"].T, value=sums["value"].T
        )

    def differentiate(
        self,
        problem: Problem,
        orders: tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]],
        state: PoolState,
        cotangent: Array,
        wanted: frozenset[str],
        rows: int,
        pieces: tuple[Pieces, Pieces],
        n_jobs: int,
        progress: Progress | None,
    ) -> Gradients:
        """Return the gradients over pairs that are near each other, of a problem whose rows have been reordered.

        Parameters
        ----------
        problem : Problem
            The problem in its own order.
        orders : (ndarray of int, ndarray of int)
            Which of its queries and keys the queries and keys of the blocks are.
        state, cotangent, wanted, n_jobs, progress
            As of `Algorithm.pullback`, in the order of the blocks.
        rows : int
            Queries, or keys, of a block.
        pieces : (callable, callable)
            The keys near a block of queries, and the queries near a block of keys, as slices.
        """
        (m, n), (query_order, key_order), (keys_of, queries_of) = self.problem.shape, orders, pieces
        per_query, per_key = wanted & PER_QUERY, wanted - PER_QUERY
        places = {name: query_order if name in PER_QUERY else key_order for name in wanted}
        sums = {name: np.zeros_like(getattr(problem, "query" if name in PER_QUERY else name)) for name in wanted}

        def add(names: frozenset[str], queries: slice, keys: slice, own: slice) -> None:
            part = self.differentiate_block(queries, keys, state, cotangent, names)._asdict()
            for name in names:
                sums[name][places[name][own]] += part[name]

        # One pass for sums per query and one for sums per key, so that no two threads share a sum.
        def along_keys(queries: slice) -> Iterator[None]:
            for keys in keys_of(queries):
                add(per_query, queries, keys, queries)
                yield

        def along_queries(keys: slice) -> Iterator[None]:
            for queries in queries_of(keys):
                add(per_key, queries, keys, keys)
                yield

        passes = (along_keys, cut(m if per_query else 0, rows)), (along_queries, cut(n if per_key else 0, rows))
        with blas_threads() if self.gradients_use_blas else nullcontext():
            run_passes(passes, n_jobs, progress)
        return Gradients(**sums)


def kernel_of(problem: Problem) -> tuple[int, bool | None, bool]:
    """Return the kernel code, whether the support is infinite, and whether weights are products."""
    # Infinite support is True or None, never False: what a compact kernel does not do is not compiled for it.
    kernel = problem.similarity.kernel
    return CODES[kernel.profile_name], not kernel.is_compact or None, kernel.composition == "product"


def sum_items(first: Problem, stack: Stack) -> PoolState:
    """Return the kernel sums of a stack of problems of one shape, concatenated along the queries."""
    # `first` is one of the problems. The sums are of centered values: those for all queries of one problem, then those
    # of the next.
    (items, m), width = stack.own.shape, first.layout.width
    shift, denominator, numerator = np.empty((items, m)), np.empty((items, m)), np.empty((items, m, width))
    mask = np.empty((items, 0, 0), dtype=bool)
    arrays = (stack.query, stack.key, stack.value, stack.key_weight, mask, stack.own, stack.own_weight)
    sums = shift, denominator, numerator
    bandwidth = first.similarity.bandwidth[None]
    moments = first.degree >= 1 or None, first.degree >= 2 or None
    arguments: list[Any] = [*map(read_only, (*arrays, bandwidth)), *kernel_of(first), *moments, *sums]
    loops.reduce_stack(*arguments)
    shift += np.log(stack.unit)[:, None]
    return PoolState(shift.ravel(), denominator.ravel(), numerator.reshape(-1, width))
