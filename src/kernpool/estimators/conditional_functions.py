"""The whole conditional distribution of a fitted regressor: its distribution function and its density."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from kernpool.core.problem import Problem
from kernpool.distribution import as_thresholds, known_cdf, rows_of
from kernpool.distribution.smooth import known_smooth, normal_density
from kernpool.estimators.chunked_functions import functions_of_chunks
from kernpool.estimators.weighed import Weighed, rows_in_chunks, without_axes, y_bandwidths

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class ConditionalFunctions:
    """Distribution function and density of a regressor."""

    def cdf(self, X: ArrayLike | None, y: ArrayLike, *, y_bandwidth: Any = None) -> Array:
        r"""Find the probability that y stays at or below thresholds, at new rows.

        .. math:: F(y \mid x) = \sum_{j:\, v_j \le y} \alpha_j(x) \qquad \text{or} \qquad
                  \sum_j \alpha_j(x)\, \Phi\big((y - v_j) / h_y\big)

        with the weights alpha of the training rows at x (`attention_weights`) and the v of `quantile`, of which it is
        the inverse.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Places; None is for the training rows, each without itself, or without its group after a fit with `groups`.
        y : float, or array_like of shape (t,) or (m, t)
            Thresholds: the same for all rows, or a row of them for each; ``y[:, None]`` is one per row. With several
            outputs (m, c, t) instead of (m, t), where axes may have length 1. May be infinite.
        y_bandwidth : float, array_like of shape (c,), "rule" or "ml", default=None
            Smooths the distribution in y: each value is a normal distribution of this standard deviation. None is for
            steps at the values. The names are those of `y_bandwidth`.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            Probabilities, not falling with y; without smoothing exactly 0 below and 1 above all values that count. For
            empty windows that of what `empty` says.

        Raises
        ------
        ValueError
            If shapes do not go together, y holds NaN, or `y_bandwidth` is no positive number and no name.
        TypeError
            If local planes were fitted to chunks, which do not hold their residuals, or for chunks X is None or
            `y_bandwidth` a name.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        See Also
        --------
        quantile : The inverse.
        pit : At the values that were observed.
        pool_cdf : The same of arrays.

        Notes
        -----
        Thresholds of all rows together are one pass over rows and places for a `NadarayaWatsonRegressor`. Those of a
        `LocalLinearRegressor` differ by its predictions, and like any that differ they take about log2(n / 512) passes,
        or one over all pairs where that is less. Smoothed ones are a pass over columns of values where they are common,
        and O(m n t) where they differ. Rows in chunks are read once, and again for windows that are empty or far away.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.cdf([[0.1], [3.0]], [0.5, 2.0, 9.0]).round(3)
        array([[0.   , 0.669, 1.   ],
               [0.   , 0.   , 1.   ]])
        >>> model.cdf([[0.1]], 2.0, y_bandwidth=0.5).round(3)
        array([0.492])
        """
        if rows_in_chunks(self, X, "a distribution function needs"):
            return functions_of_chunks(self, X, y, y_bandwidth)
        widths = None if y_bandwidth is None else y_bandwidths(self, y_bandwidth)
        weighed = Weighed.of(self, X, "a distribution function needs")
        threshold, with_axis = self._thresholds(weighed, y)

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            some = rows_of(threshold, rows)[:, number]
            if widths is None:
                return known_cdf(weighed.recipe, problem, value, some, center, weighed.dtype)
            return known_smooth(weighed.recipe, problem, value, some, float(widths[number]), center=center)

        at_zero = threshold >= 0 if widths is None else ndtr(threshold / widths[:, None])
        return without_axes(self, weighed.answered(answer, at_zero), with_axis)

    def density(self, X: ArrayLike | None, y: ArrayLike, *, y_bandwidth: Any = "rule") -> Array:
        r"""Estimate the conditional density of y at new rows.

        .. math:: f(y \mid x) = \sum_j \frac{\alpha_j(x)}{h_y}\, \varphi\Big(\frac{y - v_j}{h_y}\Big)

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Places; None is for the training rows, each without itself or its group.
        y : float, or array_like of shape (t,) or (m, t)
            Where, as for `cdf`.
        y_bandwidth : float, array_like of shape (c,), "rule" or "ml", default="rule"
            The bandwidth in y, h_y; see `y_bandwidth`.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            Per unit of y, the slope of ``cdf(X, y, y_bandwidth=h_y)``. Each integrates to one.

        Raises
        ------
        ValueError, TypeError
            As for `cdf`, and if no bandwidth can be found.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        Notes
        -----
        Thresholds of all rows together are one pass over columns of values for a `NadarayaWatsonRegressor`; others, and
        those of a `LocalLinearRegressor`, whose predictions make them differ, look at all pairs, O(m n t): 13 ns of
        one core each, and 40 ns for the smoothed `cdf`, with the Gaussian kernel in one column. Right to 1e-12 of the
        largest density that there can be, :math:`0.4 / h_y`.

        References
        ----------
        .. [1] M. Rosenblatt, "Conditional probability density and regression estimators", Multivariate Analysis II
           (1969), 25-31.
        .. [2] P. Hall, J. Racine and Q. Li, "Cross-validation and the estimation of conditional probability densities",
           JASA 99 (2004), 1015-1026.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.density([[0.1]], [1.5, 9.0], y_bandwidth=0.5).round(3)
        array([[0.324, 0.264]])
        """
        if rows_in_chunks(self, X, "a density needs"):
            return functions_of_chunks(self, X, y, "rule" if y_bandwidth is None else y_bandwidth, density=True)
        widths = y_bandwidths(self, "rule" if y_bandwidth is None else y_bandwidth)
        weighed = Weighed.of(self, X, "a density needs")
        threshold, with_axis = self._thresholds(weighed, y)

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            some, width = rows_of(threshold, rows)[:, number], float(widths[number])
            return known_smooth(weighed.recipe, problem, value, some, width, density=True, center=center)

        at_zero = normal_density(threshold / widths[:, None]) / widths[:, None]
        return without_axes(self, weighed.answered(answer, at_zero), with_axis)

    def _thresholds(self, weighed: Weighed, y: ArrayLike) -> tuple[Array, bool]:
        several = self.value_.ndim > 1  # type: ignore[attr-defined]  # set by fit
        return as_thresholds(y, len(weighed.problem.query), weighed.output.shape[1], several=several)
