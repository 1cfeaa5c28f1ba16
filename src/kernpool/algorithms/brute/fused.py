"""Set-up of the fused loops, which compute distance, kernel and sums in one pass: arrays, scaling, precision.

Fused loops compute distance, kernel and sums of a pair in registers. `FusedPairs` serves weighted means in any number
of columns. `FusedMoments` serves local linear fits and gradients of weighted means, in one to three columns, of one
value column, computed in float64. `fused_loop` chooses between them.

Squared distances are sums of squared differences. Inner products about a center, one multiply-add for each column in
place of two or three, gained 1.4 times at most, and lose digits where keys are spread over many bandwidths.

The first functions serve all brute-force loops: array layout, float width, a bound of the distances, and the
thresholds below which sums may have lost digits.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from kernpool._arrays import AnyArray, Array, Flags, Index, Integers
from kernpool.algorithms.brute.loops import fused_local_linear, fused_means
from kernpool.algorithms.brute.loops.tiles import UNDERFLOW_OF_MOMENTS
from kernpool.algorithms.loops.kernel_weights import CODES
from kernpool.core import FLOAT64, PoolState, Problem
from kernpool.execution.compilation import vector_registers

# Sums of weights per key below which digits may be lost: to underflow, or at the edge of a compact kernel.
UNDERFLOW, UNDERFLOW_32, LOST_ON_EDGE = 1e-280, 1e-30, 1e-10


def read_only(array: AnyArray) -> AnyArray:
    """Return a contiguous, read-only view of an array, or of a copy where it is not contiguous."""
    # Both properties are part of the type in Numba, and every combination of types is compiled separately: six
    # compilations of two seconds each were seen.
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def is_near_zero(problem: Problem) -> bool:
    """Return whether all coordinates are below 1e15 bandwidths, as arithmetic in float32 needs."""
    low, high = problem.box
    return bool(max(high.max(), -low.min()) < 1e15 * problem.similarity.bandwidth.min())


def transposed(problem: Problem) -> tuple[Array, Array]:
    """Return keys and values transposed to (columns, keys), cached with the problem if it has a cache."""
    return problem.prepare(
        "transposed",
        (problem.key, problem.value),
        lambda: (np.ascontiguousarray(problem.key.T), np.ascontiguousarray(problem.value.T)),
    )


NO_WEIGHTS = np.empty(0)


class FusedMoments:
    """Moment sums of local linear fits, and gradients of weighted means, by fused loops over the same arrays."""

    def __init__(self, problem: Problem) -> None:
        self.problem, bandwidth = problem, problem.similarity.bandwidth
        self.key, (self.value,) = transposed(problem)
        self.weight = NO_WEIGHTS if problem.key_weight is None else problem.key_weight
        self.own, self.own_weight = problem.own
        self.place, self.scale = np.arange(fused_local_linear.TILE, dtype=float), 1.0 / bandwidth
        code = CODES[problem.similarity.kernel.profile_name]
        self.height = fused_means.height(code)
        low, high = problem.box
        farthest = float(np.sum(((high - low) * fused_means.scales(code, bandwidth)) ** 2))
        self.bounded = int(fused_means.is_bounded(code, farthest, self.key.dtype))
        # What loops are compiled for, whichever sums they make.
        weighted, own = int(problem.key_weight is not None), int(problem.self_index is not None)
        self.kind = code, len(self.key), weighted, own, self.bounded

    def sums(self, queries: slice | Index, keys: slice) -> tuple[PoolState, Flags]:
        """Return the kernel sums of some queries over a slice of keys, and flags of imprecise queries."""
        own = self.own[queries] - keys.start
        m = len(own)
        denominator, numerator = np.zeros(m), np.zeros((m, self.problem.layout.width))
        loop = fused_local_linear.specialise(*self.kind)
        loop(
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

    def add(
        self, queries: slice, keys: slice, inverse: Array, intercept: Array, slopes: Array, sums: dict[str, Array]
    ) -> None:
        """Add what a slice of queries and a slice of keys contribute to the gradients of weighted means, in place.

        Parameters
        ----------
        queries, keys : slice
            Which block.
        inverse : ndarray of shape (m,)
            One over the denominators, in units of one; zero for queries to be excluded.
        intercept, slopes : ndarray of shape (m, 1)
            Pooled values less the center of the values, and cotangents.
        sums : dict
            ``query``, ``log_bandwidth``, ``key`` and ``value``, to which is added; an empty array is not wanted.
        """
        per_key = int(sums["key"].size > 0 or sums["value"].size > 0)
        loop = fused_local_linear.specialise_gradients(*self.kind, per_key)
        loop(
            read_only(self.problem.query[queries]),
            read_only(self.key[:, keys]),
            read_only(self.value[keys]),
            read_only(self.weight[keys]),
            read_only(self.place),
            read_only(self.own[queries] - keys.start),
            read_only(self.own_weight[queries]),
            read_only(self.scale),
            read_only(self.height * inverse),
            read_only(intercept[:, 0]),
            read_only(slopes[:, 0]),
            *(sums[name] for name in ("query", "log_bandwidth", "key", "value")),
        )


def _in_units(problem: Problem, unit: Integers, dtype: np.dtype[Any]) -> tuple[AnyArray, ...]:
    """Return keys in units of ``2**unit``, values times key weights, key weights, and exponents of units of values."""
    # Keys and values are transposed; weights are empty if keys have none. All units are one in float64.
    key, value, weight = problem.key, problem.value, problem.key_weight
    value_unit = np.zeros(value.shape[1], dtype=int)
    if dtype == np.float32:
        value_unit = fused_means.exponent_of(np.abs(value).max(axis=0))
        key, value = np.ldexp(key, -unit), np.ldexp(value, -value_unit)
    value = value if weight is None else value * weight[:, None]
    return (
        np.ascontiguousarray(key.T, dtype=dtype),
        np.ascontiguousarray(value.T, dtype=dtype),
        np.empty(0, dtype) if weight is None else weight.astype(dtype),
        value_unit,
    )


class FusedPairs:
    """Weighted means of a problem by a fused loop: the compiled loop, and its arrays in float32 or float64."""

    def __init__(self, problem: Problem) -> None:
        similarity, columns = problem.similarity, problem.key.shape[1]
        bandwidth, code = similarity.bandwidth, CODES[similarity.kernel.profile_name]
        is_compact = similarity.kernel.is_compact
        narrow = problem.dtype == np.float32 and not is_compact and is_near_zero(problem)
        dtype = problem.dtype if narrow else FLOAT64
        # float32 has a short range: coordinates and values come near 1 by powers of two, which is exact.
        unit = fused_means.exponent_of(bandwidth) if narrow else np.zeros(columns, dtype=int)
        scale = fused_means.scales(code, np.ldexp(bandwidth, -unit))
        # Equal bandwidths multiply a sum of squares once, if their squares are in range.
        even = columns > 1 and bool(np.all(scale == scale[0])) and 1e-100 < scale[0] < 1e100
        self.scale = (np.where(np.arange(columns) == 0, scale * scale, 1.0) if even else scale).astype(dtype)
        of = (problem.key, problem.value, problem.key_weight, unit, dtype)
        arrays = problem.prepare("fused", of, partial(_in_units, problem, unit, dtype))
        self.key, self.value, self.weight, self.value_unit = arrays
        self.place = np.arange(fused_means.TILE, dtype=dtype)
        self.height = fused_means.height(code)
        # Sums up to this times the number of keys are done again: tails have underflowed, or the edge decides.
        self.least = LOST_ON_EDGE if is_compact else UNDERFLOW_32 if narrow else UNDERFLOW
        low, high = problem.box
        farthest = float(np.sum(((high - low) * fused_means.scales(code, bandwidth)) ** 2))
        later = (columns - 1) // fused_means.AT_ONCE  # batches of columns that go before the exponential
        # Seven columns of four queries are more numbers than there are registers; LLVM then unrolls the loop twice, and
        # keeps most of them on the stack: 8 columns have 3.7e9 pairs per second in float32, with two queries 4.5e9.
        # With 16 registers one query is faster than two in one and two columns, by a sixth, if values have one.
        if vector_registers() >= 32:
            self.rows = 4 if columns <= 6 or later else 2
        else:
            self.rows = 1 if columns <= 2 and problem.value.shape[1] == 1 else 2
        # Loops take `rows` queries at once, so rows of zeros, without own keys, follow the last one.
        own, own_weight = problem.own
        query = np.ldexp(problem.query, -unit).astype(dtype, copy=False)
        self.query = np.concatenate([query, np.zeros((self.rows - 1, columns), dtype)])
        self.own = np.concatenate([own, np.full(self.rows - 1, -1)])
        self.own_weight = np.concatenate([own_weight, np.zeros(self.rows - 1)])
        self.loop = fused_means.specialise(
            code,
            columns - fused_means.AT_ONCE * later,
            int(later > 0),
            8 * dtype.itemsize,
            int(even),
            int(problem.key_weight is not None),
            int(problem.self_index is not None),
            int(problem.value.shape[1] == 1),
            int(fused_means.is_bounded(code, farthest, dtype)),
            self.rows,
        )

    def sums(self, queries: slice, keys: slice) -> tuple[PoolState, Flags]:
        """Return the kernel sums of a slice of queries over a slice of keys, and flags of imprecise queries."""
        m, n = queries.stop - queries.start, keys.stop - keys.start
        size = -(-m // self.rows) * self.rows  # the last sums may be of rows that follow, and are not used
        asked = slice(queries.start, queries.start + size)
        denominator, numerator = np.zeros(size), np.zeros((size, len(self.value)))
        self.loop(
            read_only(self.query[asked]),
            read_only(self.key[:, keys]),
            read_only(self.value[:, keys]),
            read_only(self.weight[keys]),
            read_only(self.place),
            read_only(self.own[asked] - keys.start),
            read_only(self.own_weight[asked]),
            read_only(self.scale),
            denominator,
            numerator,
        )
        denominator, numerator = self.height * denominator[:m], self.height * numerator[:m]
        if self.value_unit.any():
            numerator = np.ldexp(numerator, self.value_unit)
        return PoolState(np.zeros(m), denominator, numerator), denominator <= self.height * self.least * n


def fused_loop(problem: Problem) -> FusedPairs | FusedMoments | None:
    """Return the fused loop for the kernel sums of a problem; None if there is none, as for windows that differ."""
    similarity, d = problem.similarity, problem.key.shape[1]
    radial = similarity.kernel.composition == "radial"
    if not (radial and similarity.is_uniform and problem.attn_mask is None):
        return None
    code = CODES[similarity.kernel.profile_name]
    if not problem.degree:
        return FusedPairs(problem) if code in fused_means.KERNELS else None
    narrow = problem.degree == 1 and problem.value.shape[1] == 1 and d <= fused_local_linear.COLUMNS
    return FusedMoments(problem) if narrow and code in fused_local_linear.KERNELS else None
