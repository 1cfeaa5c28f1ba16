"""How every search begins, whatever it minimises: with which rows, and for one factor or one bandwidth per column."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.categories import Categories
from kernpool.bandwidth.rules import column_spread
from kernpool.bandwidth.search.rows import ColumnOrder, TrainingRows, canonical_rows, column_order
from kernpool.bandwidth.search.setting import is_flat
from kernpool.kernels import Kernel

Array = NDArray[np.float64]


class Beginning(NamedTuple):
    """What is known before the first evaluation.

    Parameters
    ----------
    rows : TrainingRows
        All rows of the search, in canonical form: with the numeric columns that vary, in canonical order, or one of
        zeros if there are none.
    spread : ndarray of shape (d,)
        Spreads of their columns.
    one_factor : bool
        Whether one factor on the spreads is searched for, instead of one bandwidth per column.
    order : ColumnOrder
        Which columns these are.
    columns : int
        Number of numeric columns that there were.
    """

    rows: TrainingRows
    spread: Array
    one_factor: bool
    order: ColumnOrder
    columns: int

    def restore(self, found: Array, of_constant: float) -> Array:
        """Return numbers of the columns of the search, of shape (..., p), in the order in which the columns came.

        Parameters
        ----------
        found : ndarray of shape (..., p)
            Of numeric columns, followed by those of categorical ones, if there are any.
        of_constant : float
            Of numeric columns that do not vary.
        """
        numeric, categorical = self.order
        searched = self.rows.X.shape[1]
        restored = np.full((*found.shape[:-1], self.columns + found.shape[-1] - searched), of_constant)
        restored[..., numeric] = found[..., : len(numeric)]
        if restored.shape[-1] > self.columns:
            restored[..., self.columns + categorical] = found[..., searched:]
        return restored


def begin(
    X: Array,
    value: Array,
    weight: Array | None,
    code: NDArray[np.int64] | None,
    group: NDArray[np.int64] | None = None,
    *,
    categories: Categories,
    common_factor: bool,
    kernel: Kernel,
) -> Beginning:
    """Bring rows and columns into their canonical form, and decide what is searched for.

    Parameters
    ----------
    X, value, weight, code, group, categories, common_factor, kernel
        As in `kernpool.bandwidth.search.search_bandwidth`.

    Returns
    -------
    Beginning
        With values as they are.

    Raises
    ------
    ValueError
        If there are categorical columns, and only a common factor can be searched for.
    """
    factor_alone = common_factor or is_flat(kernel)
    if len(categories) and factor_alone:
        raise ValueError(
            "categorical columns have smoothings of their own, which are found along a slope: use common_factor=False "
            "and a kernel that is not flat, such as 'gaussian' or 'epanechnikov'"
        )
    rows = canonical_rows(X, value, weight, code, group)
    # A table of categorical columns alone has one of zeros, which is no reason to warn.
    spread = np.ones(1) if len(categories) and not rows.X.any() else column_spread(rows.X, rows.weight)
    order = column_order(rows)
    numeric = order.numeric[np.ptp(rows.X, axis=0)[order.numeric] > 0]
    searched = rows.X[:, numeric] if len(numeric) else np.zeros((len(rows.X), 1))
    rows = replace(rows, X=np.ascontiguousarray(searched), code=np.ascontiguousarray(rows.code[:, order.categorical]))
    spread = spread[numeric] if len(numeric) else np.ones(1)
    one = factor_alone or (rows.X.shape[1] == 1 and not len(categories))
    return Beginning(rows, spread, one, ColumnOrder(numeric, order.categorical), X.shape[1])
