"""The problem: everything an algorithm is given, checked once, in the form that loops want.

`Problem.from_arrays` is the border. Outside it callers pass what they have; inside, arrays are float64, finite and of
matching shapes, and no algorithm checks anything again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.moments import Layout, check_degree
from kernpool.core.similarity import Composition, KernelSimilarity, check_composition
from kernpool.core.state import PoolState
from kernpool.data import checks
from kernpool.data.columns import labels_of, order_of_columns
from kernpool.kernels import Kernel, get_kernel

Array = NDArray[np.float64]
FLOAT64: np.dtype[Any] = np.dtype(np.float64)

CENTER_ROWS = 1 << 14
PIECE = 1 << 18  # rows
LEAST_TOL = float(np.finfo(np.float64).tiny)  # no sum can tell a smaller share, and algorithms take its logarithm


@dataclass(frozen=True)
class Problem:
    """One set of queries, keys and values, and the similarity between them.

    Parameters
    ----------
    query : ndarray of shape (m, d)
        Where to pool, unscaled: `similarity` divides differences by the bandwidth.
    key : ndarray of shape (n, d)
        What queries are compared with.
    value : ndarray of shape (n, c)
        What is pooled, less `value_center`: sums of centred values lose fewer digits.
    value_center : ndarray of shape (c,)
        What was subtracted: a median of the values that take part, which no padding or outlier can spoil; of every
        k-th value where there are many.
    similarity : KernelSimilarity
        Kernel, bandwidth and composition.
    key_weight : ndarray of shape (n,) or None
        Frequencies of keys in units of `weight_unit`, so that the largest is between 1 and 2; None is one each.
    weight_unit : float
        A power of two.
    self_index : ndarray of shape (m,) or None
        The key that is query i's own, of which one unit is left out; -1 for none.
    attn_mask : ndarray of bool, shape (m, n), or None
        Which keys take part for which query.
    logit_bias : ndarray of shape (m, n) or None
        Added to the logits; minus infinity leaves a key out.
    tol : float
        Share of a query's attention mass that an algorithm may leave out, positive: 0 becomes the smallest number that
        has all of its digits.
    dtype : numpy.dtype
        float32 if all arrays came as float32 or less, so that float32 arithmetic is precise enough; else float64. The
        arrays themselves are float64 either way, which is exact.
    degree : {0, 1}
        0 to sum values alone, 1 for the sums of a local linear fit as well; see `kernpool.core.moments`.
    """

    query: Array
    key: Array
    value: Array
    value_center: Array
    similarity: KernelSimilarity
    key_weight: Array | None = None
    weight_unit: float = 1.0
    self_index: NDArray[np.int64] | None = None
    attn_mask: NDArray[np.bool_] | None = None
    logit_bias: Array | None = None
    tol: float = float(np.finfo(np.float64).eps)
    dtype: np.dtype[Any] = FLOAT64
    degree: int = 0

    @classmethod
    def from_arrays(
        cls,
        query: ArrayLike,
        key: ArrayLike,
        value: ArrayLike,
        *,
        kernel: str | Kernel = "gaussian",
        bandwidth: ArrayLike = 1.0,
        composition: str = "radial",
        key_weight: ArrayLike | None = None,
        attn_mask: ArrayLike | None = None,
        exclude_self: bool = False,
        self_index: ArrayLike | None = None,
        tol: float | None = None,
        degree: int = 0,
    ) -> Problem:
        """Check arrays without batch dimensions and make a problem of them; parameters as in `pool`."""
        check_composition(composition)
        check_degree(degree)
        tol = max(as_tol(tol, query, key, value), LEAST_TOL)
        if degree:  # what is left out counts in proportion to its squared distance
            tol = min(tol, float(np.finfo(np.float64).eps))
        order = order_of_columns(labels_of(query), labels_of(key))
        dtype = _precision(query, key, value, *([] if key_weight is None else [key_weight]))
        query, key, value = _as_matrix("query", query), _as_matrix("key", key), _as_matrix("value", value)
        query = query if order is None else np.ascontiguousarray(query[:, order])
        if query.shape[1] != key.shape[1]:
            raise ValueError(
                f"query has {query.shape[1]} column(s) and key has {key.shape[1]}; they are compared column by column. "
                "A single query of several columns has shape (1, columns)"
            )
        if len(key) != len(value):
            raise ValueError(f"key has {len(key)} rows and value has {len(value)}; each key needs its value")
        m, n = len(query), len(key)
        similarity = KernelSimilarity(
            get_kernel(kernel), checks.as_bandwidth(bandwidth, key.shape[1]), cast(Composition, composition)
        )
        _check_range(query, key, similarity.bandwidth)
        mask, bias = _as_mask(attn_mask, (m, n))
        weight, unit = _as_weight(key_weight, n)
        center = _center(value, weight, mask)
        return cls(
            query=query,
            key=key,
            value=_less(value, center),
            value_center=center,
            similarity=similarity,
            key_weight=weight,
            weight_unit=unit,
            self_index=_as_self_index(exclude_self, self_index, m, n),
            attn_mask=mask,
            logit_bias=bias,
            tol=tol,
            dtype=dtype,
            degree=int(degree),
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of queries and number of keys."""
        return len(self.query), len(self.key)

    @property
    def layout(self) -> Layout:
        """Which columns a numerator has."""
        return Layout(self.value.shape[1], self.key.shape[1], self.degree)

    @property
    def total_weight(self) -> float:
        """Sum of the weights of all keys, in units of `weight_unit`."""
        return float(len(self.key)) if self.key_weight is None else float(self.key_weight.sum())

    @property
    def own_weight(self) -> Array:
        """What is left of each query's own key once one of it is taken away: ``max(w - 1, 0)``, of shape (m,)."""
        if self.self_index is None or self.key_weight is None:
            return np.zeros(len(self.query))
        left = np.maximum(self.key_weight[self.self_index] - 1.0 / self.weight_unit, 0.0)
        return np.where(self.self_index >= 0, left, 0.0)

    def multiplicity(self) -> Array:
        """How often each key counts for each query, of shape (m, n): key weights, less own units, under the mask."""
        weight = np.ones(len(self.key)) if self.key_weight is None else self.key_weight
        times = np.repeat(weight[None, :], len(self.query), axis=0)
        if self.self_index is not None:
            (rows,) = np.nonzero(self.self_index >= 0)
            times[rows, self.self_index[rows]] = self.own_weight[rows]
        return times if self.attn_mask is None else times * self.attn_mask

    def block(self, queries: slice | NDArray[np.intp], keys: slice | NDArray[np.intp] = slice(None)) -> Problem:
        """Return the part with these queries and these keys; the states of parts over all keys merge to the whole."""

        def pairs(table: NDArray[Any] | None) -> NDArray[Any] | None:
            return None if table is None else table[:, keys][queries]

        return replace(
            self,
            query=self.query[queries],
            key=self.key[keys],
            value=self.value[keys],
            key_weight=None if self.key_weight is None else self.key_weight[keys],
            self_index=None
            if self.self_index is None
            else _places_among(keys, self.self_index[queries], self.shape[1]),
            attn_mask=pairs(self.attn_mask),
            logit_bias=pairs(self.logit_bias),
        )

    def part(self, queries: slice | NDArray[np.intp], keys: slice | NDArray[np.intp]) -> Problem:
        """Return these queries and these keys as a problem of its own, with its own centre and unit of weight.

        Algorithms rely on both: a value column that is constant has to be zero. States that `restored` has given them
        back to merge as those of blocks do. At least one of the keys has to have a weight.
        """
        block = self.block(queries, keys)
        center = _center(block.value, block.key_weight, block.attn_mask)
        weight, unit = (None, 1.0) if block.key_weight is None else _in_unit(block.key_weight)
        return replace(
            block,
            value=_less(block.value, center),
            value_center=block.value_center + center,
            key_weight=weight,
            weight_unit=block.weight_unit * unit,
        )

    def without_center(self) -> Problem:
        """Return the same problem of values less their centre: given back and taken away it costs digits of slopes."""
        return replace(self, value_center=np.zeros_like(self.value_center))

    def with_kernel(self, kernel: Kernel, factor: float = 1.0) -> Problem:
        """Return the same problem under another kernel, with the bandwidths multiplied by `factor`."""
        return replace(
            self, similarity=replace(self.similarity, kernel=kernel, bandwidth=factor * self.similarity.bandwidth)
        )

    def restored(self, state: PoolState) -> PoolState:
        """Give a state that an algorithm made its centre and its unit of weight back."""
        numerator = self.layout.with_center(state.denominator, state.numerator, self.value_center)
        shift = state.shift if self.weight_unit == 1.0 else state.shift + np.log(self.weight_unit)
        return PoolState(shift, state.denominator, numerator)

    def reduced(self, state: PoolState) -> PoolState:
        """Undo `restored`."""
        return PoolState(
            state.shift - np.log(self.weight_unit),
            state.denominator,
            self.layout.with_center(state.denominator, state.numerator, -self.value_center),
        )


