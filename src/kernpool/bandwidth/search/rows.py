"""Training rows in the form that a search wants: one order of rows and of columns, no duplicates, no weight zero."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIGITS = 9  # of a correlation: those that the order of rows does not change


class ColumnOrder(NamedTuple):
    """The order in which a search takes columns, whatever order they came in.

    Parameters
    ----------
    numeric : ndarray of int, shape (d,)
        Positions of the numeric columns.
    categorical : ndarray of int, shape (k,)
        Positions of the categorical columns.
    """

    numeric: NDArray[np.intp]
    categorical: NDArray[np.intp]


@dataclass(frozen=True)
class TrainingRows:
    """Inputs, outputs and frequencies.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Numeric columns.
    code : ndarray of int, shape (n, k)
        Level numbers of categorical columns.
    value : ndarray of shape (n, c)
        Outputs.
    weight : ndarray of shape (n,)
        Frequencies, positive.
    group : ndarray of int, shape (n,), optional
        Number of the group of each row; all rows of a group are left out together.
    """

    X: Array
    code: NDArray[np.int64]
    value: Array
    weight: Array
    group: NDArray[np.int64] | None = None

    @property
    def total(self) -> float:
        """Number of rows, each as often as its weight says."""
        return float(self.weight.sum())

    @property
    def number(self) -> float:
        """The same, but at least that of distinct rows: weights that were normalised do not make rows fewer."""
        return max(self.total, float(len(self.X)))

    @property
    def unit(self) -> float:
        """Mean weight, or one if it is larger: what counts as one row where weights were normalised."""
        return self.total / self.number

    def take(self, rows: NDArray[np.intp]) -> TrainingRows:
        """Return some of the rows."""
        group = None if self.group is None else self.group[rows]
        return TrainingRows(self.X[rows], self.code[rows], self.value[rows], self.weight[rows], group)

    def draw(self, size: int, generator: Any) -> TrainingRows:
        """Draw distinct rows, in their order; of two groups at least, since the rows of one predict none of its own."""
        order = generator.permutation(len(self.X))
        if self.group is not None and size > 1:
            (others,) = np.nonzero(self.group[order] != self.group[order[0]])
            order = np.concatenate([order[[0]], order[others[:1]], np.delete(order, [0, *others[:1]])])
        return self.take(np.sort(order[:size]))

    @property
    def groups(self) -> int:
        """Number of groups, zero if rows are left out one by one."""
        return 0 if self.group is None else len(np.unique(self.group))


def column_order(rows: TrainingRows) -> ColumnOrder:
    """Order columns by how much of the outputs they explain, most first; ties keep their order.

    A criterion with kinks or several minima ends in one that depends on which column is tried first. This order is a
    property of each column alone: of the squared correlation of the outputs with its dense ranks, and of their variance
    between its categories. So it stays the same if columns are swapped, shifted, scaled or renamed, or rows repeated.

    Parameters
    ----------
    rows : TrainingRows
        In any order.

    Returns
    -------
    ColumnOrder
        The identity for a single column.

    Notes
    -----
    O(n (d log n + (d + k) c)) time.

    Examples
    --------
    >>> X = np.array([[0.0, 3.0], [1.0, 1.0], [0.0, 2.0], [1.0, 0.0]])
    >>> column_order(TrainingRows(X, np.zeros((4, 0), dtype=np.int64), X[:, 1:] ** 2, np.ones(4))).numeric
    array([1, 0])
    """
    (d, k), share = (rows.X.shape[1], rows.code.shape[1]), rows.weight / rows.total
    numeric, categorical = np.arange(d), np.arange(k)
    if max(d, k) < 2 or not len(rows.X):
        return ColumnOrder(numeric, categorical)
    extent = np.ptp(rows.value, axis=0)
    value = (rows.value - rows.value.min(axis=0)) / np.where(extent > 0, extent, 1.0)
    value -= share @ value
    variance = share @ value**2
    unit = np.where(variance > 0, variance, 1.0)
    explained = np.zeros((d + k, len(unit)))
    for a, column in enumerate(rows.X.T if d > 1 else ()):
        rank = np.unique(column, return_inverse=True)[1].astype(np.float64)
        rank -= share @ rank
        square = share @ rank**2
        explained[a] = (share * rank @ value) ** 2 / (square if square > 0 else 1.0) / unit
    for a, level in enumerate(rows.code.T if k > 1 else ()):
        of_level = np.array([np.bincount(level - level.min(), share * column) for column in value.T])
        weight = np.bincount(level - level.min(), share)
        explained[d + a] = np.sum(of_level**2 / np.where(weight > 0, weight, 1.0), axis=1) / unit
    size = np.round(explained.sum(axis=1), DIGITS)
    return ColumnOrder(np.argsort(-size[:d], kind="stable"), np.argsort(-size[d:], kind="stable"))


def canonical_rows(
    X: Array,
    value: Array,
    weight: Array | None = None,
    code: NDArray[np.int64] | None = None,
    group: NDArray[np.int64] | None = None,
) -> TrainingRows:
    """Drop rows of weight zero, merge equal rows, fix the order: weighted and repeated rows become one problem.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Numeric columns.
    value : ndarray of shape (n, c)
        Outputs.
    weight : ndarray of shape (n,), optional
        Frequencies.
    code : ndarray of int, shape (n, k), optional
        Categorical columns.
    group : ndarray of int, shape (n,), optional
        Number of the group of each row; equal rows of different groups stay two.

    Returns
    -------
    TrainingRows
        Sorted by the columns in the order of `column_order`, outputs and groups last.

    Examples
    --------
    >>> rows = canonical_rows(np.array([[2.0], [1.0], [2.0]]), np.array([[5.0], [6.0], [5.0]]))
    >>> rows.X.ravel(), rows.value.ravel(), rows.weight
    (array([1., 2.]), array([6., 5.]), array([1., 2.]))
    """
    code = np.zeros((len(X), 0), dtype=np.int64) if code is None else code
    times = np.ones(len(X)) if weight is None else weight
    rows = TrainingRows(X + 0.0, code, value + 0.0, times, group)  # -0.0 becomes 0.0
    if weight is not None and not np.all(weight > 0):
        rows = rows.take(np.flatnonzero(weight > 0))
    if rows.X.shape[1] == 1 and not code.shape[1]:
        rows = rows.take(np.argsort(rows.X[:, 0]))
        if np.all(rows.X[1:] > rows.X[:-1]):  # a fifth of the time where no two are equal
            return rows
    order = column_order(rows)
    columns = [*rows.X.T[order.numeric], *rows.code.T[order.categorical], *rows.value.T]
    rows = rows.take(np.lexsort([*columns, *([] if rows.group is None else [rows.group])][::-1]))
    new = np.ones(len(rows.X), dtype=bool)
    new[1:] = np.any(rows.X[1:] != rows.X[:-1], axis=1)
    for columns_of in (rows.code, rows.value):
        new[1:] |= np.any(columns_of[1:] != columns_of[:-1], axis=1)
    if rows.group is not None:
        new[1:] |= rows.group[1:] != rows.group[:-1]
    first = np.flatnonzero(new)
    return replace(rows.take(first), weight=np.add.reduceat(rows.weight, first))
