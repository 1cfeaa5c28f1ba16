"""Set-up of the fused loops, which compute distance, kernel and sums in one pass: arrays, scaling, precision.

Fused loops compute distance, kernel and sums of a pair in registers. `FusedPairs` serves weighted means of up to some
thirty columns, with the Laplace kernel of any number. `FusedMoments` (local linear fits) and `FusedGradients`
(gradients of weighted means) are for one to three columns, one value column, computed in float64.

`FusedKeys` holds keys for differences, or for products about a center. With scaled coordinates x of a query and y of
a key, ``|x|^2 + |y|^2 - 2 x.y`` takes one fused multiply-add per column and pair, where differences take two or
three. The rounding error of products grows with the squared radii, so they are for columns whose spread is not large
compared with the bandwidth. The error is checked for every query, and queries that fail are computed again from
differences.

The first functions serve all brute-force loops: array layout, float width, a bound of the distances, and the
thresholds below which sums may have lost digits.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.loops import fused_local_linear, fused_means, matrix_products
from kernpool.algorithms.brute.loops.tiles import UNDERFLOW_OF_MOMENTS
from kernpool.algorithms.loops.kernel_weights import CODES, GAUSSIAN, LN_2
from kernpool.core import PoolState, Problem
from kernpool.execution.compilation import vector_registers
from kernpool.kernels.registry import Gaussian

# Sums of weights per key below which digits may be lost: to underflow, or at the edge of a compact kernel.
UNDERFLOW, UNDERFLOW_32, LOST_ON_EDGE = 1e-280, 1e-30, 1e-10


def is_gaussian(problem: Problem) -> bool:
    """Return whether the kernel is Gaussian, so that its radial and product forms over columns agree."""
    return isinstance(problem.similarity.kernel.form, Gaussian)


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


def can_multiply(problem: Problem) -> bool:
    """Return whether matrix products, in as many columns as they need to be faster, support a problem."""
    radial = problem.similarity.kernel.composition == "radial"
    return radial and CODES[problem.similarity.kernel.profile_name] in matrix_products.KERNELS


def products_are_precise(problem: Problem) -> bool:
    """Return whether matrix products are precise for most queries, judging by the spread of the keys."""
    scale = fused_means.scales(GAUSSIAN, problem.similarity.bandwidth)
    squares = np.sum(((problem.key - problem.key.mean(axis=0)) * scale) ** 2, axis=1)
    dtype = narrow_type(problem)
    return bool(0.5 * LN_2 * float(np.finfo(dtype).eps) * squares.max() <= (1e-6 if dtype == np.float32 else 5e-13))


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


FEWEST_FOR_PRODUCTS = {4: 4, 8: 3}  # columns from which on products are faster (measured), by bytes of a number
MOST_DONE_AGAIN = 0.1  # fraction of queries that products may leave to differences
SAMPLE = 512  # queries that are checked beforehand
ALLOWED = {4: 1e-6, 8: 5e-13}  # half of the guaranteed accuracy, by bytes of a number


class FusedKeys(NamedTuple):
    """Keys, values and weights as the fused loops need them: transposed, in float32 or float64."""

    way: int  # how exponents are made, see `kernpool.algorithms.brute.loops.fused_means`
    key: NDArray[Any]  # coordinates: in powers of two near the bandwidth, or centered and scaled
    square: NDArray[Any]  # squared norms of centered keys
    value: NDArray[Any]  # values times weights, in units of ``2**value_unit``
    weight: NDArray[Any]  # weights of keys, if they have any
    scale: NDArray[Any]  # multiplier of differences
    unit: NDArray[np.int64]  # powers of two, of coordinates and of values
    value_unit: NDArray[np.int64]
    center: Array  # A query q becomes ``x = (q - center) * multiplier``
    multiplier: Array
    radius: float | None = None  # largest norm of a centered key; None for differences

    @classmethod
    def of(cls, problem: Problem, dtype: np.dtype[Any], *, products: bool = True) -> FusedKeys:
        """Build `FusedKeys` for squared distances from inner products, if fast and precise, else from differences.

        By products if these are allowed, faster, and precise for most queries.
        """
        (m, d), n = problem.query.shape, len(problem.key)
        if not (products and d >= FEWEST_FOR_PRODUCTS[dtype.itemsize] and is_gaussian(problem)):
            return _for_differences(problem, dtype)
        of = (problem.key, problem.value, problem.key_weight, problem.similarity.bandwidth, dtype)
        keys = problem.prepare("fused products", of, partial(_for_products, problem, dtype))
        _, offset = keys.queries(problem.query[:: 1 + m // SAMPLE])
        doubtful = keys.errors(offset, 1.0, n) > ALLOWED[dtype.itemsize]
        return keys if doubtful.mean() <= MOST_DONE_AGAIN else _for_differences(problem, dtype)

    def queries(self, query: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return scaled queries, and the squared norm of each (zero if distances come from differences)."""
        # For products, queries are centered, and multiplied by -2 after their norms are taken. For differences, they
        # are only scaled by powers of two, if at all.
        dtype = self.key.dtype
        if self.radius is None:
            moved = np.ldexp(query, -self.unit) if self.unit.any() else query
            return moved.astype(dtype, copy=False), np.zeros(len(query), dtype)
        return _centered(query, self.center, self.multiplier, -2.0, dtype)

    def errors(self, offset: NDArray[Any], denominator: Array | float, keys: int) -> Array:
        """Return error bounds of pooled values, relative to the values' range, for distances from inner products."""
        # An exponent s = |x - y|^2 in units of ln 2 is off by a quarter of an epsilon times (|x| + |y|)^2. It moves a
        # mean by its size times the mean absolute deviation of the values, at most half of their range. And |y| is at
        # most |x| + sqrt(s), where the weighted mean of s is at most log2(keys) - log2(denominator), by the entropy of
        # the weights: the better bound where a few keys are far away.
        assert self.radius is not None
        x = np.sqrt(offset.astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):  # far from the center sums of weights may be anything
            mean_exponent = np.maximum(1.0 + np.log2(keys) - np.log2(denominator), 0.0)  # weights are below 2
            squares = np.minimum(0.5 * (x + self.radius) ** 2, (2.0 * x + np.sqrt(mean_exponent)) ** 2)
        return np.asarray(0.25 * LN_2 * float(np.finfo(self.key.dtype).eps) * squares)


