"""What a fitted regressor says of the next value, beside its mean; the numbers are those of `kernpool.distribution`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from kernpool.core.problem import Problem
from kernpool.distribution import QuantileInterval, Sums, as_levels, known_quantiles
from kernpool.distribution.quantile_interval import levels_around, without_ends
from kernpool.distribution.smooth import known_smooth_quantiles
from kernpool.estimators.chunked import quantile_of_chunks
from kernpool.estimators.conditional_bandwidths import ConditionalBandwidths
from kernpool.estimators.conditional_functions import ConditionalFunctions
from kernpool.estimators.conditional_scores import ConditionalScores
from kernpool.estimators.smoothing_rows import clusters_of, need_rows, read_places, shaped
from kernpool.estimators.weighed import Weighed, without_axes, y_bandwidths
from kernpool.execution.messages import abbreviate
from kernpool.execution.progress import current_progress
from kernpool.inference.corrected import estimate
from kernpool.inference.draws import as_random
from kernpool.inference.intervals import check_level
from kernpool.inference.noise import local_noise
from kernpool.inference.quadratic_forms import squared_norm
from kernpool.inference.shares import Shares
from kernpool.inference.smoother import log_mass
from kernpool.inference.standard_errors import errors_of, rounding_of
from kernpool.inference.warnings import checked_errors, warn_of_empty

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class ConditionalDistribution(ConditionalFunctions, ConditionalScores, ConditionalBandwidths):
    """Conditional quantiles of a regressor, and draws; the whole distribution, and scores of it."""

    def quantile(self, X: ArrayLike | None, levels: ArrayLike = 0.5, *, y_bandwidth: Any = None) -> Array:
        r"""Find the values that y stays below with given probabilities, at new rows.

        .. math:: \hat Q(\tau \mid x) = \min \Big\{ v_j : \sum_{l:\, v_l \le v_j} \alpha_l(x) \ge \tau \Big\}

        with the weights alpha of the training rows at x (`attention_weights`).

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Places; None is for the training rows, each without itself, or without its group after a fit with `groups`.
        levels : float or array_like of shape (l,), default=0.5
            Probabilities, in any order; by default the conditional median.
        y_bandwidth : float, array_like of shape (c,), "rule" or "ml", default=None
            Smooths the distribution in y (`cdf`), whose inverse is then no longer a step function. None is for
            quantiles that are values.

        Returns
        -------
        ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
            In the units of y. What `empty` says where a window is empty.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.
        TypeError
            If X is None, or planes are local, after a fit to chunks, whose rows and residuals are not held.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        See Also
        --------
        quantile_interval : How well quantiles are known.
        cdf : The inverse.
        confidence_interval : How well the mean is known, which is another question.
        pool_quantile : The same of arrays.

        Notes
        -----
        A `NadarayaWatsonRegressor` weighs the outputs v themselves, so a quantile is one of them. A
        `LocalLinearRegressor` has planes, whose shares may be negative and are no distribution; it weighs the
        leave-one-out residuals :math:`v_j = y_j - \hat m_{-j}(x_j)` by the same kernel, and adds the prediction:
        :math:`\hat m(x) + \hat Q_v(\tau \mid x)`. So a bandwidth that is wide because the curve is straight does not
        mix up rows from everywhere. Rows that have nothing else in their window have no such residual and do not count.
        Empty windows get quantiles of outputs all the same. The prediction is not clipped.

        The bandwidth is that of the mean. Where few rows count, extreme levels are the extremes of a small sample:
        quantiles say nothing about values beyond those seen. Cost as of `pool_quantile`, and O(n + m) memory; rows in
        chunks are read again, some times. Smoothed ones are solved for by Newton's steps, about eight looks at all
        pairs for each level.

        References
        ----------
        .. [1] C. J. Stone, "Consistent nonparametric regression", Annals of Statistics 5 (1977), 595-620, section 1.
        .. [2] Q. Li and J. S. Racine, "Nonparametric estimation of conditional CDF and quantile functions with mixed
           categorical and continuous data", Journal of Business and Economic Statistics 26 (2008), 423-434.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.quantile([[0.1], [3.0]], [0.1, 0.5, 0.9])
        array([[1., 2., 9.],
               [5., 5., 5.]])
        """
        level = as_levels(levels)
        if y_bandwidth is not None:
            return self._smooth_quantile(X, level, y_bandwidth)
        if X is None:
            need_rows(self, "quantiles at its own rows need")
        if "chunks_" in vars(self) and not self._degree:  # type: ignore[attr-defined]  # set by fit
            return quantile_of_chunks(self, X, level)
        weighed = Weighed.of(self, X, "residuals, of which planes have quantiles, need")
        progress = current_progress()
        found, occupied = known_quantiles(weighed.recipe, weighed.problem, weighed.value, level.ravel(), progress)
        found = weighed.filled(weighed.added(found), occupied, level.ravel())
        return without_axes(self, found, level.ndim > 0)

    def _smooth_quantile(self, X: ArrayLike | None, level: Array, y_bandwidth: Any) -> Array:
        need_rows(self, "quantiles need")
        widths = y_bandwidths(self, y_bandwidth)
        weighed = Weighed.of(self, X, "quantiles need")

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, _rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            found, occupied = known_smooth_quantiles(
                weighed.recipe, problem, value, level.ravel(), float(widths[number])
            )
            return (found if center is None else found + center[:, None]), occupied

        found = weighed.answered(answer, widths[:, None] * ndtri(level.ravel()))
        return without_axes(self, found.astype(weighed.dtype, copy=False), level.ndim > 0)

    def quantile_interval(self, X: ArrayLike, levels: ArrayLike = 0.5, *, level: float = 0.95) -> QuantileInterval:
        r"""Find conditional quantiles, with intervals for them.

        .. math:: \big[\hat Q(r / n \mid x),\ \hat Q(s / n \mid x)\big], \qquad
                  n = \lVert \alpha(x) \rVert^{-2}, \quad P(\text{Bin}(n, \tau) < r),\,
                  P(\text{Bin}(n, \tau) \ge s) \le (1 - \text{level}) / 2

        Parameters
        ----------
        X : array_like of shape (m, d)
            Places.
        levels : float or array_like of shape (l,), default=0.5
            Of the quantiles, as for `quantile`.
        level : float, default=0.95
            Probability that an interval covers the quantile at its place.

        Returns
        -------
        QuantileInterval
            With `center`, `lower` and `upper` in the shape of `quantile`; infinite where the window has too few rows
            for an end.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        See Also
        --------
        confidence_interval : For the mean.

        Notes
        -----
        As between order statistics of a sample: no density is estimated, and ends are values as quantiles are. The bias
        of a window, within which the distribution changes, is not taken off, and rows are taken as independent. For a
        `LocalLinearRegressor` the prediction is taken as known: an error of it that all rows of the window share is in
        their residuals, too, with the other sign. In empty windows intervals are infinite, whatever `empty` says.

        References
        ----------
        .. [1] J. D. Gibbons and S. Chakraborti, "Nonparametric Statistical Inference", 5th edition (2011), section 5.2.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> X, y = [[0.0]] * 100, [float(i) for i in range(100)]
        >>> found = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y).quantile_interval([[0.0]])
        >>> found.center, found.lower, found.upper
        (array([49.]), array([39.]), array([60.]))
        """
        tau = as_levels(levels)
        check_level(level)
        weighed = Weighed.of(self, X, "intervals of quantiles need")
        problem, smoother = weighed.problem, weighed.smoother
        mass = log_mass(smoother.sums(problem))
        share = Shares(problem, smoother.factor, mass, np.ones(len(mass)), np.zeros((len(mass), 0)))
        squared = squared_norm([(1.0, share)], smoother.sums)
        occupied = np.isfinite(mass)
        rows = np.divide(1.0, squared, where=occupied, out=np.zeros(len(mass)))
        low, high = levels_around(tau.ravel(), rows, float(level))
        wanted = np.concatenate([np.broadcast_to(tau.ravel(), low.shape), low, high], axis=1).clip(0.0, 1.0)
        found, occupied = known_quantiles(weighed.recipe, problem, weighed.value, wanted)
        center, *ends = np.split(weighed.filled(weighed.added(found), occupied, wanted), 3, axis=2)
        lower, upper = without_ends(low, high, (ends[0], ends[1]))
        with_axis = tau.ndim > 0
        return QuantileInterval(
            without_axes(self, center, with_axis),
            without_axes(self, lower, with_axis),
            without_axes(self, upper, with_axis),
            tau.copy(),
            float(level),
            rows,
        )

    def sample(self, X: ArrayLike | None, size: int = 1, *, random_state: Any = None) -> Array:
        r"""Draw values of y at new rows from the conditional distribution.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Places; None is for the training rows, each without itself or its group.
        size : int, default=1
            How many draws at each.
        random_state : int, RandomState or None, default=None
            Seed.

        Returns
        -------
        ndarray of shape (m, size) or (m, size, c)
            Exact draws of training rows by their weights at x: their outputs, together if there are several; of planes
            the prediction plus their leave-one-out residuals. What `empty` says where a window is empty.

        Raises
        ------
        ValueError
            If `size` is not positive.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        EmptyWindowWarning, ExtrapolationWarning
            As `quantile`.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> sorted(set(model.sample([[0.1]], 100, random_state=0)[0].tolist()))
        [1.0, 2.0, 9.0]
        """
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"size must be a positive number of draws, got {abbreviate(size)}")
        weighed = Weighed.of(self, X, "draws need")
        random = as_random(random_state)
        level = random.uniform(size=(len(weighed.problem.query), int(size)))
        sums = Sums.of(weighed.problem, weighed.recipe)
        places = sums.places(np.arange(len(weighed.value)), level)
        found = weighed.added(np.moveaxis(weighed.value[places], 1, 2))
        found = np.moveaxis(weighed.filled(found, sums.occupied, level), 1, 2)
        return found[..., 0] if self.value_.ndim == 1 else found  # type: ignore[attr-defined]  # set by fit


def std_of_new(model: Any, X: ArrayLike) -> Array:
    """Return the standard deviation of a new observation around the prediction of a model.

    With groups it is that of an observation in a new cluster: residuals are those of fits without the whole cluster.
    """
    smoother, places, training = read_places(model, X, "fit", warn=False)
    clusters = clusters_of(model, smoother, None)
    found = estimate(smoother, places, "naive")
    if smoother.recipe.empty not in ("nan", "nearest"):  # with these `predict` has warned
        warn_of_empty(found)
    errors = errors_of(smoother, training, places, found, clusters=clusters)
    noise = errors.noise if clusters is None else local_noise(smoother, places, clusters.residual**2)
    assert noise is not None
    error, _ = checked_errors(found, errors)
    variance = np.where(noise.variance <= rounding_of(training) ** 2, 0.0, noise.variance)
    return shaped(model, X, [np.sqrt(variance + error**2)], "fit")
