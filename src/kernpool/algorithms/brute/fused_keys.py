"""Keys as fused loops read them, and how queries are made to match: by differences, or by products about a center.

A product about a center, ``|x|^2 + |y|^2 - 2 x.y`` of scaled coordinates x = (q - center) / h, takes one fused
multiply-add per column and pair where differences take two or three. Its error grows with the squared radii, so that it
is for columns that are not widely spread beside their bandwidths, and every query is asked afterwards.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.algorithms.brute.loops import columns, fused
from kernpool.algorithms.brute.precision import is_gaussian, read_only
from kernpool.algorithms.loops.tiles import CODES, GAUSSIAN, LN_2
from kernpool.core.problem import Problem

Array = NDArray[np.float64]

FEWEST_FOR_PRODUCTS = {4: 4, 8: 3}  # columns from which on products are faster (measured), by bytes of a number
MOST_DONE_AGAIN = 0.1  # share of queries that products may leave to differences
SAMPLE = 512  # queries that are asked beforehand
ALLOWED = {4: 1e-6, 8: 5e-13}  # half of what is promised, by bytes of a number


class FusedKeys(NamedTuple):
    """Keys, values and weights of a problem, column by column.

    Parameters
    ----------
    way : int
        How exponents are made, see `kernpool.algorithms.brute.loops.columns`.
    key : ndarray of shape (d, n)
        Coordinates: in powers of two near the bandwidth, or centered and scaled.
    square : ndarray of shape (n,) or (0,)
        Squared norms of centered keys.
    value : ndarray of shape (c, n)
        Values times weights, in units of ``2**value_unit``.
    weight : ndarray of shape (n,) or (0,)
        Weights of keys, if they have any.
    scale : ndarray of shape (d,)
        What loops multiply differences by.
    unit, value_unit : ndarray of int
        Powers of two, of coordinates and of values.
    center, multiplier : ndarray of shape (d,)
        What makes ``x = (q - center) * multiplier`` of a query.
    radius : float or None
        Largest norm of a centered key; None for differences.
    """

    way: int
    key: NDArray[Any]
    square: NDArray[Any]
    value: NDArray[Any]
    weight: NDArray[Any]
    scale: NDArray[Any]
    unit: NDArray[np.int64]
    value_unit: NDArray[np.int64]
    center: Array
    multiplier: Array
    radius: float | None = None

    @classmethod
    def of(cls, problem: Problem, dtype: np.dtype[Any], *, products: bool = True) -> FusedKeys:
        """Return the keys of a problem; those for products only where they are faster and precise for most queries."""
        (m, d), n = problem.query.shape, len(problem.key)
        if not (products and d >= FEWEST_FOR_PRODUCTS[dtype.itemsize] and is_gaussian(problem)):
            return _for_differences(problem, dtype)
        of = (problem.key, problem.value, problem.key_weight, problem.similarity.bandwidth, dtype)
        keys = problem.prepare("fused products", of, partial(_for_products, problem, dtype))
        _, offset = keys.queries(problem.query[:: 1 + m // SAMPLE])
        doubtful = keys.errors(offset, 1.0, n) > ALLOWED[dtype.itemsize]
        return keys if doubtful.mean() <= MOST_DONE_AGAIN else _for_differences(problem, dtype)

    def queries(self, query: Array) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return queries as loops read them, and what their exponents begin with."""
        dtype = self.key.dtype
        if self.radius is None:
            moved = np.ldexp(query, -self.unit) if self.unit.any() else query
            return moved.astype(dtype, copy=False), np.zeros(len(query), dtype)
        return _centered(query, self.center, self.multiplier, -2.0, dtype)

    def errors(self, offset: NDArray[Any], denominator: Array | float, keys: int) -> Array:
        """Return how far products may move pooled values, in units of their range.

        An exponent s = |x - y|^2 in units of ln 2 is off by a quarter of an epsilon times (|x| + |y|)^2. It moves a
        mean by its size times the mean absolute deviation of the values, at most half of their range. And |y| is at
        most |x| + sqrt(s), where the weighted mean of s is at most log2(keys) - log2(denominator), by the entropy of
        the weights: the better bound where a few keys are far away.
        """
        assert self.radius is not None
        x = np.sqrt(offset.astype(np.float64))
        with np.errstate(divide="ignore", invalid="ignore"):  # far from the center sums of weights may be anything
            mean_exponent = np.maximum(1.0 + np.log2(keys) - np.log2(denominator), 0.0)  # weights are below 2
            squares = np.minimum(0.5 * (x + self.radius) ** 2, (2.0 * x + np.sqrt(mean_exponent)) ** 2)
        return np.asarray(0.25 * LN_2 * float(np.finfo(self.key.dtype).eps) * squares)


