"""What a model on a Dask cluster says of the whole distribution of y: quantiles, distribution functions, densities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from kernpool.dask.cdf import partition_functions
from kernpool.dask.pool import RETRIES
from kernpool.dask.quantile import partition_quantiles
from kernpool.distribution import as_levels
from kernpool.estimators.dask_rows import read_query
from kernpool.estimators.weighed import number_of

# after kernpool.dask.pool, which says what to install
# isort: split
from dask.base import is_dask_collection

Array = NDArray[np.float64]


class DaskDistribution:
    """Conditional quantiles and distribution functions of rows on a cluster."""

    def quantile(self, X: ArrayLike, levels: ArrayLike = 0.5) -> Array:
        """Find the values that y stays below with given probabilities, at new rows, in some passes over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places, in memory.
        levels : float or array_like of shape (l,), default=0.5
            Probabilities, in any order; by default the conditional median.

        Returns
        -------
        ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
            As of `NadarayaWatsonRegressor.quantile`.

        Raises
        ------
        TypeError
            If X is a Dask collection.
        ValueError
            If a level is not between 0 and 1.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        """
        check_is_fitted(self)
        if is_dask_collection(X):
            raise TypeError("X must be in memory for quantiles, which take several passes; compute it, or some of it")
        query, recipe = read_query(self, X), self._recipe(self.bandwidth_)  # type: ignore[attr-defined]  # set by fit
        # Set by fit.
        return partition_quantiles(recipe, query, self.partitions_, as_levels(levels), self.client_, RETRIES)  # type: ignore[attr-defined]

    def cdf(self, X: ArrayLike, y: ArrayLike, *, y_bandwidth: Any = None) -> Array:
        """Find the probability that y stays at or below thresholds, at new rows, in a pass over all partitions.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places, in memory.
        y : float, or array_like of shape (t,), (m, t) or (m, c, t)
            Thresholds, as of `NadarayaWatsonRegressor.cdf`.
        y_bandwidth : float or array_like of shape (c,), optional
            Smooths the distribution in y.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            As of `NadarayaWatsonRegressor.cdf`, up to rounding.

        Raises
        ------
        TypeError
            If X is a Dask collection, or `y_bandwidth` the name of a rule.
        ValueError
            If y holds NaN or has another shape.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        """
        return self._functions(X, y, y_bandwidth, density=False)

    def density(self, X: ArrayLike, y: ArrayLike, *, y_bandwidth: Any) -> Array:
        """Estimate the conditional density of y at new rows, in a pass over all partitions.

        Parameters
        ----------
        X, y
            As of `cdf`.
        y_bandwidth : float or array_like of shape (c,)
            The bandwidth in y; a sample of the rows in memory finds one.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            As of `NadarayaWatsonRegressor.density`, up to rounding.

        Raises
        ------
        TypeError, ValueError
            As for `cdf`.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        """
        if y_bandwidth is None:
            raise TypeError("y_bandwidth must be a positive number, got None")
        return self._functions(X, y, y_bandwidth, density=True)

    def _functions(self, X: ArrayLike, y: ArrayLike, y_bandwidth: Any, *, density: bool) -> Array:
        check_is_fitted(self)
        if is_dask_collection(X) or is_dask_collection(y):
            raise TypeError("X and y must be in memory for distribution functions; compute them, or some of them")
        model: Any = self
        width = None if y_bandwidth is None else number_of(y_bandwidth, model.partitions_.outputs)
        recipe, of = model._recipe(model.bandwidth_), (model.partitions_, y, model.client_, RETRIES)
        return partition_functions(recipe, read_query(self, X), *of, widths=width, density=density)
