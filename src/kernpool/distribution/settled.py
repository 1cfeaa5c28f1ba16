"""Distribution functions of a problem: thresholds as they are read, ranks among values, and what empty windows get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernpool.core.empty import Fill
from kernpool.core.problem import Problem
from kernpool.data.checks import as_real_array, refuse_foreign
from kernpool.distribution.below import shares_below
from kernpool.pooling.limits import limit_problem
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
Index = NDArray[np.intp]
# What is known of queries of a problem: an array of shape (m, t) or (m, c, t), and which windows are not empty. The
# queries are given by number beside their problem.
Known = Callable[[Problem, Index], tuple[Array, NDArray[np.bool_]]]


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
    refuse_foreign("y", y)
    given = np.asarray(y)
    infinite = given.dtype.kind == "f" and given.size > 0 and bool(np.isinf(given).any())
    # Distribution functions know what to say of infinity; all else is read as values are.
    read = as_real_array("y", np.where(np.isinf(given), 0.0, given) if infinite else y)
    threshold = np.asarray(np.where(np.isinf(given), given, read) if infinite else read, dtype=np.float64)
    if not threshold.size:
        raise ValueError(f"y must hold thresholds, one at least, got shape {threshold.shape}")
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
        # NumPy types neither side nor result so.
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

    return filled(recipe, found, occupied, at_zero, fill)


def filled(recipe: Recipe, found: Array, occupied: NDArray[np.bool_], at_zero: Any, fill: Fill) -> Array:
    """Return what is known with empty windows as the recipe says; parameters as of `settled` and `fill_empty`."""
    whole = recipe.fill_empty(found.reshape(len(found), -1), occupied, fill).reshape(found.shape)
    if recipe.empty == "zero" and not occupied.all():
        whole[~occupied] = np.broadcast_to(at_zero, whole.shape)[~occupied]
    return whole
