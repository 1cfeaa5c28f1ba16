"""The way out: from sums over pairs, wherever they come from, to pooled values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernpool.core.empty import Fill
from kernpool.core.local_fit import LocalFit, solve, warn_of_curvature, warn_of_rank
from kernpool.core.moments import Layout
from kernpool.core.ridge import with_ridge
from kernpool.core.state import PoolState
from kernpool.pooling.limits import quotient
from kernpool.pooling.recipe import Recipe

Array = NDArray[np.float64]
FLOAT64: np.dtype[Any] = np.dtype(np.float64)


class ReportRank(Protocol):
    """Who hears of local planes that the keys do not determine."""

    def __call__(self, rank: NDArray[np.intp], occupied: NDArray[np.bool_], columns: int) -> None:
        """Take the parameters of `warn_of_rank`."""


@dataclass(frozen=True)
class Sums:
    """What is summed over the pairs for some queries, and what only the pairs can add to it.

    Parameters
    ----------
    state : PoolState
        The sums.
    layout : Layout
        What its numerator holds.
    center : ndarray of shape (c,) or (m, c), or None
        What the values are less of: slopes of large values with small differences would lose their digits. None for
        the values themselves.
    fill : callable, optional
        The values of rows whose window is empty, under the policies "nearest" and "mean".
    complete : callable, optional
        Fits planes that the sums have lost, from the pairs themselves.
    shape : tuple of int, optional
        Of the pooled values; by default (m, c).
    dtype : numpy.dtype, default=float64
        Of the pooled values.
    """

    state: PoolState
    layout: Layout
    center: Array | None = None
    fill: Fill | None = None
    complete: Callable[[LocalFit], LocalFit] | None = None
    shape: tuple[int, ...] | None = None
    dtype: np.dtype[Any] = FLOAT64

    def fit(self, ridge: Array | None = None) -> LocalFit:
        """Solve for the constant or the plane around each query; values of empty windows are zero.

        Parameters
        ----------
        ridge : ndarray of shape (d,), optional
            Of `with_ridge`. Planes of a ridge are never lost: what keys do not determine, it does.
        """
        if ridge is not None and np.any(ridge):
            fit = solve(with_ridge(self.state, self.layout, ridge), self.layout)
        else:
            fit = solve(self.state, self.layout)
            fit = fit if self.complete is None else self.complete(fit)
        center = 0.0 if self.center is None else self.center
        return replace(fit, intercept=np.where(fit.occupied[:, None], fit.intercept + center, 0.0))


def settle(
    recipe: Recipe,
    sums: Sums,
    report_rank: ReportRank | None = None,
    limits: tuple[Array, Array] | None = None,
) -> NDArray[np.floating[Any]]:
    """Turn sums into pooled values: solve, give the center back, report ranks, fill empty windows.

    Parameters
    ----------
    recipe : Recipe
        How was pooled, and what empty windows become.
    sums : Sums
        Over whatever pairs.
    report_rank : callable, optional
        Hears of planes that are not determined, once; by default `warn_of_rank`, or `warn_of_curvature`.
    limits : (ndarray of shape (c,), ndarray of shape (c,)), optional
        Between what planes are clipped; what empty windows become is not.

    Returns
    -------
    ndarray of shape (m, c), or as the sums say
        Pooled values.

    Raises
    ------
    ValueError
        If a window is empty, and the recipe says "raise" or asks for what cannot be had from the pairs again.

    Examples
    --------
    >>> state = PoolState(np.zeros(2), np.array([2.0, 0.0]), np.array([[6.0], [0.0]]))
    >>> settle(Recipe.of(empty="zero"), Sums(state, Layout(values=1, columns=1, degree=0)))
    array([[3.],
           [0.]])
    """
    if sums.center is None and not recipe.degree:
        values = recipe.fill_empty(quotient(sums.state), sums.state.denominator != 0, sums.fill)
    else:
        fit = sums.fit(recipe.ridge_weight(sums.layout.columns))
        if recipe.degree:
            report = report_rank or (warn_of_rank if recipe.degree == 1 else warn_of_curvature)
            report(fit.rank, fit.occupied, sums.layout.regressors)
        intercept = fit.intercept if limits is None else np.clip(fit.intercept, *limits)
        values = recipe.fill_empty(intercept, fit.occupied, sums.fill)
    values = values if sums.shape is None else values.reshape(sums.shape)
    return values.astype(sums.dtype, copy=False)
