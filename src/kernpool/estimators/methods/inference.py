"""Standard errors, confidence intervals and diagnostics of a fitted regressor.

The numbers are those of `kernpool.inference`; `Inference` and `Diagnostics` prepare the inputs and the shapes of
results. Diagnostics are residuals, leverage and noise of the rows, and slope maps at other bandwidths.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth import RULES
from kernpool.core.moments import MOST_COLUMNS
from kernpool.estimators.fitted_model import (
    clusters_of,
    clusters_of_fit,
    columns_of,
    printed_columns,
    rank_reporter,
    read_places,
    read_query,
    scale_of,
    shaped,
    shaped_critical,
    smoother_of,
    training_of,
    training_with_shares,
)
from kernpool.estimators.methods.calibration import origin_of
from kernpool.execution.error_messages import abbreviate
from kernpool.inference import Interval, Summary, as_level, intervals, summarise
from kernpool.inference.confidence.intervals import check_options
from kernpool.inference.model_summary import Residuals, residuals
from kernpool.inference.sizer import SlopeMap, slope_map
from kernpool.inference.variance.standard_errors import checked_errors, errors_of_each, warn_of_empty, warn_of_ranks
from kernpool.smoother import EvaluationPoints, estimates

Array = NDArray[np.float64]


class Inference:
    """Mixin of regressors: standard errors, confidence intervals and a summary of the fit."""

    def standard_error(
        self, X: ArrayLike, *, variance: str = "local", quantity: str = "fit", groups: ArrayLike | None = None
    ) -> Array:
        r"""Estimate the standard error of the fitted curve or of its slopes; bias is not included.

        .. math:: \widehat{\mathrm{se}}(x) = \hat\sigma(x) \Big( \sum_j l_j(x)^2 / w_j \Big)^{1/2}

        where l are the linear weights of the training outputs, w the frequency weights of the rows, and
        :math:`\hat\sigma(x)` the standard deviation of the noise around x.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        variance : {"local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"}, default="local"
            Where the noise is taken from. ``"local"``: the mean of squared leave-one-out residuals around x, in a
            window of twice the bandwidth, where noise varies smoothly. ``"sandwich"``: each row's own leave-one-out
            residual, :math:`\sum_j l_j^2 r_j^2`, which is ``"hc3"``; for noise that jumps. ``"nn"``: likewise,
            residuals from the three nearest rows, as in R's nprobust. ``"hc0"`` to ``"hc2"``: other residuals, for
            comparison. With groups ``"hc0"`` and ``"hc1"`` are the cluster-robust CR0 and CR1, of residuals of the fit
            itself, and the default leaves whole clusters out; ``"nn"`` and ``"hc2"`` are refused.
        quantity : {"fit", "derivative"}, default="fit"
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
        smoother, places, training = read_places(self, X, quantity)
        clusters = clusters_of(self, smoother, groups)
        found = estimates(smoother, places, "naive", columns_of(smoother, quantity))
        of_columns = errors_of_each(smoother, training, places, found, variance, clusters)
        if smoother.recipe.degree:
            warn_of_ranks(found[0], smoother.columns, rank_reporter(self))
        warn_of_empty(found[0])
        errors = [checked_errors(*both)[0] for both in zip(found, of_columns, strict=True)]
        return shaped(self, X, errors, quantity)

    def confidence_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.95,
        method: str = "auto",
        variance: str = "local",
        groups: ArrayLike | None = None,
        simultaneous: bool | str = False,
        quantity: str = "fit",
        n_resamples: int = 999,
        random_state: Any = 0,
    ) -> Interval:
        r"""Compute pointwise confidence intervals or a simultaneous band for the true regression curve.

        .. math:: \tilde m(x) \pm t_{\nu(x)} \, \hat\sigma(x)\, \lVert \tilde l(x) \rVert, \qquad
                  \tilde m = 2 \hat m_h - \hat m_{\sqrt 2 h}

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        level : float, default=0.95
            Confidence level: coverage of each interval, or of a band at all points together.
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
        quantity : {"fit", "derivative"}, default="fit"
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
        points    3
        level     0.95, simultaneous for the whole curve, by the tube formula, critical value 2.76
        method    quadratic
        <BLANKLINE>
          point  center  lower   upper  se     df    n_eff
          0      0.1865  -1.052  1.425  0.421  34.4  17.8
          1      1.496   0.9846  2.008  0.177  47.6  34
          2      3.149   1.904   4.394  0.423  34.4  17.8
        >>> wave = model.confidence_interval([[0.2], [0.5]], groups=np.arange(50) // 5)
        >>> wave.df.round(1)
        array([2.4, 2.6])
        """
        level = as_level(level)
        check_options(method, variance, simultaneous)
        smoother, places, training = read_places(self, X, quantity)
        method = default_method(self, quantity) if method == "auto" else method
        found = intervals(
            smoother,
            training,
            places,
            columns_of(smoother, quantity),
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
            shaped(self, X, [getattr(one, name) for one in found], quantity)
            for name in ("center", "lower", "upper", "standard_error")
        )
        critical = shaped_critical([one.critical for one in found], center.shape[1:])
        first, dfs = found[0], [one.df for one in found]
        df = dfs[0] if all(np.array_equal(dfs[0], one, equal_nan=True) for one in dfs) else np.stack(dfs, axis=1)
        axes = ("output",) if quantity == "fit" else ("column", "output")
        sizes = smoother.effective_rows(places)
        return Interval(center, lower, upper, error, df, first.level, method, critical, first.band, axes, sizes)

    def summary(self) -> Summary:
        """Summarise the fit: effective parameters, residual standard deviation, R2, leave-one-out R2, AICc and GCV.

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


def default_method(model: Any, quantity: str) -> str:
    """Return the default method of confidence intervals, "quadratic" or "robust", for a fitted model.

    It is "quadratic" for the fit itself of one to three numeric columns, unless the bandwidth was found by a search or
    the plug-in, and else "robust". The "robust" correction removes the bias that a bandwidth of least error leaves, but
    not that of a larger one. The local quadratic fit is no better for slopes.
    """
    columns = model.bandwidth_.shape[0] if model.encoding_ is None else len(model.encoding_.numeric)
    chosen = origin_of(model) == "found" and not (isinstance(model.bandwidth, str) and model.bandwidth in RULES)
    return "robust" if quantity != "fit" or chosen or not 1 <= columns <= MOST_COLUMNS else "quadratic"


BANDWIDTHS, PLACES = 40, 201
NARROWEST = 3.0  # mean distances between rows: windows of seven or eight rows on average


class Diagnostics:
    """Mixin of regressors: residuals of the training rows, and the SiZer map of significant slopes."""

    def residuals(self) -> Residuals:
        """Return leave-one-out residuals, leverages and local noise of the training rows.

        After a fit with `groups`, residuals and noise are leave-cluster-out, as `leave_one_out` is: each row less the
        fit to the rows of all other clusters.

        Returns
        -------
        Residuals
            With `fitted`, `residual` and `noise` of the shape of y; `leverage` and `weight` of shape (n,); `cluster` of
            that shape, or None.

        Raises
        ------
        ValueError
            If there are fewer than five rows, or the fit takes all degrees of freedom.
        TypeError
            If the model was fitted to chunks.

        See Also
        --------
        kernpool.ResidualDisplay : Draws them.

        Notes
        -----
        Two passes over pairs of training rows, and one more that the model keeps.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.0, 1.0, 3.0, 3.0, 9.0]
        >>> LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y).residuals().residual.round(3)
        array([ 2.   , -0.286, -0.25 , -3.143,  4.5  ])
        """
        smoother = smoother_of(self)
        found = residuals(smoother, training_of(self, smoother), clusters_of_fit(self, smoother))
        if self.value_.ndim == 1:  # type: ignore[attr-defined]  # set by fit
            found = replace(found, **{name: getattr(found, name)[:, 0] for name in ("fitted", "residual", "noise")})
        return found

    def slope_map(
        self,
        X: ArrayLike | None = None,
        *,
        bandwidths: ArrayLike | None = None,
        level: float = 0.95,
        method: str = "naive",
        variance: str = "local",
        simultaneous: bool = True,
        fewest_rows: float = 5.0,
    ) -> SlopeMap:
        """Compute the SiZer map: significant increases and decreases of the curve at many bandwidths.

        Parameters
        ----------
        X : array_like of shape (g, 1), optional
            Evaluation points; by default 201 from the least input to the largest.
        bandwidths : array_like of shape (b,), optional
            By default 40 in equal steps of their logarithms, from three mean distances between rows to the
            range of the inputs, and as far as half and twice the bandwidth of the model. With ``scale="rank"`` they
            are shares of the rows.
        level : float, default=0.95
            Probability that all intervals of one bandwidth cover.
        method : str, default="naive"
            As in `confidence_interval`. By default the bias is not corrected: a row of the map is about the curve
            smoothed with its bandwidth.
        variance : str, default="local"
            As in `confidence_interval`.
        simultaneous : bool, default=True
            Whether intervals of a bandwidth cover all at once.
        fewest_rows : float, default=5
            Windows of fewer rows say nothing; each row counts as K((x - x_j)/h)/K(0).

        Returns
        -------
        SlopeMap
            With `sign` of shape (b, g): 1 rising, -1 falling, 0 neither for certain.

        Raises
        ------
        ValueError
            If the model has several columns, levels, outputs or groups of rows, or an argument is out of its range.
        TypeError
            If the model was fitted to chunks.

        See Also
        --------
        kernpool.SiZerDisplay : Draws it.

        Notes
        -----
        The slopes are those of local lines for both regressors, with any kernel. Intervals hold along each row of the
        map, not for all rows together: of 400 samples of 100 rows about a level line, rows of the map that are not all
        0 were 1, 2, 4 and 5 in a hundred at bandwidths .03, .06, .12 and .3 of the range, where 5 are allowed. For each
        bandwidth one leave-one-out pass over the rows and one band; 40 of them for 442 rows take three seconds.

        References
        ----------
        .. [1] P. Chaudhuri and J. S. Marron, "SiZer for exploration of structures in curves", JASA 94 (1999), 807-823.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> x = np.linspace(0.0, 1.0, 80)
        >>> y = np.abs(x - 0.5) + 0.02 * np.cos(40.0 * np.arange(80))
        >>> found = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], y).slope_map([[0.2], [0.5], [0.8]])
        >>> found.sign.shape, found.sign[20]
        ((40, 3), array([-1,  0,  1], dtype=int8))
        """
        smoother = replace(smoother_of(self), kept=None)  # of other bandwidths, which nobody asks for again
        self._refuse_several(smoother.columns)
        scale, key = scale_of(self), smoother.keys.rows.array[smoother.weight > 0, 0]
        if X is None:
            inputs = self.key_[smoother.weight > 0, 0]  # type: ignore[attr-defined]  # set by fit
            numeric = np.linspace(float(inputs.min()), float(inputs.max()), PLACES)[:, None]
        else:
            numeric = np.asarray(read_query(self, X)[0], dtype=np.float64)
        if bandwidths is None:
            bandwidths = _default_bandwidths(key, float(self.bandwidth_[0]))  # type: ignore[attr-defined]  # set by fit
        widths = np.atleast_1d(np.asarray(bandwidths, dtype=np.float64))
        if widths.ndim != 1 or not widths.size or not np.all(np.isfinite(widths) & (widths > 0)):
            raise ValueError(f"bandwidths must be positive finite numbers of shape (b,), got {abbreviate(bandwidths)}")
        return slope_map(
            smoother,
            EvaluationPoints(np.asarray(scale.apply(numeric), dtype=np.float64)),
            numeric[:, 0],
            widths,
            level=level,
            method=method,
            variance=variance,
            simultaneous=simultaneous,
            fewest_rows=fewest_rows,
        )

    def _refuse_several(self, columns: int) -> None:
        model: Any = self
        if model.encoding_ is not None and not model.encoding_.numbers_alone:
            raise ValueError(
                "a slope map is for one numeric column, and this model has categorical columns; fit one numeric "
                "column alone"
            )
        if model.key_group_ is not None:
            raise ValueError(
                "a slope map takes rows as independent, and this model was fitted with groups=; use "
                "confidence_interval(quantity='derivative'), which counts groups, at one bandwidth after the other"
            )
        if columns != 1:
            raise ValueError(f"a slope map is for one column, and this model has {columns}; fit a model of one column")
        if model.value_.ndim > 1 and model.value_.shape[1] > 1:
            raise ValueError(
                f"a slope map is for one output, and this model has {model.value_.shape[1]}; fit one after the other"
            )


def _default_bandwidths(key: Array, bandwidth: float) -> Array:
    """Return the default bandwidths of a SiZer map of significant slopes, evenly spaced on a log scale."""
    width = float(np.ptp(key)) or 1.0
    low, high = min(NARROWEST * width / len(key), width / 2), width
    if np.isfinite(bandwidth):
        low, high = min(low, bandwidth / 2), max(high, min(2 * bandwidth, 10 * width))
    return np.geomspace(max(low, 1e-3 * width), high, BANDWIDTHS)
