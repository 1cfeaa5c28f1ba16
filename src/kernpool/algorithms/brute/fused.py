"""Set-up of the fused loops, which compute distance, kernel and sums in one pass: arrays, scaling, precision.

Fused loops compute distance, kernel and sums of a pair in registers. `FusedPairs` serves weighted means in any number
of columns. `FusedMoments` (local linear fits) and `FusedGradients` (gradients of weighted means) are for one to three
columns, one value column, computed in float64.

Squared distances are sums of squared differences. Inner products about a center, one multiply-add for each column in
place of two or three, gained 1.4 times at most, and lose digits where keys are spread over many bandwidths.

The first functions serve all brute-force loops: array layout, float width, a bound of the distances, and the
thresholds below which sums may have lost digits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.loops import fused_local_linear, fused_means
from kernpool.algorithms.brute.loops.tiles import UNDERFLOW_OF_MOMENTS
from kernpool.algorithms.loops.kernel_weights import CODES
from kernpool.core import PoolState, Problem
from kernpool.execution.compilation import vector_registers

# Sums of weights per key below which digits may be lost: to underflow, or at the edge of a compact kernel.
UNDERFLOW, UNDERFLOW_32, LOST_ON_EDGE = 1e-280, 1e-30, 1e-10


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous, read-only view of an array, or of a copy where it is not contiguous."""
    # Both properties are part of the type in Numba, and every combination of types is compiled separately: six
    # compilations of two seconds each were seen.
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def narrow_type(problem: Problem) -> np.dtype[Any]:
    """Return the dtype for pairs: float32 for float32 inputs with coordinates below 1e15 bandwidths, else float64."""
    if problem.dtype == np.float64:
        return problem.dtype
    farthest = max(max(x.max(), -x.min()) for x in problem.ends) / problem.similarity.bandwidth.min()
    return problem.dtype if farthest < 1e15 else np.dtype(np.float64)


def farthest_square(problem: Problem, scale: NDArray[np.float64]) -> float:
    """Return an upper bound on squared scaled distances between queries and keys, from their joint bounding box."""
    query_low, query_high, key_low, key_high = problem.ends
    extent = np.maximum(query_high, key_high) - np.minimum(query_low, key_low)
    return float(np.sum((extent * scale) ** 2))


def transposed(problem: Problem) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return keys and values transposed to (columns, keys), cached with the problem if it has a cache."""

    def arrange() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.ascontiguousarray(problem.key.T), np.ascontiguousarray(problem.value.T)

    return problem.prepare("transposed", (problem.key, problem.value), arrange)


_NONE = np.empty(0)


class FusedMoments:
    """Moment sums that local linear fits need, by a fused loop (distance, kernel and sums in one pass)."""

    def __init__(self, problem: Problem) -> None:
        self.problem, code = problem, CODES[problem.similarity.kernel.profile_name]
        self.key, (self.value,) = transposed(problem)
        self.weight = _NONE if problem.key_weight is None else problem.key_weight
        self.own, self.own_weight = problem.own
        self.place, self.scale = np.arange(fused_local_linear.TILE, dtype=float), 1.0 / problem.similarity.bandwidth
        self.height, bandwidth = fused_means.height(code), problem.similarity.bandwidth
        farthest = farthest_square(problem, fused_means.scales(code, bandwidth))
        self.bounded = int(fused_means.is_bounded(code, farthest, self.key.dtype))
        weighted, own = int(problem.key_weight is not None), int(problem.self_index is not None)
        self.loop = fused_local_linear.specialise(code, len(self.key), weighted, own, self.bounded)

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Return whether a fused loop can compute the moment sums that local linear fits of this problem need."""
        similarity, d = problem.similarity, problem.key.shape[1]
        code = CODES[similarity.kernel.profile_name]
        radial = similarity.kernel.composition == "radial"
        plain = problem.degree == 1 and problem.attn_mask is None and problem.value.shape[1] == 1
        return code in fused_local_linear.KERNELS and radial and plain and d <= fused_local_linear.COLUMNS

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the kernel sums of some queries over a slice of keys, and flags of imprecise queries."""
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


Array = NDArray[np.float64]


class FusedGradients:
    """Gradients of weighted means for keys of one to three columns, by fused loops."""

    # The arrays are those of the local linear sums.

    def __init__(self, problem: Problem) -> None:
        self.problem, self.arrays = problem, FusedMoments(replace(problem, degree=1))

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Return whether fused loops can compute the gradients of this problem."""
        return not problem.degree and FusedMoments.can_do(replace(problem, degree=1))

    def add(
        self, queries: slice, keys: slice, inverse: Array, intercept: Array, slopes: Array, sums: dict[str, Array]
    ) -> None:
        """Add the contribution of a slice of queries and a slice of keys to the gradients, in place.

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
        problem, arrays = self.problem, self.arrays
        loop = fused_local_linear.specialise_gradients(
            CODES[problem.similarity.kernel.profile_name],
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


def _in_units(problem: Problem, unit: NDArray[np.int64], dtype: np.dtype[Any]) -> tuple[Any, ...]:
    key = np.ldexp(problem.key, -unit) if unit.any() else problem.key
    return np.ascontiguousarray(key.T, dtype=dtype), *_values(problem, dtype)


def _values(problem: Problem, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Return values times key weights, key weights, and the exponent of the power of two that divides each column."""
    # Values are transposed; weights are empty if keys have none. Exponents are zero in float64.
    value, weight = problem.value, problem.key_weight
    unit = np.zeros(value.shape[1], dtype=int)
    if dtype == np.float32:
        unit = fused_means.exponent_of(np.abs(value).max(axis=0))
        value = np.ldexp(value, -unit)
    value = np.ascontiguousarray((value if weight is None else value * weight[:, None]).T, dtype=dtype)
    return value, np.empty(0, dtype) if weight is None else weight.astype(dtype), unit


