"""How every search begins, whatever it minimises: with which rows, and for one factor or one bandwidth per column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernpool.bandwidth.categories import Categories
from kernpool.bandwidth.rules import column_spread
from kernpool.bandwidth.search.rows import TrainingRows, canonical_rows
from kernpool.bandwidth.search.setting import is_flat
from kernpool.kernels import Kernel

Array = NDArray[np.float64]


class Beginning(NamedTuple):
    """What is known before the first evaluation.

    Parameters
    ----------
    rows : TrainingRows
        All rows of the search, in canonical form.
    spread : ndarray of shape (d,)
        Spreads of their columns.
    one_factor : bool
        Whether one factor on the spreads is searched for, instead of one bandwidth per column.
    """

    rows: TrainingRows
    spread: Array
    one_factor: bool


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
    max_search_rows: int | None,
    generator: Any,
) -> Beginning:
    """Draw rows if there are more than wanted, and tell what is searched for.

    Parameters
    ----------
    X, value, weight, code, group, categories, common_factor, kernel, max_search_rows
        As in `kernpool.bandwidth.search.search_bandwidth`.
    generator : numpy.random.RandomState
        For the rows that are drawn.

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
    if max_search_rows is not None and len(rows.X) > max_search_rows:
        rows = rows.draw(max_search_rows, generator)
    # A table of categorical columns alone has one of zeros, which is no reason to warn.
    spread = np.ones(1) if len(categories) and not rows.X.any() else column_spread(rows.X, rows.weight)
    return Beginning(rows, spread, factor_alone or (X.shape[1] == 1 and not len(categories)))
