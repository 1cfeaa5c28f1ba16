"""Pooling problem: queries, keys, values and similarity, validated once, as every algorithm takes them.

`Problem.from_arrays` is the border. Outside it callers pass any array_like; inside, arrays are float64, finite and of
matching shapes, and no algorithm checks anything again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import AnyArray, Array, Flags, Index, Integers
from kernpool.core import input_validation
from kernpool.core.exclusion import ExcludedPairs, Exclusion
from kernpool.core.input_validation import Keys, Prepared, Rows, column_range, read_rows
from kernpool.core.moments import Layout, check_degree, layout_of
from kernpool.core.pair_factors import Factors
from kernpool.core.similarity import CARTESIAN, Geometry, KernelLogits
from kernpool.core.state import PoolState
from kernpool.data import array_validation, refuse_other_labels
from kernpool.kernels import Kernel, get_kernel

Made = TypeVar("Made")
FLOAT64: np.dtype[Any] = np.dtype(np.float64)
FLOAT64_EPSILON = float(np.finfo(np.float64).eps)
# By degree. An omitted key changes a fit by the square of its distance in bandwidths, or by the fourth power, which
# keys at a hundredth of a bandwidth do not outweigh.
LARGEST_TOL = (np.inf, FLOAT64_EPSILON, FLOAT64_EPSILON**2)


@dataclass(frozen=True)
class Problem:
    """Validated input of a pooling algorithm: queries, keys, values, and the similarity of queries and keys.

    Parameters
    ----------
    query : ndarray of shape (m, d)
        Evaluation points, unscaled: `similarity` divides differences by the bandwidth.
    key : ndarray of shape (n, d)
        Keys, which queries are compared with.
    value : ndarray of shape (n, c)
        Values to pool, minus `value_center`: sums of centered values lose fewer digits.
    value_center : ndarray of shape (c,)
        The subtracted center: a median of the values of included keys, which is robust to padding and outliers; of
        every k-th value where there are many.
    similarity : KernelLogits
        Kernel and bandwidths, with their factors at each query, and columns that are a point on a circle.
    key_weight : ndarray of shape (n,) or None
        Frequencies of keys in units of `weight_unit`, so that the largest is between 1 and 2; None is one each.
    weight_unit : float
        A power of two.
    self_index : ndarray of shape (m,) or None
        The key that is query i's own, of which one unit is excluded; -1 for none.
    attn_mask : ndarray of bool, shape (m, n), or None
        Which keys are included for which query.
    logit_bias : ndarray of shape (m, n) or None
        Added to the logits; minus infinity excludes a key.
    tol : float
        Fraction of a query's total weight that an algorithm may omit, positive: 0 becomes the smallest normal number.
    dtype : numpy.dtype
        float32 if all arrays came as float32 or less, so that float32 arithmetic is precise enough; else float64. The
        arrays themselves are float64 either way, which is exact.
    degree : {0, 1, 2}
        0 to sum values alone, 1 and 2 for the sums of a local linear and a local quadratic fit as well; see
        `kernpool.core.moments`.
    factors : Factors or None
        Of categorical columns, which multiply onto the weights.
    excluded : ExcludedPairs or None
        Which keys are excluded because they are left out together with the query.
    prepared : dict or None
        Cache of what algorithms compute from the keys; None for no cache.
    """

    query: Array
    key: Array
    value: Array
    value_center: Array
    similarity: KernelLogits
    key_weight: Array | None = None
    weight_unit: float = 1.0
    self_index: Integers | None = None
    attn_mask: Flags | None = None
    logit_bias: Array | None = None
    tol: float = float(np.finfo(np.float64).eps)
    dtype: np.dtype[Any] = FLOAT64
    degree: int = 0
    factors: Factors | None = None
    excluded: ExcludedPairs | None = None
    prepared: Prepared | None = field(default=None, repr=False, compare=False)

    @classmethod
    def from_arrays(
        cls,
        query: ArrayLike | Rows,
        key: ArrayLike | Keys,
        value: ArrayLike | Rows | None = None,
        *,
        kernel: str | Kernel = "gaussian",
        bandwidth: ArrayLike = 1.0,
        key_weight: ArrayLike | None = None,
        attn_mask: ArrayLike | None = None,
        exclude_self: bool = False,
        self_index: ArrayLike | None = None,
        tol: float | None = None,
        degree: int = 0,
        factors: Factors | None = None,
        geometry: Geometry = CARTESIAN,
    ) -> Problem:
        """Validate arrays without batch dimensions and build a `Problem`.

        Parameters
        ----------
        query : array_like of shape (m,) or (m, d), or Rows
            Evaluation points.
        key : array_like of shape (n,) or (n, d), or Keys
            What queries are compared with; `Keys` have been read before, and bring values and weights.
        value, kernel, bandwidth, key_weight, attn_mask, exclude_self, self_index, tol, degree
            As in `pool`.
        factors : Factors, optional
            Of categorical columns.
        geometry : Geometry, optional
            Of the columns.

        Returns
        -------
        Problem
            For `choose`.

        Raises
        ------
        TypeError, ValueError
            As in `pool`.
        """
        if type(degree) is not int or degree not in (0, 1):
            check_degree(degree)
        asked = read_rows("query", query)
        rows = key.rows if isinstance(key, Keys) else read_rows("key", key)
        if asked.labels is not None:
            asked = asked.in_order_of(rows.labels)
        refuse_other_labels(query=query, self_index=self_index, attn_mask=attn_mask)
        refuse_other_labels(key=key, value=value, key_weight=key_weight)
        (m, columns), (n, d) = asked.array.shape, rows.array.shape
        if columns != d:
            raise ValueError(
                f"query has {columns} column(s) and key has {d}; they are compared column by column. "
                "A single query of several columns has shape (1, columns)"
            )
        if degree == 2:
            check_degree(degree, d)
        mask, bias = (None, None) if attn_mask is None else input_validation.as_mask(attn_mask, (m, n))
        keys = key if isinstance(key, Keys) else Keys.read(rows, cast("ArrayLike | Rows", value), key_weight, mask)
        kernel = get_kernel(kernel)
        if d == 1 and kernel.radial is not None:
            kernel = kernel.radial  # a product over one column
        similarity = KernelLogits(kernel, array_validation.as_bandwidth(bandwidth, d), geometry=geometry)
        input_validation.check_range(asked, rows, similarity.bandwidth)
        share = max(input_validation.as_tol(tol, asked.dtype, rows.dtype, keys.dtypes[0]), input_validation.LEAST_TOL)
        own = None
        if exclude_self is not False or self_index is not None:
            own = input_validation.as_self_index(exclude_self, self_index, m, n)
        dtypes = asked.dtype, rows.dtype, *keys.dtypes
        narrow = all(dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes)
        problem = cls(
            query=asked.array,
            key=rows.array,
            value=keys.value,
            value_center=keys.center,
            similarity=similarity,
            key_weight=keys.weight,
            weight_unit=keys.unit,
            self_index=own,
            attn_mask=mask,
            logit_bias=bias,
            tol=min(share, LARGEST_TOL[degree]),
            dtype=np.dtype(np.float32 if narrow else np.float64),
            degree=int(degree),
            prepared=keys.prepared,
        )
        return problem if factors is None else problem.with_factors(factors)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and number of keys."""
        return len(self.query), len(self.key)

    @cached_property
    def box(self) -> tuple[Array, Array]:
        """Minimum and maximum of each column, over queries and keys together."""
        low, high = column_range(self.query)
        key_low, key_high = self.prepare("box", (self.key,), lambda: column_range(self.key))
        return np.minimum(low, key_low), np.maximum(high, key_high)

    @cached_property
    def layout(self) -> Layout:
        """Map from the weighted sums that local fits of the problem need to the columns that hold them."""
        return layout_of(self.value.shape[1], self.key.shape[1], self.degree, self.similarity.geometry)

    @property
    def frequency(self) -> Array:
        """Weight of each key, of shape (n,), in units of `weight_unit`; ones without weights."""
        return np.ones(len(self.key)) if self.key_weight is None else self.key_weight

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all keys, in units of `weight_unit`."""
        return float(len(self.key)) if self.key_weight is None else float(self.key_weight.sum())

    @property
    def own(self) -> tuple[Integers, Array]:
        """Each query's own key, -1 for none, and the weight left on it less one observation: ``max(w - 1, 0)``, (m,).

        In units of `weight_unit`; zero for a query without an own key.
        """
        nothing = np.zeros(len(self.query))
        if self.self_index is None:
            return np.full(len(nothing), -1), nothing
        if self.key_weight is None:
            return self.self_index, nothing
        left = np.maximum(self.key_weight[self.self_index] - 1.0 / self.weight_unit, 0.0)
        return self.self_index, np.where(self.self_index >= 0, left, 0.0)

    @property
    def own_weight(self) -> Array:
        """Weight left on each query's own key, as of `own`."""
        return self.own[1]

    @property
    def log_own(self) -> Array:
        """Logarithm of the weight of a key at each query that equals it, of shape (m,)."""
        found = np.full(len(self.query), self.similarity.log_peak)
        if self.factors is not None:
            for table, code in zip(self.factors.log_tables, self.factors.query_code.T, strict=True):
                found += table[code, code]
        return found

    def multiplicity(self) -> Array:
        """Return the frequency of each key for each query, (m, n), after masks, exclusions and leave-one-out."""
        times = np.repeat(self.frequency[None, :], len(self.query), axis=0)
        if self.self_index is not None:
            (rows,) = np.nonzero(self.self_index >= 0)
            times[rows, self.self_index[rows]] = self.own_weight[rows]
        if self.excluded is not None:
            times *= self.excluded.takes_part()
        return times if self.attn_mask is None else times * self.attn_mask

    def block(self, queries: slice | Index, keys: slice | Index = slice(None)) -> Problem:
        """Restrict the problem to a subset of queries and keys, with the center and the unit of weight unchanged.

        So the sums over disjoint blocks of keys merge to those over all keys.
        """

        def pairs(table: AnyArray | None) -> AnyArray | None:
            if table is not None and len(table) > 1 and not table.strides[0]:  # one row for all queries stays one
                return np.broadcast_to(table[0, keys], (len(self.query[queries]), table[0, keys].size))
            return None if table is None else table[:, keys][queries]

        if isinstance(keys, slice) and keys == slice(None):
            part = self  # all keys stay the arrays that things are prepared of
        else:
            weight = None if self.key_weight is None else self.key_weight[keys]
            part = replace(self, key=self.key[keys], value=self.value[keys], key_weight=weight, prepared=None)
        own = self.self_index
        return replace(
            part,
            query=self.query[queries],
            similarity=self.similarity.at(queries),
            self_index=None if own is None else input_validation.places_among(keys, own[queries], len(self.key)),
            attn_mask=pairs(self.attn_mask),
            logit_bias=pairs(self.logit_bias),
            factors=None if self.factors is None else self.factors.block(queries, keys),
            excluded=None if self.excluded is None else self.excluded.block(queries, keys),
        )

    def part(self, queries: slice | Index, keys: slice | Index) -> Problem:
        """Return a subset of queries and keys as an independent problem, with a new center and unit of weight.

        Algorithms rely on both: a value column that is constant has to be zero. States that `restored` has given them
        back to merge as those of blocks do. At least one of the keys has to have a weight.
        """
        block = self.block(queries, keys)
        value, center = input_validation.centered(block.value, block.key_weight, block.attn_mask)
        weight, unit = (None, 1.0) if block.key_weight is None else input_validation.in_unit(block.key_weight)
        return replace(
            block,
            value=value,
            value_center=block.value_center + center,
            key_weight=weight,
            weight_unit=block.weight_unit * unit,
        )

    def without_center(self) -> Problem:
        """Return the problem with a center of zero, so that its centered values count as the original ones.

        Subtracting the center again would lose digits.
        """
        return replace(self, value_center=np.zeros_like(self.value_center))

    def with_factors(self, factors: Factors) -> Problem:
        """Return the problem with categorical kernels multiplied onto the kernel of its numeric columns."""
        return replace(self, factors=factors if factors.tables else None)

    def without_factors(self) -> Problem:
        """Return the problem of the numeric columns alone, without the kernels of categorical columns."""
        return replace(self, factors=None)

    def excluding(self, query_code: Integers, keys: Exclusion) -> Problem:
        """Return the problem without the keys that are left out together with a row of the query's number."""
        return replace(self, excluded=keys.pairs(query_code))

    def beyond(self, queries: Exclusion | None, keys: Exclusion | None) -> Problem:
        """Return the problem of rows that are held out by whole units, without the keys within a gap of them."""
        if queries is None or keys is None or not keys.gap:
            return self
        return self.excluding(queries.code, keys)

    def with_dense_factors(self) -> Problem:
        """Return the problem with its categorical kernels turned into an (m, n) bias of the logits."""
        if self.factors is None:
            return self
        start = np.zeros(self.shape) if self.logit_bias is None else self.logit_bias
        return replace(self, logit_bias=np.asarray(sum(self.factors.logarithms(), start=start)), factors=None)

    def prepare(self, name: str, of: tuple[Any, ...], make: Callable[[], Made]) -> Made:
        """Return what `make` computes from the keys, from a cache if the problem has one.

        An entry is used only for the identical arrays and equal numbers `of` that it was computed from: a problem that
        differs in anything relevant computes its own. Two threads may compute the same entry; either result is used.

        Examples
        --------
        >>> problem = Problem.from_arrays([0.5], [0.0, 1.0], [3.0, 4.0])
        >>> first = problem.prepare("order", (problem.key, 0.5), lambda: np.argsort(problem.key))
        >>> problem.prepare("order", (problem.key, 0.5), lambda: np.argsort(problem.key)) is first
        True
        >>> problem.prepare("order", (problem.key, 2.0), lambda: np.argsort(problem.key)) is first
        False
        """
        if self.prepared is None:
            return make()
        known, made = self.prepared.get(name, ((), None))
        if known and len(known) == len(of) and all(a is b or _are_equal(a, b) for a, b in zip(known, of, strict=True)):
            return cast(Made, made)
        made = make()
        self.prepared[name] = of, made
        return made

    def with_kernel(self, kernel: Kernel, factor: float = 1.0) -> Problem:
        """Return the problem with another kernel, and with the bandwidths multiplied by `factor`."""
        return replace(
            self, similarity=replace(self.similarity, kernel=kernel, bandwidth=factor * self.similarity.bandwidth)
        )

    def restored(self, state: PoolState) -> PoolState:
        """Convert kernel sums of centered values and scaled weights to those of the original values and weights.

        Offsets of local planes are projected as the geometry of the columns asks.
        """
        if np.any(self.value_center):
            state = self.layout.with_center(state, self.value_center)
        geometry = self.similarity.geometry
        if self.degree == 1 and geometry:
            state = geometry.project_planes(self.query, self.layout, state)
        if self.weight_unit == 1.0:
            return state
        return PoolState(state.shift + np.log(self.weight_unit), state.denominator, state.numerator)

    def reduced(self, state: PoolState) -> PoolState:
        """Convert kernel sums of original values and weights to those of centered values and scaled weights.

        The inverse of `restored`, but for offsets, which stay projected.
        """
        if np.any(self.value_center):
            state = self.layout.with_center(state, -self.value_center)
        return PoolState(state.shift - np.log(self.weight_unit), state.denominator, state.numerator)


FEW = 1 << 12  # numbers that are compared by value: bandwidths, units


def _are_equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        small = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and max(a.size, b.size) <= FEW
        return small and np.array_equal(a, b)
    return bool(type(a) is type(b) and a == b)