def _as_matrix(name: str, array: Any) -> Array:
    read = checks.as_real_array(name, array)
    if read.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (rows,) or (rows, columns) here, got {read.shape}")
    if read.size == 0:
        raise ValueError(f"{name} is empty, of shape {read.shape}; at least one row and one column are needed")
    return np.ascontiguousarray(read[:, None] if read.ndim == 1 else read, dtype=np.float64)


def as_tol(tol: float | None, *arrays: Any) -> float:
    """Read a tolerance; None is the machine epsilon of the arrays."""
    if tol is None:
        dtypes = [getattr(array, "dtype", np.float64) for array in arrays]
        dtype = np.result_type(*dtypes) if dtypes else np.dtype(np.float64)
        return float(np.finfo(dtype if dtype.kind == "f" else np.float64).eps)
    if not isinstance(tol, (int, float, np.number)) or not 0 <= tol < 1:
        raise ValueError(f"tol must be None or a share of the weight in [0, 1), got {tol!r}")
    return float(tol)


def _precision(*arrays: Any) -> np.dtype[Any]:
    dtypes = [getattr(array, "dtype", None) for array in arrays]
    narrow = all(isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize <= 4 for dtype in dtypes)
    return np.dtype(np.float32 if narrow else np.float64)


def _check_range(query: Array, key: Array, bandwidth: Array) -> None:
    (query_low, query_high), (key_low, key_high) = column_range(query), column_range(key)
    with np.errstate(over="ignore"):
        widest = ((np.maximum(query_high, key_high) - np.minimum(query_low, key_low)) / bandwidth).max()
    if not widest <= checks.LARGEST:
        raise ValueError(
            f"bandwidth is too small: query and key are up to {widest:.0e} bandwidths apart, whose square overflows "
            f"(at most {checks.LARGEST:g} are supported); use a larger bandwidth or rescale the columns"
        )