def _for_products(problem: Problem, dtype: np.dtype[Any]) -> FusedKeys:
    center, multiplier = problem.key.mean(axis=0), fused.scales(GAUSSIAN, problem.similarity.bandwidth)
    key, square = _centered(problem.key, center, multiplier, 1.0, dtype)
    value, weight, value_unit = _values(problem, dtype)
    return FusedKeys(
        columns.PRODUCTS, np.ascontiguousarray(key.T), square, value, weight, multiplier.astype(dtype),
        np.zeros(len(center), dtype=int), value_unit, center, multiplier, float(np.sqrt(np.max(square))),
    )  # fmt: skip


def _centered(
    rows: Array, center: Array, multiplier: Array, factor: float, dtype: np.dtype[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return ``factor * (rows - center) * multiplier``, and the squared norms of that without the factor."""
    out, square = np.empty(rows.shape, dtype), np.empty(len(rows), dtype)
    columns.center_rows(read_only(rows), read_only(center), read_only(multiplier), dtype.type(factor), out, square)
    return out, square


def _for_differences(problem: Problem, dtype: np.dtype[Any]) -> FusedKeys:
    bandwidth, code = problem.similarity.bandwidth, CODES[problem.similarity.kernel.name]
    # float32 has a short range: coordinates and values come near 1 by powers of two, which is exact.
    unit = fused.exponent_of(bandwidth) if dtype == np.float32 else np.zeros(len(bandwidth), dtype=int)
    scale = fused.scales(code, np.ldexp(bandwidth, -unit))
    # Equal bandwidths multiply a sum of squares once, if their squares are in range.
    even = len(scale) > 1 and bool(np.all(scale == scale[0])) and 1e-100 < scale[0] < 1e100
    scale = (np.where(np.arange(len(scale)) == 0, scale * scale, 1.0) if even else scale).astype(dtype)
    of = (problem.key, problem.value, problem.key_weight, unit, dtype)
    key, value, weight, value_unit = problem.prepare("fused", of, partial(_in_units, problem, unit, dtype))
    way, none = columns.EVEN if even else columns.DIFFERENCES, np.empty(0)
    return FusedKeys(way, key, none.astype(dtype), value, weight, scale, unit, value_unit, none, none)


def _in_units(problem: Problem, unit: NDArray[np.int64], dtype: np.dtype[Any]) -> tuple[Any, ...]:
    key = np.ldexp(problem.key, -unit) if unit.any() else problem.key
    return np.ascontiguousarray(key.T, dtype=dtype), *_values(problem, dtype)


def _values(problem: Problem, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Return weighted values, weights, and the unit of the values."""
    value, weight = problem.value, problem.key_weight
    unit = np.zeros(value.shape[1], dtype=int)
    if dtype == np.float32:
        unit = fused.exponent_of(np.abs(value).max(axis=0))
        value = np.ldexp(value, -unit)
    value = np.ascontiguousarray((value if weight is None else value * weight[:, None]).T, dtype=dtype)
    return value, np.empty(0, dtype) if weight is None else weight.astype(dtype), unit