class FusedPairs:
    """Weighted means of a problem by a fused loop: the compiled loop, and its arrays in float32 or float64."""

    def __init__(self, problem: Problem) -> None:
        similarity, columns = problem.similarity, problem.key.shape[1]
        bandwidth, code = similarity.bandwidth, CODES[similarity.kernel.profile_name]
        is_compact = similarity.kernel.is_compact
        dtype = np.dtype(np.float64) if is_compact else narrow_type(problem)
        # float32 has a short range: coordinates and values come near 1 by powers of two, which is exact.
        unit = fused_means.exponent_of(bandwidth) if dtype == np.float32 else np.zeros(columns, dtype=int)
        scale = fused_means.scales(code, np.ldexp(bandwidth, -unit))
        # Equal bandwidths multiply a sum of squares once, if their squares are in range.
        even = columns > 1 and bool(np.all(scale == scale[0])) and 1e-100 < scale[0] < 1e100
        self.scale = (np.where(np.arange(columns) == 0, scale * scale, 1.0) if even else scale).astype(dtype)
        of = (problem.key, problem.value, problem.key_weight, unit, dtype)
        arrays = problem.prepare("fused", of, partial(_in_units, problem, unit, dtype))
        self.key, self.value, self.weight, self.value_unit = arrays
        self.query = np.ldexp(problem.query, -unit).astype(dtype, copy=False)
        self.own, self.own_weight = problem.own
        self.place = np.arange(fused_means.TILE, dtype=dtype)
        self.height = fused_means.height(code)
        # Sums up to this times the number of keys are done again: tails have underflowed, or the edge decides.
        self.least = LOST_ON_EDGE if is_compact else UNDERFLOW_32 if dtype == np.float32 else UNDERFLOW
        farthest = farthest_square(problem, fused_means.scales(code, bandwidth))
        later = (columns - 1) // fused_means.AT_ONCE  # groups of columns that go before the exponential
        # Seven columns of four queries are more numbers than there are registers; LLVM then unrolls the loop twice, and
        # keeps most of them on the stack: 8 columns have 3.7e9 pairs per second in float32, with two queries 4.5e9.
        # With 16 registers one query is faster than two in one and two columns, by a sixth, if values have one.
        if vector_registers() >= 32:
            self.rows = 4 if columns <= 6 or later else 2
        else:
            self.rows = 1 if columns <= 2 and problem.value.shape[1] == 1 else 2
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

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Return whether a fused loop can compute the weighted means of this problem."""
        kernel = problem.similarity.kernel
        is_plain = kernel.composition == "radial" and problem.attn_mask is None and not problem.degree
        return is_plain and CODES[kernel.profile_name] in fused_means.KERNELS

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the kernel sums of some queries over a slice of keys, and flags of imprecise queries."""
        own = self.own[queries] - keys.start
        m, n, padding = len(own), keys.stop - keys.start, -len(own) % self.rows  # rows of zeros, which are not used
        denominator, numerator = np.zeros(m + padding), np.zeros((m + padding, len(self.value)))
        self.loop(
            _padded(self.query[queries], padding),
            read_only(self.key[:, keys]),
            read_only(self.value[:, keys]),
            read_only(self.weight[keys]),
            read_only(self.place),
            _padded(own, padding, -1),
            _padded(self.own_weight[queries], padding),
            read_only(self.scale),
            denominator,
            numerator,
        )
        denominator, numerator = self.height * denominator[:m], self.height * numerator[:m]
        if self.value_unit.any():
            numerator = np.ldexp(numerator, self.value_unit)
        return PoolState(np.zeros(m), denominator, numerator), denominator <= self.height * self.least * n


def _padded(x: NDArray[Any], rows: int, fill: float = 0.0) -> NDArray[Any]:
    """Return a contiguous, read-only array with `rows` rows of the fill value appended."""
    return read_only(np.concatenate([x, np.full((rows, *x.shape[1:]), fill, x.dtype)]) if rows else x)