def column_range(rows: Array) -> tuple[Array, Array]:
    """Return the smallest and the largest number of each column.

    NumPy reduces row by row, which costs 35 ms for a million short rows; in rows of some hundred numbers it costs one.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        At least one row.

    Returns
    -------
    low, high : ndarray of shape (d,)
        The ends of each column.

    Examples
    --------
    >>> column_range(np.array([[3.0, 5.0], [1.0, 9.0]]))
    (array([1., 5.]), array([3., 9.]))
    """
    columns = rows.shape[1]
    joined = max(1, 256 // columns)
    whole = len(rows) - len(rows) % joined
    wide, rest = rows[:whole].reshape(-1, joined * columns), rows[whole:]
    ends = []
    for reduce in (np.minimum.reduce, np.maximum.reduce):
        parts = [reduce(wide, axis=0).reshape(-1, columns)] if whole else []
        ends.append(reduce(np.concatenate([*parts, rest]), axis=0))
    return ends[0], ends[1]


def _as_mask(attn_mask: Any, shape: tuple[int, int]) -> tuple[NDArray[np.bool_] | None, Array | None]:
    if attn_mask is None:
        return None, None
    checks.refuse_foreign("attn_mask", attn_mask)
    mask = np.asarray(attn_mask)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            "attn_mask must be boolean (True takes part) or floating point (added to the logits), "
            f"got dtype {mask.dtype}"
        )
    if mask.dtype.kind == "f" and not np.all(mask < np.inf):
        raise ValueError("attn_mask holds NaN or plus infinity; a float mask is added to logits, -inf leaves a key out")
    if mask.dtype.kind == "f":  # before it is broadcast: a mask of one row stays one row
        mask = mask.astype(np.float64, copy=False)
    try:
        mask = np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"attn_mask of shape {mask.shape} does not broadcast to (queries, keys) = {shape}") from None
    return (mask, None) if mask.dtype.kind == "b" else (None, mask)


