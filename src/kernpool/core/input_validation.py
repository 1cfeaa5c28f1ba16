"""Validation of queries, keys, values, weights and masks: float64, contiguous, finite, of matching shapes.

`Problem.from_arrays` reads the arrays it is given. A fitted model queries one set of keys again and again: it reads
them once, as `Keys`, and then pays for the queries alone. `Keys.prepared` keeps what algorithms have built from them,
such as a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool._arrays import Array, Flags, Index, Integers
from kernpool.core.similarity import CARTESIAN, Geometry
from kernpool.data import array_validation, labels_of, order_of_columns
from kernpool.execution import abbreviate, check_flag, warn_caller

FLOAT64: np.dtype[Any] = np.dtype(np.float64)
EPSILON = float(np.finfo(np.float64).eps)

CENTER_ROWS = 1 << 14
PIECE = 1 << 18  # rows
LEAST_TOL = float(np.finfo(np.float64).tiny)  # smaller fractions change no sum, and algorithms take the logarithm


class Rows(NamedTuple):
    """Validated numeric table with the range of each column, its original dtype and its column names.

    Later steps need not check it again.

    Parameters
    ----------
    array : ndarray of shape (n, d)
        float64, contiguous, finite.
    low, high : ndarray of shape (d,)
        The ends of each column.
    dtype : numpy.dtype
        float64, or what a smaller floating-point type came as.
    labels : list or None
        Names of the columns, if it had any.
    """

    array: Array
    low: Array
    high: Array
    dtype: np.dtype[Any]
    labels: list[Any] | None

    def in_order_of(self, labels: Sequence[Any] | None) -> Rows:
        """Return the table with its columns in the order of the given names; unchanged if either has no names."""
        order = order_of_columns(self.labels, labels)
        if order is None:
            return self
        array = np.ascontiguousarray(self.array[:, order])
        return self._replace(array=array, low=self.low[order], high=self.high[order], labels=None)


def read_rows(name: str, given: Any) -> Rows:
    """Validate a table of numbers and return it as `Rows`; `Rows` are returned as they are."""
    if isinstance(given, Rows):
        return given
    rows = checked_rows(name, array_validation.as_real_array(name, given))
    return rows if type(given) is np.ndarray else rows._replace(labels=labels_of(given))


def checked_rows(name: str, read: NDArray[np.floating[Any]]) -> Rows:
    """Return real numbers that `as_real_array` has read as `Rows`, of at least one row and column."""
    if read.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (rows,) or (rows, columns) here, got {read.shape}")
    if read.size == 0:
        raise ValueError(f"{name} is empty, of shape {read.shape}; at least one row and one column are needed")
    array = np.ascontiguousarray(read[:, None] if read.ndim == 1 else read, dtype=np.float64)
    return Rows(array, *column_range(array), read.dtype, None)


def as_tol(tol: float | None, *dtypes: np.dtype[Any]) -> float:
    """Validate the tolerance `tol`, and replace None by the machine epsilon of the common dtype of the inputs."""
    if tol is None:
        if all(dtype is FLOAT64 for dtype in dtypes):  # as nearly always
            return EPSILON
        return float(np.finfo(np.result_type(*dtypes)).eps)
    if not isinstance(tol, (int, float, np.number)) or not 0 <= tol < 1:
        raise ValueError(f"tol must be None or a fraction of the weight in [0, 1), got {abbreviate(tol)}")
    return float(tol)


def check_range(query: Rows, key: Rows, bandwidth: Array) -> None:
    """Raise ValueError if query and key rows are so many bandwidths apart that squared distances overflow."""
    with np.errstate(over="ignore"):
        widest = ((np.maximum(query.high, key.high) - np.minimum(query.low, key.low)) / bandwidth).max()
    if not widest <= array_validation.LARGEST:
        raise ValueError(
            f"bandwidth is too small: query and key are up to {widest:.0e} bandwidths apart, whose square overflows "
            f"(at most {array_validation.LARGEST:g} are supported); use a larger bandwidth or rescale the columns"
        )


def column_range(rows: Array) -> tuple[Array, Array]:
    """Return the minimum and the maximum of each column of a table.

    Examples
    --------
    >>> column_range(np.array([[3.0, 5.0], [1.0, 9.0]]))
    (array([1., 5.]), array([3., 9.]))
    """
    # NumPy reduces row by row: 35 ms for a million short rows, 1 ms if they are joined to rows of some hundred numbers.
    columns = rows.shape[1]
    joined = max(1, 256 // columns)
    if len(rows) < 2 * joined:
        return np.minimum.reduce(rows, axis=0), np.maximum.reduce(rows, axis=0)
    whole = len(rows) - len(rows) % joined
    wide, rest = rows[:whole].reshape(-1, joined * columns), rows[whole:]
    ends = []
    for smallest_or_largest in (np.minimum.reduce, np.maximum.reduce):
        parts = [smallest_or_largest(wide, axis=0).reshape(-1, columns)] if whole else []
        ends.append(smallest_or_largest(np.concatenate([*parts, rest]), axis=0))
    return ends[0], ends[1]


NORMAL_IQR = 1.349  # interquartile range of the standard normal distribution


def column_spread(X: Array, weight: Array | None = None, geometry: Geometry = CARTESIAN) -> Array:
    r"""Measure the spread of every column: the smaller of standard deviation and IQR / 1.349.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows.
    weight : ndarray of shape (n,), optional
        Frequencies of rows.
    geometry : Geometry, optional
        Which columns share a bandwidth; there is one spread for each.

    Returns
    -------
    ndarray of shape (d,)
        The standard deviation alone where the interquartile range is zero, and where several columns share it, whose
        variances add up, so that a rotation changes nothing; 1, with a warning, where a column is
        constant, since a column that does not vary has no influence whatever its bandwidth; that is infinite then.

    Notes
    -----
    Quartiles are those of the weighted empirical distribution, so that a row of weight 3 equals three rows. The smaller
    of the two measures is Silverman's, Density Estimation (1986), equation 3.30: outliers then do not oversmooth.

    Examples
    --------
    >>> import numpy as np
    >>> column_spread(np.array([[0.0], [1.0], [2.0], [3.0], [100.0]])).round(3)
    array([1.483])
    """
    weight = np.ones(len(X)) if weight is None else weight
    total = weight.sum()
    center = weight @ X / total
    variance = weight @ (X - center) ** 2 / (total - 1 if total >= 2 else total)
    quartiles = np.quantile(X, [0.25, 0.75], axis=0, weights=weight, method="inverted_cdf")
    iqr = (quartiles[1] - quartiles[0]) / NORMAL_IQR
    constant = np.ptp(X[weight > 0], axis=0) == 0  # a sum of squares may miss it by rounding
    iqr = np.where(np.array(geometry or 1) == 1, geometry.sums(iqr), 0.0)
    constant = geometry.sums(~constant * 1.0) == 0
    deviation = np.sqrt(geometry.sums(variance))
    spread = np.where(iqr > 0, np.minimum(deviation, iqr), deviation)
    if constant.any():
        warn_caller(
            f"the column(s) of bandwidth {np.flatnonzero(constant).tolist()} do not vary over the training rows: they "
            "have no influence on predictions, and their bandwidth is infinite"
        )
    return np.where(constant, 1.0, spread)


def as_mask(attn_mask: Any, shape: tuple[int, int]) -> tuple[Flags | None, Array | None]:
    """Validate `attn_mask`, and return it as a boolean mask or as a bias of the logits, with None for the other."""
    array_validation.refuse_foreign("attn_mask", attn_mask)
    mask = np.asarray(attn_mask)
    if mask.dtype.kind not in "bf":
        raise TypeError(
            "attn_mask must be boolean (True includes a key) or floating point (added to the logits), "
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


def in_unit(weight: Array) -> tuple[Array, float]:
    """Divide weights by the power of two that brings the largest to between 1 and 2; return weights and power of two.

    Whether a sum of weights underflows is judged against 1; powers of two are exact.
    """
    unit = 2.0 ** np.floor(np.log2(weight.max()))
    return np.ascontiguousarray(weight / unit), float(unit)


def centered(value: Array, weight: Array | None, mask: Flags | None = None) -> tuple[Array, Array]:
    """Return values less their center, and the center: the upper median of each column, zero if no key is included.

    It is that of the included keys, or of an evenly spaced sample of them.
    """
    included = value
    if weight is not None or mask is not None:
        takes_part = np.ones(len(value), dtype=bool) if weight is None else weight > 0
        if mask is not None:
            takes_part &= mask.any(axis=0)
        if not takes_part.all():
            included = value[takes_part]
    center = np.zeros(value.shape[1])
    if len(included):
        # Any robust center will do, and a sample's takes no time; nor does the upper median, which `np.median` takes
        # ten times as long to find in a few values.
        sample = included[:: 1 + len(included) // CENTER_ROWS]
        middle = len(sample) // 2
        center = np.partition(sample, middle, axis=0)[middle]
    less = np.empty(value.shape)
    for start in range(0, len(value), PIECE):  # the first touch of fresh pages is slow, and deaf to Ctrl-C
        rows = slice(start, start + PIECE)
        np.subtract(value[rows], center, out=less[rows])
    return less, center


def as_self_index(exclude_self: bool, self_index: Any, m: int, n: int) -> Integers | None:
    """Validate the index of each query's own key, -1 for no key, and return it; None unless `exclude_self` is True."""
    check_flag("exclude_self", exclude_self)
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
    array_validation.refuse_foreign("self_index", self_index)
    index = np.asarray(self_index)
    if index.dtype.kind not in "iu" or index.shape != (m,):
        raise ValueError(f"self_index must be {m} integers, one per query, got shape {index.shape} of {index.dtype}")
    if index.min() < -1 or index.max() >= n:
        raise ValueError(f"self_index must lie in [-1, {n - 1}], got values from {index.min()} to {index.max()}")
    return index.astype(np.int64)