def _for_products(problem: Problem, dtype: np.dtype[Any]) -> FusedKeys:
    center, multiplier = problem.key.mean(axis=0), fused_means.scales(GAUSSIAN, problem.similarity.bandwidth)
    key, square = _centered(problem.key, center, multiplier, 1.0, dtype)
    value, weight, value_unit = _values(problem, dtype)
    return FusedKeys(
        fused_means.PRODUCTS, np.ascontiguousarray(key.T), square, value, weight, multiplier.astype(dtype),
        np.zeros(len(center), dtype=int), value_unit, center, multiplier, float(np.sqrt(np.max(square))),
    )  # fmt: skip


def _centered(
    rows: Array, center: Array, multiplier: Array, factor: float, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``factor * (rows - center) * multiplier``, and the squared norm of each of its rows without `factor`."""
    out, square = np.empty(rows.shape, dtype), np.empty(len(rows), dtype)
    fused_means.center_rows(read_only(rows), read_only(center), read_only(multiplier), dtype.type(factor), out, square)
    return out, square


def _for_differences(problem: Problem, dtype: np.dtype[Any]) -> FusedKeys:
    bandwidth, code = problem.similarity.bandwidth, CODES[problem.similarity.kernel.profile_name]
    # float32 has a short range: coordinates and values come near 1 by powers of two, which is exact.
    unit = fused_means.exponent_of(bandwidth) if dtype == np.float32 else np.zeros(len(bandwidth), dtype=int)
    scale = fused_means.scales(code, np.ldexp(bandwidth, -unit))
    # Equal bandwidths multiply a sum of squares once, if their squares are in range.
    even = len(scale) > 1 and bool(np.all(scale == scale[0])) and 1e-100 < scale[0] < 1e100
    scale = (np.where(np.arange(len(scale)) == 0, scale * scale, 1.0) if even else scale).astype(dtype)
    of = (problem.key, problem.value, problem.key_weight, unit, dtype)
    key, value, weight, value_unit = problem.prepare("fused", of, partial(_in_units, problem, unit, dtype))
    way, none = fused_means.EVEN if even else fused_means.DIFFERENCES, np.empty(0)
    return FusedKeys(way, key, none.astype(dtype), value, weight, scale, unit, value_unit, none, none)


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


# Columns up to which fused loops are faster than staged tiles or products that are done again (measured), and than
# products that are precise at once, by registers and bytes of a number: at 20 columns with AVX-512 1.17e9 pairs per
# second against 1.03e9 in float64, 2.2e9 against 1.8e9 in float32; at 24 .89e9 and .95e9, and 1.84e9 and 1.64e9.
MOST_FOR_FUSED = 32
MOST_BEFORE_PRODUCTS = {32: {8: 20, 4: 32}, 16: {8: 15, 4: 15}}


class FusedPairs:
    """Weighted means of a problem by a fused loop: the compiled loop, and its arrays in float32 or float64."""

    def __init__(self, problem: Problem, *, products: bool = True) -> None:
        self.problem, code = problem, CODES[problem.similarity.kernel.profile_name]
        is_compact, d = problem.similarity.kernel.is_compact, problem.key.shape[1]
        dtype = np.dtype(np.float64) if is_compact else narrow_type(problem)
        self.keys = FusedKeys.of(problem, dtype, products=products)
        self.query, self.offset = self.keys.queries(problem.query)
        self.own, self.own_weight = problem.own
        self.place = np.arange(fused_means.TILE, dtype=dtype)
        self.height = fused_means.height(code)
        # Sums up to this times the number of keys are done again: tails have underflowed, or the edge decides.
        self.least = LOST_ON_EDGE if is_compact else UNDERFLOW_32 if dtype == np.float32 else UNDERFLOW
        if self.keys.radius is None:
            farthest = farthest_square(problem, fused_means.scales(code, problem.similarity.bandwidth))
        else:
            farthest = float(np.sqrt(self.offset.max()) + self.keys.radius) ** 2
        later = (d - 1) // fused_means.AT_ONCE  # groups of columns that go before the exponential
        # Seven columns of four queries are more numbers than there are registers; LLVM then unrolls the loop twice, and
        # keeps most of them on the stack: 8 columns have 3.7e9 pairs per second in float32, with two queries 4.5e9.
        # With 16 registers one query is faster than two in one and two columns, by a sixth, if values have one.
        if vector_registers() >= 32:
            self.rows = 4 if d <= 6 or later else 2
        else:
            self.rows = 1 if d <= 2 and problem.value.shape[1] == 1 else 2
        self.loop = fused_means.specialise(
            code,
            d - fused_means.AT_ONCE * later,
            int(later > 0),
            8 * dtype.itemsize,
            self.keys.way,
            int(problem.key_weight is not None),
            int(problem.self_index is not None),
            int(problem.value.shape[1] == 1),
            int(fused_means.is_bounded(code, farthest, dtype)),
            self.rows,
        )

    @staticmethod
    def can_do(problem: Problem) -> bool:
        """Return whether a fused loop supports this problem and is the fastest method for it."""
        similarity, d = problem.similarity, problem.key.shape[1]
        radial = similarity.kernel.composition == "radial"
        code = CODES[similarity.kernel.profile_name]
        most = MOST_BEFORE_PRODUCTS[vector_registers()][narrow_type(problem).itemsize]
        few = d <= MOST_FOR_FUSED and not (
            code == GAUSSIAN and d > most and can_multiply(problem) and products_are_precise(problem)
        )
        possible = radial and problem.attn_mask is None and code in fused_means.KERNELS
        return possible and (few or code not in matrix_products.KERNELS)

    @cached_property
    def by_differences(self) -> FusedPairs:
        """`FusedPairs` with distances from coordinate differences, for queries that inner products make imprecise."""
        return FusedPairs(self.problem, products=False)

    def sums(self, queries: slice | NDArray[np.intp], keys: slice) -> tuple[PoolState, NDArray[np.bool_]]:
        """Return the kernel sums of some queries over a slice of keys, and flags of imprecise queries."""
        all_keys, own, offset = self.keys, self.own[queries] - keys.start, self.offset[queries]
        m, n, padding = len(own), keys.stop - keys.start, -len(own) % self.rows  # rows of zeros, which are not used
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
    """Return a contiguous, read-only array with `rows` rows of the fill value appended."""
    return read_only(np.concatenate([x, np.full((rows, *x.shape[1:]), fill, x.dtype)]) if rows else x)