def _as_weight(key_weight: Any, n: int) -> tuple[Array | None, float]:
    if key_weight is None:
        return None, 1.0
    weight = checks.as_key_weight(key_weight, (n,))
    return _in_unit(weight)


def _in_unit(weight: Array) -> tuple[Array, float]:
    # Whether a sum of weights is faint is judged against 1, so the largest weight is brought there, exactly.
    unit = 2.0 ** np.floor(np.log2(weight.max()))
    return np.ascontiguousarray(weight / unit), float(unit)


def _center(value: Array, weight: Array | None, mask: NDArray[np.bool_] | None) -> Array:
    if weight is not None or mask is not None:
        takes_part = np.ones(len(value), dtype=bool) if weight is None else weight > 0
        if mask is not None:
            takes_part &= mask.any(axis=0)
        if not takes_part.all():
            value = value[takes_part]
    # Any robust centre will do, and a sample's takes no time.
    return np.median(value[:: 1 + len(value) // CENTER_ROWS], axis=0) if len(value) else np.zeros(value.shape[1])


def _less(value: Array, center: Array) -> Array:
    """Subtract in pieces: memory that nobody has touched comes slowly, and a single call is deaf to Ctrl-C."""
    less = np.empty(value.shape)
    for start in range(0, len(value), PIECE):
        rows = slice(start, start + PIECE)
        np.subtract(value[rows], center, out=less[rows])
    return less


def _as_self_index(exclude_self: bool, self_index: Any, m: int, n: int) -> NDArray[np.int64] | None:
    if not isinstance(exclude_self, bool | np.bool_):
        raise TypeError(f"exclude_self must be True or False, got {exclude_self!r}")
    if not exclude_self:
        if self_index is not None:
            raise ValueError("self_index says which key to leave out, so it needs exclude_self=True")
        return None
    if self_index is None:
        if m != n:
            raise ValueError(
                f"exclude_self=True takes query i's own key to be key i, but there are {m} queries and {n} keys; "
                "say which with self_index, -1 for none"
            )
        return np.arange(n)
    checks.refuse_foreign("self_index", self_index)
    index = np.asarray(self_index)
    if index.dtype.kind not in "iu" or index.shape != (m,):
        raise ValueError(f"self_index must be {m} integers, one per query, got shape {index.shape} of {index.dtype}")
    if index.min() < -1 or index.max() >= n:
        raise ValueError(f"self_index must lie in [-1, {n - 1}], got values from {index.min()} to {index.max()}")
    return index.astype(np.int64)


def _places_among(keys: slice | NDArray[np.intp], own: NDArray[np.int64], n_keys: int) -> NDArray[np.int64]:
    """Where own keys are among some of the keys, -1 for those that are not."""
    if isinstance(keys, slice):
        start, stop, _ = keys.indices(n_keys)
        return np.where((own >= start) & (own < stop), own - start, -1)
    place = np.full(n_keys + 1, -1)  # one more, which -1 finds
    place[keys] = np.arange(len(keys))
    return place[own]
