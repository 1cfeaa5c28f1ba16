"""What a fitted regressor says of how sure it is; the numbers are those of `kernpool.inference`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth import RULES
from kernpool.core.moments import MOST_COLUMNS
from kernpool.estimators.calibrating import origin_of
from kernpool.estimators.smoothing_rows import (
    clusters_of,
    clusters_of_fit,
    columns_of,
    printed_columns,
    rank_reporter,
    read_places,
    shaped,
    shaped_critical,
    smoother_of,
    training_with_shares,
)
from kernpool.inference import Interval, Summary, intervals, summarise
from kernpool.inference.corrected import estimates
from kernpool.inference.intervals import check_options
from kernpool.inference.standard_errors import errors_of_each
from kernpool.inference.warnings import checked_errors, warn_of_empty, warn_of_ranks

Array = NDArray[np.float64]


class Inference:
    """Standard errors and intervals of a regressor."""

    def standard_error(
        self, X: ArrayLike, *, variance: str = "local", of: str = "fit", groups: ArrayLike | None = None
    ) -> Array:
        r"""Estimate the standard deviation of a prediction, as an estimate of the curve.

        .. math:: \widehat{\mathrm{se}}(x) = \hat\sigma(x) \Big( \sum_j l_j(x)^2 / w_j \Big)^{1/2}

        where l are the shares of the training outputs in the prediction, w the weights of the rows, and
        :math:`\hat\sigma(x)` the standard deviation of the noise around x. Bias is not in it.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        variance : {"local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"}, default="local"
            Where the noise is taken from. ``"local"``: the mean of squared leave-one-out residuals around x, in a
            window of twice the bandwidth, where noise varies smoothly. ``"sandwich"``: each row's own leave-one-out
            residual, :math:`\sum_j l_j^2 r_j^2`, which is ``"hc3"``; for noise that jumps. ``"nn"``: likewise,
            residuals from the three nearest rows, as in R's nprobust. ``"hc0"`` to ``"hc2"``: other residuals, for
            comparison. With groups ``"hc0"`` and ``"hc1"`` are the cluster-robust CR0 and CR1, of residuals of the fit
            itself, and the default leaves whole clusters out; ``"nn"`` and ``"hc2"`` are refused.
        of : {"fit", "derivative"}, default="fit"
            Of `predict`, or of `derivative`.
        groups : array_like of shape (n,), optional
            Cluster of each training row, such as a school or a patient, where rows of a cluster share noise; as for
            `confidence_interval`. By default those that `fit` was given, if any.

        Returns
        -------
        ndarray of shape (m,), (m, c), (m, d) or (m, d, c)
            As `predict` or `derivative`. NaN where the window is empty, whatever `empty` says, because what a policy
            puts there has no standard error; where `confidence_interval` has none, for the same reasons; and for slopes
            that the rows of the window do not tell.

        Raises
        ------
        ValueError
            If there are fewer than five rows or clusters, or the fit takes all degrees of freedom; or, for derivatives
            of a local constant fit, the kernel is not the Gaussian.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        EmptyWindowWarning, ExtrapolationWarning, InferenceWarning
            As for `confidence_interval`.
        RankDeficiencyWarning
            As for `predict`; or if the rows of a window tell no slope.

        See Also
        --------
        confidence_interval : Which takes the bias off first; twice a standard error on both sides does not.

        Notes
        -----
        Weights are frequencies: a weight of 3 is three equal rows. With ``extrapolate="clip"`` it is the error of the
        plane. The first call leaves out each training row once, one pass over pairs of them; the model keeps the
        result. Beyond that four passes over rows and places, and O(n + m) memory.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.1, 0.9, 2.1, 2.9, 4.1]
        >>> LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y).standard_error([[2.0]]).round(3)
        array([0.077])
        """
        smoother, places, training = read_places(self, X, of)
        clusters = clusters_of(self, smoother, groups)
        found = estimates(smoother, places, "naive", columns_of(smoother, of))
        of_columns = errors_of_each(smoother, training, places, found, variance, clusters)
        if smoother.recipe.degree:
            warn_of_ranks(found[0], smoother.columns, rank_reporter(self))
        warn_of_empty(found[0])
        errors = [checked_errors(*both)[0] for both in zip(found, of_columns, strict=True)]
        return shaped(self, X, errors, of)

    def confidence_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.95,
        method: str = "auto",
        variance: str = "local",
        groups: ArrayLike | None = None,
        simultaneous: bool | str = False,
        of: str = "fit",
        n_resamples: int = 999,
        random_state: Any = 0,
    ) -> Interval:
        r"""Find intervals that cover the true curve, each place by itself or all of it at once.

        .. math:: \tilde m(x) \pm t_{\nu(x)} \, \hat\sigma(x)\, \lVert \tilde l(x) \rVert, \qquad
                  \tilde m = 2 \hat m_h - \hat m_{\sqrt 2 h}

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        level : float, default=0.95
            Probability that an interval covers the curve at its place, or a band the curve at all of them.
        method : {"robust", "quadratic", "naive", "undersmoothed", "auto"}, default="auto"
            ``"robust"`` corrects the bias of second order, and counts what that adds to the variance. So does
            ``"quadratic"``, in one to three numeric columns, by a local quadratic fit at the same bandwidth: with
            ``variance="nn"`` and a Gaussian these are ``tau.bc`` and ``se.rb`` of R's nprobust at ``rho=1``. It is
            wider, by about 10 percent in one column and by half in two, and covers where the bandwidth is too large
            for ``"robust"`` (see Notes). ``"auto"`` takes ``"quadratic"`` for the curve if the bandwidth was given, or
            is of a rule, and ``"robust"`` if the rows chose it, for slopes, and for other numbers of columns.
            ``"naive"`` is the prediction and its standard error, whose bias makes it miss peaks; ``"undersmoothed"`` a
            local linear fit at the bandwidth times :math:`n^{-1/20}`. The last two are for comparison.
        variance : {"local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"}, default="local"
            As for `standard_error`.
        groups : array_like of shape (n,), optional
            Cluster of each training row, such as a school or a patient, where rows of a cluster share noise: the
            variance is :math:`\sum_g (\sum_{j \in g} \tilde l_j r_j)^2`, with residuals r from fits without the whole
            cluster, and Student's quantile that of the number of clusters that count at x, less one. It takes the place
            of `variance`. By default the groups that `fit` was given, if any; ``groups=range(n)`` is rows that are
            independent.
        simultaneous : bool or {"tube", "multiplier"}, default=False
            Whether the intervals hold all at once, output by output. ``"tube"``: along the whole curve between the
            least and the largest place in X, by the tube formula; for one numeric column, at one combination of levels,
            with a kernel without an edge and independent rows. ``"multiplier"``: at all places of X, whatever they are,
            by random draws. True takes the former where it holds.
        of : {"fit", "derivative"}, default="fit"
            The curve, or its slope per unit of each numeric column.
        n_resamples : int, default=999
            Draws of the multiplier bootstrap, whose critical value has an error of about .03 then.
        random_state : int, RandomState, Generator or None, default=0
            Its seed.

        Returns
        -------
        Interval
            ``center``, ``lower``, ``upper``, ``standard_error`` as `predict` or `derivative`; ``df`` of shape (m,), or
            with groups (m, d) for the slopes of several columns; ``critical`` and ``band`` of a band.

        Raises
        ------
        ValueError, TypeError
            As for `standard_error`; or if level or method are out of range, the tube formula is asked for and does not
            hold, or there are too few draws for the level.

        Warns
        -----
        EmptyWindowWarning
            If there is no training row in the window of a place: its interval is NaN, whatever `empty` says.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        InferenceWarning
            If residuals around a place are all zero; where they are of less than one row or two clusters, and the
            interval is NaN; or where the correction of ``"robust"`` is larger than two standard errors: the bandwidth
            is too wide for the curve there, and intervals cover far less than they say.
        RankDeficiencyWarning
            If the rows around a place determine no plane, once per fit as for `predict`; or, for
            ``method="quadratic"``, no quadratic, or for slopes none. A local constant fit hears of planes, too, since
            they take its bias off.

        Notes
        -----
        The center is not `predict`: a curve that is fitted best is biased by about as much as it is uncertain. Local
        linear fits make it for both regressors, because a local constant fit is biased at the ends in a way that no
        multiple of itself takes off. The width is in standard errors of this center, which are larger than those of
        `standard_error`.

        How often 95 percent intervals cover, at a bandwidth found on the same rows: 95.4 percent for 200 rows (mean of
        seven places; 94.2 at the worst), 94.3 for another curve and 500 rows (93.2), and 96.2 for two columns and 400
        rows (89.2 at the top of a hill). Naive ones cover 92.5, 92.0 and 81.9 percent there, and at the worst place
        84.4, 86.2 and 20.8. Each figure is of 600 or 1000 samples. From three columns on intervals are approximate. At
        twice the bandwidth found (the first setting, 500 samples, ``python benchmarks/interval_coverage.py --runs 500
        twice-200 thrice-200``) the quadratic ones cover 95.9 percent and the robust ones 89.0; at 2.8 times,
        89.3 and 71.5: no correction covers at a bandwidth that is far too large.

        A band is wider by about half: its critical value is that of the tube formula [2]_, from the length of the path
        that the shares run along, on a grid of eight places to a bandwidth. In the first two settings it held all of
        the curve in 97.1 and 94.3 percent of the samples. Where the formula does not hold the critical value is a
        quantile of the largest error over X, in standard errors, with noise drawn at random [3]_: normal numbers, times
        residuals where the variance is a sandwich, one for each cluster where there are any.

        Ridges of planes stay as they are, in rows. With ``scale="rank"`` all is done in ranks, as given; slopes are per
        unit of the column. With ``extrapolate="clip"`` the center is not clipped. Six passes over rows and places with
        a Gaussian, else eight, and one over pairs of training rows that the model keeps. With groups all pairs of rows
        and places, in O(n + m) memory, and residuals by as many plain passes as the logarithm of the number of
        clusters, kept too.

        References
        ----------
        .. [1] S. Calonico, M. D. Cattaneo and M. H. Farrell, "On the effect of bias estimation on coverage accuracy in
           nonparametric inference", JASA 113 (2018), 767-779.
        .. [2] J. Sun and C. R. Loader, "Simultaneous confidence bands for linear regression and smoothing", Annals of
           Statistics 22 (1994), 1328-1345.
        .. [3] V. Chernozhukov, D. Chetverikov and K. Kato, "Anti-concentration and honest, adaptive confidence bands",
           Annals of Statistics 42 (2014), 1787-1818.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> x = np.linspace(0.0, 1.0, 50)
        >>> model = LocalLinearRegressor(bandwidth=0.2).fit(x[:, None], 3.0 * x + np.cos(40.0 * np.arange(50)))
        >>> found = model.confidence_interval([[0.5]])
        >>> bool(found.lower[0] < 1.5 < found.upper[0])
        True
        >>> print(model.confidence_interval([[0.0], [0.5], [1.0]], simultaneous=True))
        places    3
        level     0.95, the whole curve at once by the tube formula, critical value 2.76
        method    quadratic
        <BLANKLINE>
          place  center  lower   upper  se     df    n_eff
          0      0.1865  -1.052  1.425  0.421  34.4  17.8
          1      1.496   0.9846  2.008  0.177  47.6  34
          2      3.149   1.904   4.394  0.423  34.4  17.8
        >>> wave = model.confidence_interval([[0.2], [0.5]], groups=np.arange(50) // 5)
        >>> wave.df.round(1)
        array([2.4, 2.6])
        """
        check_options(level, method, variance, simultaneous)
        smoother, places, training = read_places(self, X, of)
        method = default_method(self, of) if method == "auto" else method
        found = intervals(
            smoother,
            training,
            places,
            columns_of(smoother, of),
            level=level,
            method=method,
            variance=variance,
            clusters=clusters_of(self, smoother, groups),
            simultaneous=simultaneous,
            n_resamples=n_resamples,
            random_state=random_state,
            report_rank=rank_reporter(self),
        )
        center, lower, upper, error = (
            shaped(self, X, [getattr(one, name) for one in found], of)
            for name in ("center", "lower", "upper", "standard_error")
        )
        critical = shaped_critical([one.critical for one in found], center.shape[1:])
        first, dfs = found[0], [one.df for one in found]
        df = dfs[0] if all(np.array_equal(dfs[0], one, equal_nan=True) for one in dfs) else np.stack(dfs, axis=1)
        axes = ("output",) if of == "fit" else ("column", "output")
        sizes = smoother.effective_rows(places)
        return Interval(center, lower, upper, error, df, first.level, method, critical, first.band, axes, sizes)

    def summary(self) -> Summary:
        """Sum up the fit: effective parameters, residual noise, R2 with and without the rows themselves, criteria.

        Returns
        -------
        Summary
            A record that prints well; of its numbers one per output.

        Raises
        ------
        ValueError
            If there are fewer than five rows.
        TypeError
            If the model was fitted to chunks.

        Notes
        -----
        Two passes over pairs of training rows. The first leaves each row out, and intervals use what it finds. Of a
        model fitted with `groups` it also says how many clusters there are, how large they are, and what of y the rows
        of other clusters explain: its bandwidths were searched by the leave-cluster-out error, and `loo_error_` is
        that. All other numbers are about rows as if each were independent of the rest of its cluster.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> x = np.linspace(0.0, 1.0, 40)
        >>> print(LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], np.sin(5 * x) + np.cos(99 * x) / 5).summary())
        LocalLinearRegressor: 40 rows, 1 column, 1 output
        kernel gaussian, bandwidth as given
        <BLANKLINE>
          column  bandwidth  relevance
          0       0.1
        <BLANKLINE>
          effective parameters    5.45 (tr H), 4.29 (tr H'H)
          residual sd             0.1721
          R2                      0.9533, leave-one-out 0.9375
          AICc, GCV               -2.304; 0.03313
          leave-one-out error     0.03312
          effective rows per fit  7.34 to 13.8, median 13.6; 15.0% below 10
        """
        smoother = smoother_of(self)
        name = self.__dict__.get("bandwidth")
        chosen = f"bandwidth by {name!r}" if isinstance(name, str) else "bandwidth as given"
        ridge = float(np.max(smoother.recipe.ridge))
        chosen += f", ridge {ridge:.3g}" if ridge > 0 else ""
        training, clusters = training_with_shares(self, smoother), clusters_of_fit(self, smoother)
        return summarise(smoother, training, type(self).__name__, chosen, printed_columns(self), clusters)


def default_method(model: Any, of: str) -> str:
    """Return the method of intervals that covers: the quadratic one unless the rows chose the bandwidth.

    A bandwidth that minimises an error leaves a bias that the default correction removes; a larger one does not. The
    local quadratic fit is no better for slopes, and is for one to three numeric columns.
    """
    columns = model.bandwidth_.shape[0] if model.encoding_ is None else len(model.encoding_.numeric)
    chosen = origin_of(model) == "found" and not (isinstance(model.bandwidth, str) and model.bandwidth in RULES)
    return "robust" if of != "fit" or chosen or not 1 <= columns <= MOST_COLUMNS else "quadratic"