def places_among(keys: slice | Index, own: Integers, n_keys: int) -> Integers:
    """Convert the index of each query's own key to its position in a subset of the keys; -1 if it is not in it."""
    if isinstance(keys, slice):
        start, stop, _ = keys.indices(n_keys)
        return np.where((own >= start) & (own < stop), own - start, -1)
    place = np.full(n_keys + 1, -1)  # one more, which -1 finds
    place[keys] = np.arange(len(keys))
    return place[own]


Prepared = dict[str, tuple[tuple[Any, ...], Any]]  # by name: what an entry was computed from, and the entry


@dataclass(frozen=True)
class Keys:
    """Validated keys, centered values and key weights, prepared once and used for many sets of queries.

    Parameters
    ----------
    rows : Rows
        The keys.
    value : ndarray of shape (n, c)
        Values less `center`.
    center : ndarray of shape (c,)
        A median of the values of included keys.
    weight : ndarray of shape (n,) or None
        Frequencies in units of `unit`.
    unit : float
        A power of two.
    dtypes : tuple
        Of the values and of the weights, as they came.
    prepared : dict
        Cache of what algorithms compute from the keys, as of `Problem.prepare`.
    """

    rows: Rows
    value: Array
    center: Array
    weight: Array | None
    unit: float
    dtypes: tuple[np.dtype[Any], ...]
    prepared: Prepared = field(default_factory=dict, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"prepared": {}}  # its entries are computed again when needed

    @classmethod
    def read(
        cls,
        key: ArrayLike | Rows,
        value: ArrayLike | Rows,
        key_weight: ArrayLike | None = None,
        mask: Flags | None = None,
    ) -> Keys:
        """Validate keys, values and key weights without batch dimensions, and return them as `Keys`.

        Examples
        --------
        >>> keys = Keys.read([0.0, 1.0, 5.0], [10.0, 11.0, 12.0])
        >>> keys.center, keys.value.ravel()
        (array([11.]), array([-1.,  0.,  1.]))
        """
        rows, values = read_rows("key", key), read_rows("value", value)
        n, table = len(rows.array), values.array
        if n != len(table):
            raise ValueError(f"key has {n} rows and value has {len(table)}; each key needs its value")
        weight, unit = (None, 1.0) if key_weight is None else in_unit(array_validation.as_key_weight(key_weight, (n,)))
        dtypes = (values.dtype,) if key_weight is None else (values.dtype, np.asarray(key_weight).dtype)
        return cls(rows, *centered(table, weight, mask), weight, unit, dtypes)
