"""Partial sums of a weighted mean (`PoolState`), how they merge, and the value where no key has weight.

Read this file first. A weighted mean over keys is a quotient of two sums, ``numerator / denominator``. Sums over
disjoint sets of keys add up. So tiles, chunks on disk and machines of a cluster each make a state, and the states are
merged in any order. The sums are kept relative to ``exp(shift)``, because far from every key all weights underflow:

    PoolState(shift, denominator, numerator)  means  exp(shift) * (denominator, numerator)

The value of a query without any key of positive weight (an empty window) is decided in `fill_empty` and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from kernpool._arrays import Array, Flags, Index
from kernpool.execution import check_choice, warn_caller, warn_of_queries
from kernpool.execution.warnings import queries_in_words

Empty = Literal["nan", "nearest", "mean", "zero", "raise"]
Fill = Callable[[Index], Array]
EMPTIES = get_args(Empty)
EMPTY_VALUES = {"zero": 0.0, "nan": np.nan, "raise": np.nan}  # by policy; with others empty windows get a fit


class EmptyWindowWarning(RuntimeWarning):
    """Warning that some queries have no key of positive weight; their value is NaN, or that of the nearest key."""


def check_empty(empty: str) -> None:
    """Raise ValueError unless `empty` is a known policy for queries without any key of positive weight."""
    check_choice("empty", empty, EMPTIES)


def fill_empty(values: Array, occupied: Flags, empty: Empty, fill: Fill | None = None, *, warn: bool = False) -> Array:
    """Replace the values of queries without any key of positive weight, according to the policy `empty`.

    Examples
    --------
    >>> fill_empty(np.array([[5.0], [7.0]]), np.array([True, False]), "nearest", lambda rows: rows[:, None] + 0.5)
    array([[5. ],
           [1.5]])
    """
    if occupied.all():
        return values
    report_empty(occupied, empty, warn=warn)
    if empty in EMPTY_VALUES:
        values[~occupied] = EMPTY_VALUES[empty]
        return values
    if fill is None:
        raise ValueError(f"empty={empty!r} needs fill=, a function from the indices of empty rows to their values")
    rows = np.flatnonzero(~occupied)
    values[rows] = fill(rows)
    warn_of_queries(
        ~occupied & np.isnan(values).any(axis=-1),
        "have no key that takes part: there is no nearest key and no mean, and they become NaN; check what attn_mask, "
        "key_weight, exclude_self or groups exclude",
        EmptyWindowWarning,
        before="",
    )
    return values


def report_empty(occupied: Flags, empty: Empty, *, warn: bool = False) -> None:
    """Warn of queries without any key of positive weight, or raise ValueError, as the policy `empty` says."""
    if occupied.all():
        return
    story = f"{queries_in_words(~occupied)} have no key with positive weight"
    if empty == "raise":
        raise ValueError(f"{story}; use a larger bandwidth, a kernel of infinite support, or another empty=")
    if empty == "nan":
        warn_caller(
            f"{story} and become NaN; use a larger bandwidth, or empty='nearest', 'mean' or 'zero'", EmptyWindowWarning
        )
    elif empty == "nearest" and warn:
        warn_caller(
            f"{story} and get the answer of the nearest one; use a larger bandwidth, a kernel of infinite support "
            "such as kernel='gaussian', or another empty=",
            EmptyWindowWarning,
        )


def fill_in_silence(values: Array, occupied: Flags, empty: str, fill: Fill) -> Array:
    """Fill in place the values of empty windows, without a warning or error: NaN for ``"nan"`` and ``"raise"``.

    `fill` returns the nearest value, or the mean, for the indices of empty windows.
    """
    (rows,) = np.nonzero(~occupied)
    if rows.size:
        values[rows] = EMPTY_VALUES[empty] if empty in EMPTY_VALUES else fill(rows)
    return values


@dataclass(frozen=True)
class PoolState:
    """Partial sums of a weighted mean: the sum of weights and the sums of weighted values, one row per query.

    Parameters
    ----------
    shift : ndarray of shape (..., m)
        Logarithm of the unit that both sums are counted in, usually the largest logit. It is a gauge: states of the
        same sums may differ in it, so compare states only after `finalize`. Minus infinity where nothing was summed.
    denominator : ndarray of shape (..., m)
        Sum of the weights. A window is empty exactly if this is zero.
    numerator : ndarray of shape (..., m, c)
        Sum of weight times value.

    Notes
    -----
    `merge` is associative and commutative up to rounding, with `empty_state` as its identity. The construction is that
    of online softmax (Milakov and Gimelshein, arXiv:1805.02867), with the empty case made safe.
    """

    shift: Array
    denominator: Array
    numerator: Array

    @property
    def log_denominator(self) -> Array:
        """Logarithm of each query's sum of weights, with the unit ``exp(shift)`` included.

        It shows how far a query is from the keys.
        """
        with np.errstate(divide="ignore"):
            return self.shift + np.log(self.denominator)

    def rows(self, which: slice | NDArray[np.integer]) -> PoolState:
        """Return the sums of the queries with these indices."""
        return PoolState(self.shift[which], self.denominator[which], self.numerator[which])

    def put(self, which: slice | NDArray[np.integer], state: PoolState) -> None:
        """Overwrite, in place, the sums of the queries with these indices by those of `state`."""
        self.shift[which], self.denominator[which] = state.shift, state.denominator
        self.numerator[which] = state.numerator

    def add(self, which: slice | NDArray[np.integer], state: PoolState) -> None:
        """Add to the sums of the queries with these indices, in place, their sums over further keys."""
        self.put(which, merge(self.rows(which), state))

    def without(self, which: Index) -> PoolState:
        """Return a copy with the sums of the queries with these indices set to zero."""
        left = PoolState(self.shift.copy(), self.denominator.copy(), self.numerator.copy())
        left.shift[which], left.denominator[which], left.numerator[which] = -np.inf, 0.0, 0.0
        return left

    @np.errstate(under="ignore")
    def finalize(self, empty: Empty = "nan", fill: Callable[[Index], Array] | None = None) -> Array:
        """Divide weighted sums by sums of weights to get the pooled values; `empty` says what 0 / 0 becomes.

        Parameters
        ----------
        empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
            Value of a query without any key; see `fill_empty`.
        fill : callable, optional
            Maps the indices of the empty rows to their values.

        Returns
        -------
        ndarray of shape (..., m, c)
            ``numerator / denominator``.

        Raises
        ------
        ValueError
            If a window is empty and `empty` is ``"raise"``, or `empty` is unknown or needs a `fill` that is missing.

        Examples
        --------
        >>> empty_state(1, 1).finalize("zero")
        array([[0.]])
        """
        check_empty(empty)
        with np.errstate(invalid="ignore"):
            values = self.numerator / self.denominator[..., None]
        return fill_empty(values, self.denominator != 0, empty, fill)


def empty_state(n_queries: int, n_columns: int) -> PoolState:
    """Return the `PoolState` over no keys: zero sums, the identity of `merge`.

    Parameters
    ----------
    n_queries, n_columns : int
        Number of queries and of value columns.

    Returns
    -------
    PoolState
        ``(-inf, 0, 0)`` for every query.

    Examples
    --------
    >>> empty_state(2, 1).shift
    array([-inf, -inf])
    """
    return PoolState(np.full(n_queries, -np.inf), np.zeros(n_queries), np.zeros((n_queries, n_columns)))


@np.errstate(under="ignore")
def merge(a: PoolState, b: PoolState) -> PoolState:
    """Merge the sums of the same queries over two disjoint sets of keys into one `PoolState`.

    Parameters
    ----------
    a, b : PoolState
        States of equal shapes.

    Returns
    -------
    PoolState
        The state of all the keys together.

    Raises
    ------
    ValueError
        If the states are of different queries or value columns.

    Examples
    --------
    >>> import kernpool
    >>> query, key, value = [0.0, 1.0], [0.0, 0.5, 2.0], [1.0, 2.0, 3.0]
    >>> left = kernpool.pool_state(query, key[:1], value[:1])
    >>> right = kernpool.pool_state(query, key[1:], value[1:])
    >>> bool(np.allclose(merge(left, right).finalize()[:, 0], kernpool.pool(query, key, value), rtol=1e-15))
    True
    """
    if a.numerator.shape != b.numerator.shape:
        raise ValueError(
            f"cannot merge states of shapes {a.numerator.shape} and {b.numerator.shape}; "
            "both must come from the same queries and have as many value columns"
        )
    shift = np.maximum(a.shift, b.shift)
    base = np.where(np.isneginf(shift), 0.0, shift)  # empty with empty: -inf minus -inf would be NaN
    factor_a, factor_b = np.exp(a.shift - base), np.exp(b.shift - base)
    return PoolState(
        shift,
        factor_a * a.denominator + factor_b * b.denominator,
        factor_a[..., None] * a.numerator + factor_b[..., None] * b.numerator,
    )
