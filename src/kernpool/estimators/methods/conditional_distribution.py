"""The conditional distribution of y at given rows, as an object: functions, quantiles, draws and scores.

The numbers are those of `kernpool.distribution`: a `ConditionalDistribution` evaluates functionals of its outcomes.
`array_outcomes` makes those in memory: outputs, or residuals around the fit, with the kernel weights at the rows.
`ConditionalDistributions` is the mixin of regressors; bandwidths in y and in X are searched for below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array
from kernpool.bandwidth import BandwidthSearch
from kernpool.data import labels_of_rows, refuse_other_labels, unshared
from kernpool.distribution import (
    ArrayOutcomes,
    DistributionFunction,
    Outcomes,
    ProbabilityTransform,
    Quantiles,
    RandomDraws,
    RankedScore,
    StoredOutcomes,
    as_levels,
    as_thresholds,
    levels_around,
    without_axes,
    without_ends,
)
from kernpool.distribution.scoring_rules import check_y_bandwidth, find_y_bandwidth, indicators, numeric_y_bandwidth
from kernpool.estimators.bandwidth import choose_bandwidth, search_options
from kernpool.estimators.fitted_model import output_shape, points_of, read_query
from kernpool.estimators.limits import refuse, smoother_of
from kernpool.estimators.model import FittedModel, NamedCalls, as_fitted
from kernpool.estimators.training_rows import as_outputs
from kernpool.execution import abbreviate, as_count, as_level, check_choice, current_progress
from kernpool.execution.interval import Interval
from kernpool.inference import as_random
from kernpool.smoother import Smoother


def array_outcomes(model: FittedModel, X: ArrayLike | None) -> tuple[ArrayOutcomes, Smoother]:
    """Return the outcomes of a fitted model at X, and its rows.

    X=None means at the training rows, held out as the fit leaves them out.
    """
    smoother, dtype = smoother_of(model), np.result_type(model.key_, model.value_)
    output = np.asarray(model.value_, dtype=np.float64)
    output = output.reshape(len(output), -1)
    if X is None:
        local = smoother.left_out_problem(smoother.exclusion)
    else:
        numeric, code = read_query(model, X)
        local = smoother.problem(points_of(model, unshared(numeric), code))
        dtype = np.result_type(numeric, dtype)
    whole, recipe = replace(local, degree=0), smoother.recipe  # the weights are those of local constants
    if not recipe.degree:
        return ArrayOutcomes(recipe, whole, output, dtype=dtype), smoother
    left_out = smoother.left_out
    fit = left_out[0] if X is None else smoother.fit(local).fit.intercept
    return ArrayOutcomes.of_residuals(recipe, whole, output, left_out, fit, dtype), smoother


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalDistribution(NamedCalls):
    r"""Conditional distribution of y at given rows, made by ``model.conditional_distribution(X)``.

    .. math:: F(y \mid x) = \sum_{j:\, v_j \le y} \alpha_j(x) \qquad \text{or} \qquad
              \sum_j \alpha_j(x)\, \Phi\big((y - v_j) / h_y\big)

    with the weights alpha of the training rows at x (`attention_weights`).

    Parameters
    ----------
    outcomes : Outcomes
        Outcomes with their weights.
    outputs : int
        Number of outputs.
    flat : bool
        Whether y was fitted with one dimension.
    y_bandwidth : ndarray of shape (c,), or None
        Bandwidths in y that smooth the distribution; None for steps.
    smoother : Smoother or None
        The rows of the model; None if they are not in memory.
    left_out : bool, default=False
        Whether the rows are the training rows, each left out.
    index : optional
        Labels of the rows, those of a frame of pandas.
    output_labels : sequence, optional
        Names of the outputs, if y was a frame of several.

    See Also
    --------
    pool_cdf, pool_quantile : The same of arrays, without a model.
    kernpool.CoverageDisplay : Compares forecasts with what happened.

    Notes
    -----
    A `NadarayaWatsonRegressor` weighs the outputs v themselves, so a quantile is one of them. A `LocalLinearRegressor`
    has planes, whose shares may be negative and are no distribution; it weighs the leave-one-out residuals
    :math:`v_j = y_j - \hat m_{-j}(x_j)` by the same kernel, and adds the prediction. So a bandwidth that is wide
    because the curve is straight does not mix up rows from everywhere. Rows that have nothing else in their window have
    no such residual and do not count. Empty windows get outputs all the same. The prediction is not clipped.

    The bandwidth is that of the mean. Where few rows count, the tails are the extremes of a small sample. O(n + m)
    memory. What X needs, such as the fit at its rows, is computed once; the object holds on to the rows of the model at
    that time, never changes, and may be shared among threads. Rows in chunks or partitions are read again for each
    question.

    Examples
    --------
    >>> from kernpool import NadarayaWatsonRegressor
    >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
    >>> y_at = model.conditional_distribution([[0.1], [3.0]])
    >>> y_at
    ConditionalDistribution of y at 2 rows
    >>> y_at.quantile([0.1, 0.5, 0.9])
    array([[1., 2., 9.],
           [5., 5., 5.]])
    >>> y_at.cdf(2.0).round(3)
    array([0.669, 0.   ])
    """

    outcomes: Outcomes
    outputs: int
    flat: bool
    y_bandwidth: Array | None = None
    smoother: Smoother | None = None
    left_out: bool = False
    index: Any = None
    output_labels: Sequence[Any] | None = None

    def __len__(self) -> int:
        return len(self.outcomes)

    def __repr__(self) -> str:
        rows = f"{len(self)} training rows, each left out" if self.left_out else f"{len(self)} rows"
        columns = "" if self.flat else f", {self.outputs} outputs"
        widths = "" if self.y_bandwidth is None else f", y_bandwidth {', '.join(f'{h:.3g}' for h in self.y_bandwidth)}"
        return f"ConditionalDistribution of y at {rows}{columns}{widths}"

    def cdf(self, y: ArrayLike) -> Array:
        """Compute the distribution function.

        Parameters
        ----------
        y : float, or array_like of shape (t,) or (m, t)
            Thresholds: the same for all rows, or a row of them for each; ``y[:, None]`` is one per row. With several
            outputs (m, c, t) instead of (m, t), where axes may have length 1. May be infinite.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            Probabilities, not falling with y; without smoothing exactly 0 below and 1 above all values that count. For
            empty windows that of what `empty` says.

        Raises
        ------
        ValueError
            If shapes do not go together, or y holds NaN.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

        See Also
        --------
        quantile : The inverse.
        pit : At the values that were observed.

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
        >>> model.conditional_distribution([[0.1], [3.0]]).cdf([0.5, 2.0, 9.0]).round(3)
        array([[0.   , 0.669, 1.   ],
               [0.   , 0.   , 1.   ]])
        >>> model.conditional_distribution([[0.1]], y_bandwidth=0.5).cdf(2.0).round(3)
        array([0.492])
        """
        return self._functions(y, density=False)

    def pdf(self, y: ArrayLike) -> Array:
        r"""Compute the density of a distribution that is smoothed in y.

        .. math:: f(y \mid x) = \sum_j \frac{\alpha_j(x)}{h_y}\, \varphi\Big(\frac{y - v_j}{h_y}\Big)

        Parameters
        ----------
        y : float, or array_like of shape (t,) or (m, t)
            Where, as for `cdf`.

        Returns
        -------
        ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
            Per unit of y, the slope of `cdf`. Each integrates to one.

        Raises
        ------
        ValueError
            As for `cdf`, and if the distribution has steps, made without `y_bandwidth`.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

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
        >>> model.conditional_distribution([[0.1]], y_bandwidth=0.5).pdf([1.5, 9.0]).round(3)
        array([[0.324, 0.264]])
        """
        if self.y_bandwidth is None:
            raise ValueError(
                "a density needs a bandwidth in y, and this distribution has steps; use "
                "conditional_distribution(X, y_bandwidth='rule'), or a number"
            )
        return self._functions(y, density=True)

    def _functions(self, y: ArrayLike, *, density: bool) -> Array:
        if np.ndim(y) > 1:  # thresholds for each row
            refuse_other_labels(X=self, y=y)
        threshold, with_axis = as_thresholds(y, len(self), self.outputs, several=not self.flat)
        found = self.outcomes.evaluate(DistributionFunction(threshold, self.y_bandwidth, density))
        return without_axes(found, self.flat, with_axis)

    def quantile(self, levels: ArrayLike = 0.5) -> Array:
        r"""Compute quantiles.

        .. math:: \hat Q(\tau \mid x) = \min \Big\{ v_j : \sum_{l:\, v_l \le v_j} \alpha_l(x) \ge \tau \Big\}

        Parameters
        ----------
        levels : float or array_like of shape (l,), default=0.5
            Quantile orders, probabilities in any order; by default the conditional median.

        Returns
        -------
        ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
            In the units of y. What `empty` says where a window is empty.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.
        TypeError
            If the distribution is smoothed in y, and its rows are in chunks or partitions.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

        See Also
        --------
        quantile_interval : How well quantiles are known.

        Notes
        -----
        Quantiles say nothing about values beyond those seen. Cost as of `pool_quantile`; rows in chunks are read again,
        some times. Smoothed ones are solved for by Newton's steps, about eight looks at all pairs for each level.

        References
        ----------
        .. [1] C. J. Stone, "Consistent nonparametric regression", Annals of Statistics 5 (1977), 595-620, section 1.
        .. [2] Q. Li and J. S. Racine, "Nonparametric estimation of conditional CDF and quantile functions with mixed
           categorical and continuous data", Journal of Business and Economic Statistics 26 (2008), 423-434.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.conditional_distribution([[0.1]]).quantile(0.9)
        array([9.])
        """
        level = as_levels(levels)
        found = self.outcomes.evaluate(Quantiles(level.ravel(), self.y_bandwidth, current_progress()))
        return without_axes(found.astype(self.outcomes.dtype, copy=False), self.flat, level.ndim > 0)

    def interval(self, level: float = 0.9) -> tuple[Array, Array]:
        """Compute the central interval: the quantiles that leave equal probabilities below and above.

        Parameters
        ----------
        level : float, default=0.9
            Probability of the interval.

        Returns
        -------
        lower, upper : ndarray of shape (m,) or (m, c)
            Quantiles of orders ``(1 - level) / 2`` and ``(1 + level) / 2``.

        Raises
        ------
        ValueError
            If the level is not between 0 and 1.
        TypeError
            As for `quantile`.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

        See Also
        --------
        kernpool.LocalLinearRegressor.prediction_interval : With guarantees of coverage in samples of any size.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.conditional_distribution([[0.1]]).interval(0.5)
        (array([1.]), array([9.]))
        """
        half = 0.5 * as_level(level)
        ends = self.quantile([0.5 - half, 0.5 + half])
        return ends[..., 0], ends[..., 1]

    def quantile_interval(self, levels: ArrayLike = 0.5, *, level: float = 0.95) -> Interval:
        r"""Compute quantiles with confidence intervals.

        .. math:: \big[\hat Q(r / n \mid x),\ \hat Q(s / n \mid x)\big], \qquad
                  n = \lVert \alpha(x) \rVert^{-2}, \quad P(\text{Bin}(n, \tau) < r),\,
                  P(\text{Bin}(n, \tau) \ge s) \le (1 - \text{level}) / 2

        Parameters
        ----------
        levels : float or array_like of shape (l,), default=0.5
            Of the quantiles, as for `quantile`.
        level : float, default=0.95
            Confidence level: coverage of each interval.

        Returns
        -------
        Interval
            With `center`, `lower` and `upper` in the shape of `quantile`; infinite where the window has too few rows
            for an end.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1, or the distribution is smoothed in y.
        TypeError
            If rows are in chunks or partitions.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

        See Also
        --------
        kernpool.LocalLinearRegressor.confidence_interval : For the mean.

        Notes
        -----
        As between order statistics of a sample: no density is estimated, and ends are values as quantiles are. The bias
        of a window, within which the distribution changes, is not corrected, and rows are taken as independent. For a
        `LocalLinearRegressor` the prediction is taken as known: an error of it that all rows of the window share is in
        their residuals, too, with the other sign. In empty windows intervals are infinite, whatever `empty` says.

        References
        ----------
        .. [1] J. D. Gibbons and S. Chakraborti, "Nonparametric Statistical Inference", 5th edition (2011), section 5.2.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> X, y = [[0.0]] * 100, [float(i) for i in range(100)]
        >>> model = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
        >>> found = model.conditional_distribution([[0.0]]).quantile_interval()
        >>> found.center, found.lower, found.upper
        (array([49.]), array([39.]), array([60.]))
        """
        tau, level = as_levels(levels), as_level(level)
        self._refuse_smooth("intervals of quantiles")
        problem, smoother = self.outcomes.in_memory().problem, self.smoother
        assert smoother is not None
        rows = smoother.effective_rows(problem)
        low, high = levels_around(tau.ravel(), rows, level)
        wanted = np.concatenate([np.broadcast_to(tau.ravel(), low.shape), low, high], axis=1).clip(0.0, 1.0)
        found = self.outcomes.evaluate(Quantiles(wanted)).astype(self.outcomes.dtype, copy=False)
        center, lower, upper = np.split(found, 3, axis=2)
        lower, upper = without_ends(low, high, (lower, upper))
        center, lower, upper = (without_axes(array, self.flat, tau.ndim > 0) for array in (center, lower, upper))
        axes = ("output",) * (center.ndim - 1 - tau.ndim)
        method, labels = "order statistics", None
        if tau.ndim:
            axes, labels = (*axes, "quantile"), tau.copy()
        return Interval(
            center, lower, upper, level, method, axes=axes, labels=labels, effective_rows=rows, index=self.index
        )

    def sample(self, size: int = 1, *, random_state: Any = None) -> Array:
        """Draw values of y.

        Parameters
        ----------
        size : int, default=1
            How many draws at each row.
        random_state : int, RandomState, Generator or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (m, size) or (m, size, c)
            Exact draws of training rows by their weights at x: their outputs, together if there are several; of planes
            the prediction plus their leave-one-out residuals; plus normal noise of standard deviation `y_bandwidth` if
            the distribution is smoothed. What `empty` says where a window is empty.

        Raises
        ------
        ValueError
            If `size` is not positive.
        TypeError
            If rows are in chunks or partitions.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> sorted(set(model.conditional_distribution([[0.1]]).sample(100, random_state=0)[0].tolist()))
        [1.0, 2.0, 9.0]
        """
        size, random = as_count("size", size), as_random(random_state)
        draws = RandomDraws(np.asarray(random.uniform(size=(len(self), size))))
        found = np.moveaxis(self.outcomes.evaluate(draws).astype(self.outcomes.dtype, copy=False), 1, 2)
        if self.y_bandwidth is not None:
            noise = self.y_bandwidth * np.asarray(random.normal(size=found.shape))
            found = (found + noise).astype(self.outcomes.dtype, copy=False)
        return found[..., 0] if self.flat else found

    def pit(self, y: ArrayLike | None = None, *, random_state: Any = None) -> Array:
        r"""Compute the probability integral transform: uniform if the distribution is right.

        .. math:: u_i = F(y_i^- \mid x_i) + U_i \big(F(y_i \mid x_i) - F(y_i^- \mid x_i)\big)

        Parameters
        ----------
        y : array_like of shape (m,) or (m, c), optional
            The value observed at each row. Only for the training rows it may be left out, and is theirs.
        random_state : int, RandomState, Generator or None, default=None
            Of the U, uniform between 0 and 1, which count only where y equals a value exactly.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            Between 0 and 1.

        Raises
        ------
        ValueError
            If y is missing, or of another shape.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

        See Also
        --------
        cdf : Without randomisation, at any threshold.

        Notes
        -----
        A histogram that is high at both ends says that the distributions are too narrow, one that is high in the middle
        that they are too wide, a slope that they are off to one side. A window of k rows alike puts about 1/(k + 1) of
        new values beyond all of its own at either end, where u is exactly 0 or 1: small windows look too narrow by
        that. About log2(n / 512) passes over rows and places, or one over all pairs where that is less.

        References
        ----------
        .. [1] A. P. Dawid, "Statistical theory: the prequential approach", JRSS A 147 (1984), 278-292.
        .. [2] C. Czado, T. Gneiting and L. Held, "Predictive model assessment for count data", Biometrics 65 (2009),
           1254-1261, equation 1.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=(500, 1))
        >>> model = LocalLinearRegressor(bandwidth=0.1).fit(x, x[:, 0] + rng.normal(size=500))
        >>> np.histogram(model.conditional_distribution().pit(), bins=4, range=(0, 1))[0] // 10
        array([12, 12, 12, 12])
        """
        random, given = as_random(random_state), self._observed(y, "pit")
        if self.y_bandwidth is None:
            uniform = np.asarray(random.uniform(size=given.shape))
            found = self.outcomes.evaluate(ProbabilityTransform(given, uniform, self._residual))
        else:
            found = self.outcomes.evaluate(DistributionFunction(given[:, :, None], self.y_bandwidth))
        return without_axes(found, self.flat, False)

    def crps(self, y: ArrayLike | None = None) -> Array:
        r"""Compute the continuous ranked probability score of observed values; smaller is better.

        .. math:: \mathrm{CRPS}(F, y) = \int \big(F(z) - 1\{y \le z\}\big)^2 dz
                  = \mathrm E|Y - y| - \tfrac12 \mathrm E|Y - Y'|, \qquad Y, Y' \sim F

        Parameters
        ----------
        y : array_like of shape (m,) or (m, c), optional
            The value observed at each row. Only for the training rows it may be left out, and is theirs.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            In units of y. For a distribution that is a single value, the absolute error.

        Raises
        ------
        ValueError
            If y is missing, or of another shape, or the distribution is smoothed in y.
        TypeError
            If rows are in chunks or partitions.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.

        Notes
        -----
        The score is proper: on average no distribution does better than that of the values. It is the sum of squares
        times gaps between values, exactly, in O(m n) time: 2.4 s of one core for 20 000 rows and as many places, in one
        column with the Gaussian kernel. Where the fit leaves rows out together (`exclusion_`), with a kernel of one's
        own, and at places far away from all rows, tables of some places at a time take about ten times as long. Memory
        is O(n + m).

        References
        ----------
        .. [1] T. Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102
           (2007), 359-378, section 4.2.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.conditional_distribution([[0.1], [3.0]]).crps([3.0, 3.0]).round(3)
        array([1.215, 2.   ])
        """
        self._refuse_smooth("scores")
        found = self.outcomes.evaluate(RankedScore(self._observed(y, "crps"), self._residual))
        return without_axes(found, self.flat, False)

    def _refuse_smooth(self, what: str) -> None:
        """Raise ValueError if the distribution is smoothed in y."""
        if self.y_bandwidth is not None:
            raise ValueError(
                f"{what} are those of the distribution without smoothing, and this one has y_bandwidth="
                f"{abbreviate(self.y_bandwidth.tolist())}; use conditional_distribution(X)"
            )

    @property
    def _residual(self) -> Array | None:
        """Residuals of the training rows, to the last bit; None for other rows, or if outputs are weighted."""
        outcomes = self.outcomes
        if self.left_out and isinstance(outcomes, ArrayOutcomes) and outcomes.fit is not None:
            return outcomes.value
        return None

    def _observed(self, y: ArrayLike | None, what: str) -> Array:
        """Return the values observed at the rows, of shape (m, c): those given, or those of the training rows."""
        if (y is None) != self.left_out:
            own = f"; conditional_distribution().{what}() is about the training rows, each left out"
            raise ValueError(
                f"{what} at the training rows takes their own y; leave y out, or use conditional_distribution(X)"
                if self.left_out
                else f"{what} needs y, the value observed at each row of X{own if self.smoother else ''}"
            )
        if y is None and isinstance(self.outcomes, ArrayOutcomes):
            return self.outcomes.value if self.outcomes.output is None else self.outcomes.output
        refuse_other_labels(X=self, y=y)
        read, shape = np.asarray(as_outputs(y, labels=self.output_labels), dtype=np.float64), (len(self), self.outputs)
        if read.shape != shape and not (shape[1] == 1 and read.shape == shape[:1]):
            wanted = f"({shape[0]},)" if shape[1] == 1 else f"{shape}"
            raise ValueError(f"y must have one value for each row of X, shape {wanted}, got shape {read.shape}")
        return read.reshape(shape)


def y_bandwidths(model: FittedModel, y_bandwidth: Any) -> Array:
    """Return the bandwidth in y of each output, as given, or by the method "rule" or "ml"."""
    refuse(model, "a bandwidth in y")
    method = check_y_bandwidth(y_bandwidth, (output_shape(model) or (1,))[0])
    if not isinstance(method, str):
        return method
    outcomes, _ = array_outcomes(model, None)
    output = outcomes.value if outcomes.output is None else outcomes.output
    fitted = model.leave_one_out().prediction.reshape(output.shape)
    center = np.zeros(output.shape) if outcomes.fit is None else outcomes.fit
    columns = zip(outcomes.value.T, output.T, fitted.T, center.T, strict=True)
    return np.array([find_y_bandwidth(outcomes.problem, *column, method) for column in columns])


class ConditionalDistributions(FittedModel):
    """Mixin of regressors: the conditional distribution of y, and its quantiles."""

    def conditional_distribution(
        self, X: ArrayLike | None = None, *, y_bandwidth: Any = None
    ) -> ConditionalDistribution:
        r"""Return the conditional distribution of y at rows: functions, quantiles, draws and scores.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None, the default, is for the training rows, each left out as in the fit.
        y_bandwidth : float, array_like of shape (c,), "rule" or "ml", default=None
            Smooths the distribution in y: each value is a normal distribution of this standard deviation. None is for
            steps at the values, ``"rule"`` Silverman's rule of the leave-one-out residuals, ``"ml"`` maximum likelihood
            of the rows, each from the others, which finds several modes.

        Returns
        -------
        ConditionalDistribution
            With the methods `cdf`, `pdf`, `quantile`, `interval`, `quantile_interval`, `sample`, `pit` and `crps`.

        Raises
        ------
        ValueError
            If `y_bandwidth` is invalid, or none can be found.
        TypeError
            If local planes were fitted to chunks, or for chunks X is None or `y_bandwidth` a name.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows.
        UserWarning
            If `y_bandwidth` is ``"ml"`` and the likelihood has no maximum.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.conditional_distribution([[0.1], [3.0]]).cdf(2.0).round(3)
        array([0.669, 0.   ])
        """
        model: FittedModel = as_fitted(self)
        shape = output_shape(model)
        outputs, flat = (shape or (1,))[0], not shape
        if model.source_ is not None:
            widths = None if y_bandwidth is None else numeric_y_bandwidth(y_bandwidth, outputs)
            if model._degree:
                refuse(model, "a conditional distribution of residuals")
            if X is None:
                refuse(model, "a leave-one-out distribution")
            assert X is not None
            batch = model.source_.asked(model.smoother_.recipe, unshared(read_query(model, X)[0]))
            return ConditionalDistribution(
                StoredOutcomes(model.source_, batch), outputs, flat, widths, index=labels_of_rows(X)
            )
        widths = None if y_bandwidth is None else y_bandwidths(model, y_bandwidth)
        outcomes, smoother = array_outcomes(model, X)
        index = model.index_ if X is None else labels_of_rows(X)
        return ConditionalDistribution(
            outcomes, outputs, flat, widths, smoother, X is None, index, model.output_labels_
        )

    def quantile(self, X: ArrayLike | None, levels: ArrayLike = 0.5, *, y_bandwidth: Any = None) -> Array:
        """Compute conditional quantiles of y at rows: those of `conditional_distribution`.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None is for the training rows, each left out as in the fit.
        levels : float or array_like of shape (l,), default=0.5
            Quantile orders; by default the conditional median.
        y_bandwidth : float, array_like of shape (c,), "rule" or "ml", default=None
            As for `conditional_distribution`; None is for quantiles that are values.

        Returns
        -------
        ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
            In the units of y. What `empty` says where a window is empty.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.
        TypeError
            After a fit to chunks, if X is None, planes are local, or `y_bandwidth` is given.

        See Also
        --------
        ConditionalDistribution.quantile : The formula, cost and caveats.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.quantile([[0.1]], [0.1, 0.5, 0.9])
        array([[1., 2., 9.]])
        """
        return self.conditional_distribution(X, y_bandwidth=y_bandwidth).quantile(levels)


@np.errstate(under="ignore")
def distribution_bandwidth(model: FittedModel, criterion: str = "loo", *, thresholds: int = 19) -> BandwidthSearch:
    r"""Search for the bandwidths of X that are best for the conditional distribution, not only its mean.

    .. math:: CV(h) = \sum_i w_i \sum_b \big(1\{y_i \le t_b\} - F_{-i}(t_b \mid x_i)\big)^2 \Big/ \sum_i w_i

    over quantiles t of y: the mean of y may hardly depend on a column that its spread depends on.

    Parameters
    ----------
    model : NadarayaWatsonRegressor
        Fitted.
    criterion : {"loo", "regularised"}, default="loo"
        The first is the formula. The second penalises small and unlike bandwidths, as it does for means
        (`kernpool.bandwidth.criteria`).
    thresholds : int, default=19
        How many quantiles of y; by default those at .05, .1, ..., .95.

    Returns
    -------
    BandwidthSearch
        Of the training rows, with the options of the model. Its `bandwidth` and `smoothing` are parameters of the
        next one, as below.

    Raises
    ------
    ValueError
        If the model is local linear, the criterion unknown, `thresholds` not positive, or y constant.
    TypeError
        If the model is no regressor, or was fitted to chunks.

    See Also
    --------
    NadarayaWatsonRegressor.conditional_distribution : Has a bandwidth in y, too.

    Notes
    -----
    The columns :math:`1\{y \le t_b\}` are outputs like any others, in their own units, so this is the search for a
    mean of so many outputs, and takes as long. Bandwidths are in the convention "support", in the units in which
    columns are compared. A `LocalLinearRegressor` has the distribution of residuals around its fit, and its
    bandwidth is that of the fit.

    References
    ----------
    .. [1] Q. Li, J. Lin and J. S. Racine, "Optimal bandwidth selection for nonparametric conditional distribution
       and quantile functions", Journal of Business and Economic Statistics 31 (2013), 57-65, equation 7.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import NadarayaWatsonRegressor, distribution_bandwidth
    >>> rng = np.random.default_rng(1)
    >>> x = rng.uniform(size=(200, 1))
    >>> y = (0.1 + x[:, 0]) * rng.normal(size=200)
    >>> mean = NadarayaWatsonRegressor().fit(x, y)
    >>> found = distribution_bandwidth(mean)
    >>> mean.bandwidth_.round(1), found.bandwidth.round(2)
    (array([9.9]), array([0.15]))
    >>> whole = NadarayaWatsonRegressor(bandwidth=found.bandwidth).fit(x, y)
    """
    if not isinstance(model, ConditionalDistributions):
        raise TypeError(f"model must be a NadarayaWatsonRegressor, got {type(model).__name__}")
    model = as_fitted(model)
    smoother = smoother_of(model, "distribution_bandwidth")
    check_choice("criterion", criterion, ("loo", "regularised"))
    weight = model.key_weight_
    value = indicators(model.value_, weight, thresholds)
    found = choose_bandwidth(
        criterion,
        smoother.rows_of(value),
        replace(search_options(model), standardise=False),
        categories=model._categories(),
    )
    found = found.of_table(model.encoding_)
    assert found.bandwidth_search is not None
    return replace(found.bandwidth_search, bandwidth=found.bandwidth, smoothing=found.smoothing)  # of all rows
