"""What regressors answer by resampling; `resampling.py` has the work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.estimators.resampling import bootstrap_of, significance
from kernpool.inference.bootstrap import Resampling
from kernpool.inference.results import TestResult

Array = NDArray[np.float64]


class Resampled:
    """Methods of a fitted regressor that draw at random, the same for the same seed."""

    def bootstrap(
        self,
        X: ArrayLike | None = None,
        statistic: Callable[[Array], Any] | None = None,
        *,
        n_resamples: int = 999,
        kind: str = "wild",
        groups: ArrayLike | None = None,
        random_state: Any = 0,
        max_bytes: int = 1 << 30,
    ) -> Array:
        r"""Resample the fit, at the bandwidth that it has.

        .. math:: \hat m^*(x) = \sum_j l_j(x)\, y^*_j, \qquad y^*_j = \hat m(x_j) + r_j \xi_j

        Parameters
        ----------
        X : array_like of shape (m, d), optional
            Where; by default the training rows.
        statistic : callable, optional
            Takes the fit of a resample, of shape (m,) or (m, c), and returns a number or an array, such as
            ``lambda fit: fit.max()``. By default the fit itself.
        n_resamples : int, default=999
            How many.
        kind : {"wild", "mammen", "gaussian", "residual", "pairs", "poisson"}, default="wild"
            What is drawn. The first three multiply the leave-one-out residual r of each row by a random sign, Mammen's
            two points, or a normal number, so that noise may differ from row to row [1]_ [2]_. ``"residual"`` gives
            rows the residuals of others. ``"pairs"`` draws rows with replacement, and ``"poisson"`` counts each row a
            Poisson number of times by a hash of its number, whichever chunk it comes in.
        groups : array_like of shape (n,), optional
            Labels of clusters of the training rows; all rows of one share a draw. Not for ``"residual"``. By default
            the groups that `fit` was given, if any.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.
        max_bytes : int, default=2**30
            The largest result allowed.

        Returns
        -------
        ndarray of shape (n_resamples, m), (n_resamples, m, c), or (n_resamples, ...) of a statistic
            One resample after the other; the same bits for any number of threads.

        Raises
        ------
        ValueError
            If the result would be larger than `max_bytes`, a weight is no whole number, there is a single group, the
            model was fitted to chunks and the kind is not ``"poisson"``, or an argument is out of its range.

        Warns
        -----
        EmptyWindowWarning
            If a query has no training row within the kernel's support, in a resample too, and `empty` is ``"nearest"``,
            the default, or ``"nan"``. Of rows in chunks windows of resamples are NaN with ``"nearest"`` and ``"mean"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        Notes
        -----
        Shares do not depend on y, so nothing is fitted again: resampled outputs are columns that are pooled together, a
        pass for up to 64 of them. ``"pairs"`` and ``"poisson"`` take a pass each.

        The spread of the result is that of the fit around its mean, and its mean is a smoothed fit: smoothing bias is
        not in it. ``np.std(result, axis=0)`` is a standard error; percentiles are no confidence interval for the truth.
        A clipped fit (``extrapolate="clip"``) is resampled as it is without.

        References
        ----------
        .. [1] E. Mammen, "Bootstrap and wild bootstrap for high dimensional linear models", Annals of Statistics 21
           (1993), 255-285.
        .. [2] R. Davidson and E. Flachaire, "The wild bootstrap, tamed at last", Journal of Econometrics 146 (2008),
           162-169.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> from kernpool.datasets import make_sine_power
        >>> sample = make_sine_power(random_state=0)
        >>> model = NadarayaWatsonRegressor(bandwidth=0.3).fit(sample.x_train[:, None], sample.y_train)
        >>> tops = model.bootstrap([[1.0], [2.0], [3.0]], lambda fit: fit.argmax(), n_resamples=99)
        >>> tops.shape, float((tops == 1).mean()) > 0.9
        ((99,), True)
        """
        how = Resampling(kind, n_resamples, random_state, max_bytes)
        return bootstrap_of(self, X, how, statistic, groups)

    def significance_test(
        self,
        columns: int | str | Sequence[int | str],
        *,
        method: str = "residual",
        kind: str = "wild",
        n_resamples: int = 399,
        random_state: Any = 0,
    ) -> TestResult:
        r"""Test whether columns matter for y, given the others.

        .. math:: T = \sum_i u_i \sum_{j \ne i} K_{ij} u_j \Big/ \sqrt{2 \sum_i u_i^2 \sum_{j \ne i} K_{ij}^2 u_j^2}

        with the residuals u of a fit without these columns, and weights K of pairs by all of them.

        Parameters
        ----------
        columns : int, str, or sequence of them
            Positions or names. Several are tested together: whether any of them matters.
        method : {"residual", "gradient"}, default="residual"
            By the residuals of a fit without the columns [1]_ [2]_ [3]_; or, as ``npsigtest`` of R's np does, by the
            slopes in the fit with them over their standard errors [4]_, for numeric columns. The first is the more
            powerful.
        kind : {"wild", "mammen", "gaussian"}, default="wild"
            What the leave-one-out residuals of a resample are multiplied by: random signs, the two points of Mammen, or
            normal numbers. They stay at their rows, so that noise may differ from row to row.
        n_resamples : int, default=399
            How many; a p-value near .05 then has a standard deviation of .011.
        random_state : int, RandomState, Generator or None, default=0
            Seed of the draws.

        Returns
        -------
        TestResult
            Whose `bandwidth` is that of pairs, or for ``"gradient"`` that of the fit.

        Raises
        ------
        TypeError
            If the model was fitted to chunks.
        ValueError
            If there is no such column, a column does not vary, there are several outputs, fewer than five rows, or no
            residuals; a weight is no whole number; or the method is for numeric columns.

        Notes
        -----
        The fit without the columns is of the degree of the model, Gaussian, and has bandwidths of its own, found by the
        criterion of the model, or by leave-one-out where that had none. Pairs are weighed by a Gaussian with bandwidths
        :math:`\hat\sigma_a n^{-1/(4 + d)}`, not those of the fit, which may be infinite for the columns that are
        tested; their smoothings are at most :math:`n^{-2/(4 + d)}`. The normal limit of T is not used: it comes slowly.

        With ``"gradient"`` the slopes are those of local planes at the bandwidths of the model, and a resample has the
        fit with the columns at their medians.

        Three passes over pairs of training rows, one column of values for each resample.

        References
        ----------
        .. [1] Y. Fan and Q. Li, "Consistent model specification tests: omitted variables and semiparametric functional
           forms", Econometrica 64 (1996), 865-890.
        .. [2] P. Lavergne and Q. Vuong, "Nonparametric significance testing", Econometric Theory 16 (2000), 576-601.
        .. [3] J. Gu, D. Li and D. Liu, "Bootstrap non-parametric significance test", Journal of Nonparametric
           Statistics 19 (2007), 215-230.
        .. [4] J. S. Racine, "Consistent significance testing for nonparametric regression", Journal of Business and
           Economic Statistics 15 (1997), 369-378.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> random = np.random.default_rng(0)
        >>> X = random.uniform(size=(100, 2))
        >>> model = LocalLinearRegressor().fit(X, np.sin(6 * X[:, 0]) + 0.3 * random.normal(size=100))
        >>> model.significance_test(0).p_value, model.significance_test(1).p_value > 0.05
        (0.0025, True)
        """
        return significance(self, columns, method, kind, n_resamples, random_state)
