"""Conditional distribution functions of pairs in arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.core.empty import Empty, fill_empty
from kernpool.core.problem import Problem
from kernpool.data.checks import as_real_array
from kernpool.data.chunks.base import Chunks
from kernpool.distribution.below import shares_below
from kernpool.kernels import Kernel
from kernpool.pooling.arrays import ArrayPairs
from kernpool.pooling.choice import choose
from kernpool.pooling.limits import limit_problem
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]
# What is known of queries of a problem: an array of shape (m, t) or (m, c, t), and which windows are not empty. The
# queries are given by number beside their problem.
Known = Callable[[Problem, Index], tuple[Array, NDArray[np.bool_]]]


def pool_cdf(
    query: ArrayLike,
    key: ArrayLike,
    value: ArrayLike,
    y: ArrayLike,
    *,
    kernel: str | Kernel = "gaussian",
    bandwidth: ArrayLike = 1.0,
    composition: str = "radial",
    key_weight: ArrayLike | None = None,
    attn_mask: ArrayLike | None = None,
    exclude_self: bool = False,
    self_index: ArrayLike | None = None,
    tol: float | None = None,
    algorithm: str = "auto",
    empty: Empty = "nan",
    n_jobs: int | None = None,
) -> Array:
    r"""Pool how much of the weight lies at or below thresholds: the conditional distribution function.

    .. math:: F(y \mid q) = \sum_{j:\, v_j \le y} \alpha_j(q)

    with the weights alpha of `pool`. It is the inverse of `pool_quantile`.

    Parameters
    ----------
    query, key : array_like
        As in `pool`.
    value : array_like of shape (..., n)
        One value per key.
    y : float, or array_like of shape (t,) or (m, t)
        Thresholds: the same for all queries, or a row of them for each.
    kernel, bandwidth, composition, key_weight, attn_mask, exclude_self, self_index, tol
        As in `pool`.
    algorithm : str, default="auto"
        How sums over many keys are organised, as in `pool`.
    empty : {"nan", "nearest", "mean", "zero", "raise"}, default="nan"
        What a query without any key of positive weight gets: NaN with one warning, the distribution of the nearest
        keys, that of all keys that take part, that of a value of zero, or an error.
    n_jobs : int, optional
        Threads; the result has the same bits for any number.

    Returns
    -------
    ndarray of shape (..., m) or (..., m, t)
        Between 0 and 1, and not falling with the threshold; exactly 0 below and 1 above all keys that count. With a
        last axis for thresholds unless `y` is one number.

    Raises
    ------
    TypeError, ValueError
        As in `pool`, and if `y` holds NaN or has a shape that is none of these, or `value` several columns.

    Warns
    -----
    EmptyWindowWarning
        If windows are empty and `empty` is ``"nan"``.

    See Also
    --------
    pool_quantile : The inverse.

    Notes
    -----
    Keys are put in the order of their values once, and those between two thresholds are summed at once: with the same
    thresholds for all queries one pass over all keys, whatever the number of thresholds. With a row of them for each
    query keys are halved until a threshold lies among few: about log2(n / 512) passes, or one over all pairs where that
    is less. Memory is O(n + m t). Both sides of a threshold are summed, so that small shares keep their digits.

    Examples
    --------
    >>> import kernpool
    >>> kernpool.pool_cdf([0.0, 5.0], [0.0, 1.0, 5.0], [3.0, 7.0, 8.0], [2.0, 3.0, 8.0]).round(3)
    array([[0.   , 0.622, 1.   ],
           [0.   , 0.   , 1.   ]])
    """
    if isinstance(key, Chunks):
        raise TypeError(
            "key must be an array: thresholds are found among all values in order, and chunks are not held together; "
            "pool the columns value <= y, or draw a sample of the rows"
        )
    recipe = Recipe.of(
        kernel, bandwidth, composition=composition, tol=tol, algorithm=algorithm, empty=empty, n_jobs=n_jobs
    )
    batch = ArrayPairs(key, value, key_weight, attn_mask, exclude_self, self_index).batch(recipe, query)
    tables = []
    for i in range(len(batch)):
        problem, values = batch.problem(i), batch.values(i)
        choose(problem, recipe.algorithm)  # says what it cannot do
        if values.shape[1] != 1:
            raise ValueError(f"value must be one column, got {values.shape[1]}; call pool_cdf for one after the other")
        threshold, with_axis = as_thresholds(y, len(problem.query))

        def known(some: Problem, rows: Index, values: Array = values, threshold: Array = threshold) -> Any:
            return known_cdf(recipe, some, values[:, 0], rows_of(threshold, rows)[:, 0])

        found = settled(recipe, problem, known, threshold[:, 0] >= 0)
        tables.append(found if with_axis else found[:, 0])
    return np.stack(tables).reshape(*batch.shape, *tables[0].shape)


def as_thresholds(y: Any, m: int, outputs: int = 1, *, several: bool = False) -> tuple[Array, bool]:
    """Read thresholds.

    Parameters
    ----------
    y : float or array_like
        What the caller passed.
    m, outputs : int
        Number of queries, and of outputs.
    several : bool, default=False
        Whether outputs have an axis.

    Returns
    -------
    threshold : ndarray of shape (1, outputs, t) or (m, outputs, t)
        With one row where all queries have the same.
    with_axis : bool
        Whether answers have an axis of thresholds.

    Raises
    ------
    ValueError
        If there are NaN, or the shape is none of those that are allowed.
    """
    given = np.asarray(y)
    infinite = given.dtype.kind == "f" and given.size > 0 and bool(np.isinf(given).any())
    # Distribution functions know what to say of infinity; all else is read as values are.
    read = as_real_array("y", np.where(np.isinf(given), 0.0, given) if infinite else y)
    threshold = np.asarray(np.where(np.isinf(given), given, read) if infinite else read, dtype=np.float64)
    if threshold.ndim == 0:
        return np.full((1, outputs, 1), float(threshold)), False
    if threshold.ndim == 1:
        return np.broadcast_to(threshold, (1, outputs, len(threshold))), True
    dimensions = 3 if several else 2
    if threshold.ndim == dimensions:
        rows = threshold if several else threshold[:, None]
        if rows.shape[0] in (1, m) and rows.shape[1] in (1, outputs):
            return np.broadcast_to(rows, (rows.shape[0], outputs, rows.shape[2])), True
    wanted = f"({m}, {outputs}, t)" if several else f"({m}, t)"
    raise ValueError(
        f"y must be one number, thresholds of shape (t,) for all rows, or {wanted} for each row its own, got shape "
        f"{threshold.shape}; one threshold per row is y[:, None]"
    )


def rows_of(threshold: Array, rows: Index) -> Array:
    """Return thresholds of some queries; one row stays one."""
    return threshold if len(threshold) == 1 else threshold[rows]


def known_cdf(
    recipe: Recipe,
    problem: Problem,
    value: Array,
    threshold: Array,
    center: Array | None = None,
    dtype: Any = np.float64,
    side: str = "right",
) -> tuple[Array, NDArray[np.bool_]]:
    """Return a distribution function, NaN where windows are empty, and which are not.

    Parameters
    ----------
    recipe : Recipe
        How to sum.
    problem : Problem
        Whose weights.
    value : ndarray of shape (n,)
        What they are of.
    threshold : ndarray of shape (1, t) or (m, t)
        One row is for all queries.
    center : ndarray of shape (m,), optional
        What is added to the values at each query.
    dtype : dtype, default=float64
        What sums of values and centers are rounded to before they are compared, as quantiles are.
    side : {"right", "left"}, default="right"
        Whether values that are equal to a threshold are below it, or not.

    Returns
    -------
    share : ndarray of shape (m, t)
        Between 0 and 1.
    occupied : ndarray of bool, shape (m,)
        Which windows are not empty.
    """
    order = np.argsort(value, kind="stable")
    return shares_below(recipe, problem, order, ranks(value[order], threshold, center, dtype, side))


def ranks(
    ordered: Array, threshold: Array, center: Array | None = None, dtype: Any = np.float64, side: str = "right"
) -> Index:
    """Count the values up to thresholds; parameters as of `known_cdf`, values in order."""
    if center is None:
        return np.searchsorted(ordered, threshold, side=side)  # type: ignore[call-overload, no-any-return]
    # What is compared are the very sums that are quantiles: a threshold less the center, rounded, may be on the other
    # side of a value.
    low = np.zeros((len(center), threshold.shape[1]), dtype=np.intp)
    high = np.full(low.shape, len(ordered))
    while np.any(low < high):
        middle = (low + high) // 2
        sums = (ordered[np.minimum(middle, len(ordered) - 1)] + center[:, None]).astype(dtype)
        counts = sums <= threshold if side == "right" else sums < threshold
        open_ones = low < high
        low = np.where(open_ones & counts, middle + 1, low)
        high = np.where(open_ones & ~counts, middle, high)
    return low


def settled(recipe: Recipe, problem: Problem, known: Known, at_zero: Any, limit: Known | None = None) -> Array:
    """Return what is known of all queries, with empty windows as the recipe says.

    Parameters
    ----------
    recipe : Recipe
        What empty windows get.
    problem : Problem
        Of all queries.
    known : callable
        Says what is known of a problem.
    at_zero : array_like, to be broadcast to what is known
        What is true of a value that is always zero.
    limit : callable, optional
        Says what is known of the limits that fill empty windows; by default the same.

    Returns
    -------
    ndarray
        As `known` returns.
    """
    found, occupied = known(problem, np.arange(len(problem.query)))

    def fill(rows: Index) -> Array:
        part = limit_problem(problem.block(rows), recipe.empty)
        return (limit or known)(part, rows)[0].reshape(len(rows), -1)

    filled = fill_empty(found.reshape(len(found), -1), occupied, recipe.empty, fill).reshape(found.shape)
    if recipe.empty == "zero" and not occupied.all():
        filled[~occupied] = np.broadcast_to(at_zero, filled.shape)[~occupied]
    return filled
