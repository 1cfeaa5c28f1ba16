"""A fitted stack of members as one linear smoother: predictions, linear weights and leave-one-out predictions.

Every member is a linear smoother of the same training rows, and so is their average: its linear weights are the
averages of theirs, and so are its leave-one-out predictions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.estimators.fitted_model import read_query
from kernpool.estimators.kernel_smoother import KernelSmoother
from kernpool.estimators.methods.inference import Prediction
from kernpool.estimators.stacking.averaging import stacking_weights
from kernpool.estimators.stacking.kernel_ridge import Array, Codes, KernelRidge, mean_of, spread_of

LOCAL, RIDGE = "local", "kernel_ridge"
HAT_ROWS = 1000  # of a hat matrix at once
FitRidge = Callable[[Array, Array, Array, Codes | None], KernelRidge]


@dataclass(frozen=True, eq=False)
class StandardColumns:
    """Columns of a table as a matrix: numbers in standard deviations from their mean, categories as 0 and 1.

    Parameters
    ----------
    center, spread : ndarray of shape (d,)
        Weighted means and standard deviations of the numeric columns.
    levels : tuple of int
        Number of categories of each categorical column.

    Examples
    --------
    >>> columns = StandardColumns.of(np.array([[1.0], [3.0]]), np.ones(2), (2,))
    >>> columns.matrix(np.array([[5.0], [2.0]]), np.array([[1], [-1]]))
    array([[3., 0., 1.],
           [0., 0., 0.]])
    """

    center: Array
    spread: Array
    levels: tuple[int, ...]

    @classmethod
    def of(cls, key: NDArray[np.floating], weight: Array, levels: tuple[int, ...]) -> StandardColumns:
        """Measure the numeric columns of weighted rows."""
        numbers: Array = key.astype(np.float64)
        spread = np.where(np.ptp(numbers, axis=0) > 0, spread_of(numbers, weight), np.inf)
        return cls(mean_of(numbers, weight), spread, levels)

    def matrix(self, key: NDArray[np.floating], code: Codes | None) -> Array:
        """Return the columns of given rows; a constant column is zero, and an unseen category is none of the others."""
        parts = [(key - self.center) / self.spread]
        for column, levels in zip([] if code is None else code.T, self.levels, strict=True):
            parts.append((column[:, None] == np.arange(levels)).astype(np.float64))
        return np.hstack(parts)


@dataclass(frozen=True, eq=False)
class Queries:
    """Rows at which a stack predicts: numeric columns, category codes, and both as standardised columns."""

    key: Array
    code: Codes | None
    columns: Array

    def __getitem__(self, rows: slice) -> Queries:
        return Queries(self.key[rows], None if self.code is None else self.code[rows], self.columns[rows])

    def __len__(self) -> int:
        return len(self.key)


@dataclass(frozen=True, eq=False)
class FittedStack:
    """Members of a stacked regression, fitted to the same rows, and their weights.

    Parameters
    ----------
    local : KernelSmoother
        The fitted local estimator, which holds the training rows.
    columns : StandardColumns
        How rows become columns of the other members.
    ridge : KernelRidge
        The global member, fitted to the rows of positive weight.
    local_left_out : ndarray of shape (n, c)
        Leave-one-out predictions of the local estimator at the rows of positive weight.
    mixing : ndarray of shape (2,)
        Weights of the members.
    """

    local: KernelSmoother
    columns: StandardColumns
    ridge: KernelRidge
    local_left_out: Array
    mixing: Array

    @classmethod
    def of(cls, local: KernelSmoother, fit: FitRidge) -> FittedStack:
        """Fit the global member to the rows of a fitted local estimator, and find the weights of both.

        Parameters
        ----------
        local : KernelSmoother
            Fitted to arrays.
        fit : callable
            Takes standardised columns, outputs, frequencies and clusters of rows; returns the global member.
        """
        weight = row_weights(local)
        kept, encoding, group = weight > 0, local.encoding_, local.key_group_
        if not weight.sum() > 1.0:
            raise ValueError(f"leave-one-out predictions need at least two rows, got {weight.sum():g} sample")
        weight, value = weight[kept], values_of(local)[kept]
        levels = () if encoding is None else tuple(len(names) for names in encoding.levels)
        columns = StandardColumns.of(local.key_[kept], weight, levels)
        matrix = columns.matrix(local.key_[kept], local.key_code_[kept])
        ridge = fit(matrix, value, weight, None if group is None else group[kept])
        left_out = local.leave_one_out().prediction[kept]
        residuals = [(value - each) / spread_of(value, weight) for each in (left_out, ridge.left_out)]
        return cls(local, columns, ridge, left_out, stacking_weights(residuals, weight))

    @property
    def members(self) -> dict[str, KernelSmoother | KernelRidge]:
        """The fitted members by name."""
        return {LOCAL: self.local, RIDGE: self.ridge}

    @cached_property
    def kept(self) -> NDArray[np.intp]:
        """Indices of the training rows of positive weight."""
        return np.flatnonzero(row_weights(self.local) > 0)

    @cached_property
    def weight(self) -> Array:
        """Frequencies of the training rows of positive weight."""
        return row_weights(self.local)[self.kept]

    @cached_property
    def value(self) -> Array:
        """Outputs of the training rows of positive weight, of shape (n, c)."""
        return values_of(self.local)[self.kept]

    @property
    def group(self) -> Codes | None:
        """Cluster of each training row of positive weight; None without groups."""
        return None if self.local.key_group_ is None else self.local.key_group_[self.kept]

    @property
    def error(self) -> float:
        """Weighted mean squared leave-one-out error, summed over outputs."""
        return squared_error(self.value - self.left_out, self.weight)

    @property
    def left_out_of_members(self) -> tuple[Array, Array]:
        """Leave-one-out, or leave-cluster-out, predictions of each member at the rows of positive weight."""
        return self.local_left_out, self.ridge.left_out

    @cached_property
    def left_out(self) -> Array:
        """Leave-one-out, or leave-cluster-out, predictions of the average."""
        local, ridge = self.left_out_of_members
        return np.asarray(self.mixing[0] * local + self.mixing[1] * ridge)

    @cached_property
    def training(self) -> Queries:
        """The training rows of positive weight as queries."""
        key, code = self.local.key_[self.kept], self.local.key_code_[self.kept]
        code = None if self.local.encoding_ is None else code
        return Queries(key, code, self.columns.matrix(key, code))

    def read(self, X: ArrayLike, *, warn: bool = True) -> Queries:
        """Convert X to queries as the local estimator does; warn of extrapolation if `warn`."""
        key, code = read_query(self.local, X, warn=warn)
        return Queries(key, code, self.columns.matrix(key, code))

    def _of_local(self, queries: Queries) -> Prediction:
        return Prediction(self.local, queries.key, queries.code)

    def predict(self, queries: Queries) -> Array:
        """Return predictions of shape (m, c)."""
        local = self._of_local(queries).mean.reshape(len(queries), -1)
        return np.asarray(self.mixing[0] * local + self.mixing[1] * self.ridge.predict(queries.columns))

    def weights(self, queries: Queries) -> Array:
        """Return the linear weights of the training rows of positive weight, of shape (m, n)."""
        local = self._of_local(queries).weights()[:, self.kept]
        return np.asarray(self.mixing[0] * local + self.mixing[1] * self.ridge.weights(queries.columns))

    def hat_rows(self) -> Iterator[tuple[slice, Array]]:
        """Yield the hat matrix in blocks of rows, which are fits at training rows."""
        for start in range(0, len(self.weight), HAT_ROWS):
            rows = slice(start, start + HAT_ROWS)
            yield rows, self.weights(self.training[rows])


def row_weights(local: KernelSmoother) -> Array:
    """Return the frequencies of all training rows of a fitted estimator, of shape (n,)."""
    return np.ones(len(local.key_)) if local.key_weight_ is None else local.key_weight_


def values_of(local: KernelSmoother) -> Array:
    """Return the outputs of a fitted estimator as float64 of shape (n, c)."""
    return np.asarray(local.value_, dtype=np.float64).reshape(len(local.value_), -1)


def squared_error(residual: Array, weight: Array) -> float:
    """Return the weighted mean over rows of squared residuals, summed over outputs."""
    return float(weight @ np.sum(residual**2, axis=1) / weight.sum())
