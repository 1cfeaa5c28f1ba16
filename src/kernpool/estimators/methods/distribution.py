"""Conditional distributions of a fitted regressor: the methods that make them, and bandwidths in y and in X.

`ConditionalDistributions` is the mixin of regressors. `outcomes_of_chunks` is for models whose rows are in chunks.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kernpool.bandwidth import BandwidthSearch
from kernpool.distribution import StoredOutcomes
from kernpool.distribution.scoring_rules import check_y_bandwidth, find_y_bandwidth, indicators, numeric_y_bandwidth
from kernpool.estimators.bandwidth import choose_bandwidth, search_options
from kernpool.estimators.fitted_model import numeric_query, output_shape
from kernpool.estimators.limits import refuse, smoother_of
from kernpool.estimators.methods.conditional_distribution import ConditionalDistribution, array_outcomes
from kernpool.estimators.model import FittedModel, as_fitted
from kernpool.estimators.training_rows import unshared
from kernpool.execution.error_messages import check_choice
from kernpool.pooling import Source

Array = NDArray[np.float64]


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


def stored_outcomes(model: FittedModel, source: Source, X: Any) -> StoredOutcomes:
    """Return the outcomes at X of a regressor whose rows are not in memory; refuse local planes and X=None."""
    if model._degree:
        refuse(model, "a conditional distribution of residuals")
    if X is None:
        refuse(model, "a leave-one-out distribution")
    return StoredOutcomes(source, source.asked(model.smoother_.recipe, unshared(numeric_query(model, X))))


CRITERIA = ("loo", "regularised")


class ConditionalDistributions(FittedModel):
    """Mixin of regressors: the conditional distribution of y, and its quantiles."""

    def conditional_distribution(
        self, X: ArrayLike | None = None, *, y_bandwidth: Any = None
    ) -> ConditionalDistribution:
        r"""Return the conditional distribution of y at rows: functions, quantiles, draws and scores.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None, the default, is for the training rows, leave-one-out, or leave-cluster-out after a
            fit with `groups`, so that no row checks a distribution that contains it.
        y_bandwidth : float, array_like of shape (c,), "rule" or "ml", default=None
            Smooths the distribution in y: each value is a normal distribution of this standard deviation, in units of
            y. None is for steps at the values. ``"rule"`` is Silverman's rule, of the leave-one-out residuals and the
            median of the effective sample sizes; ``"ml"`` maximum likelihood of the rows, each from the others
            (`kernpool.distribution.scoring_rules` has the formulas). The result has what was found as `y_bandwidth`.

        Returns
        -------
        ConditionalDistribution
            With the methods `cdf`, `pdf`, `quantile`, `interval`, `quantile_interval`, `sample`, `pit` and `crps`.

        Raises
        ------
        ValueError
            If `y_bandwidth` is no positive number and no name, or no bandwidth can be found: y does not differ from the
            fit, or no row has another one in its window.
        TypeError
            If local planes were fitted to chunks, which do not hold their residuals, or for chunks X is None or
            `y_bandwidth` a name.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.
        UserWarning
            If `y_bandwidth` is ``"ml"`` and the likelihood has no maximum, as where outputs are equal to the
            last digit.

        See Also
        --------
        quantile : Quantiles alone.
        prediction_interval : Intervals with guarantees of coverage.

        Notes
        -----
        The rule for `y_bandwidth` is for noise that is near to normal, and takes the same time at any n; it oversmooths
        where there are several modes. The likelihood finds these, and follows tails: a value far from all others widens
        the bandwidth for all. Both look at up to 1000 rows and all that they are predicted from, 2**21 pairs where that
        leaves at least 50 rows; `y_bandwidth` of the result has what was found, for the next call.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> y_at = model.conditional_distribution([[0.1], [3.0]])
        >>> y_at.cdf(2.0).round(3), y_at.interval(0.5)
        (array([0.669, 0.   ]), (array([1., 5.]), array([9., 5.])))

        Noise of two modes:

        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=(300, 1))
        >>> y = x[:, 0] + rng.choice([-1.0, 1.0], 300) + 0.1 * rng.normal(size=300)
        >>> model = LocalLinearRegressor(bandwidth=0.2).fit(x, y)
        >>> rule, ml = (model.conditional_distribution(x[:1], y_bandwidth=name).y_bandwidth for name in ("rule", "ml"))
        >>> bool(ml[0] < 0.3 * rule[0])
        True
        """
        model: FittedModel = as_fitted(self)
        shape = output_shape(model)
        outputs, flat = (shape or (1,))[0], not shape
        if model.source_ is not None:
            widths = None if y_bandwidth is None else numeric_y_bandwidth(y_bandwidth, outputs)
            return ConditionalDistribution(stored_outcomes(model, model.source_, X), outputs, flat, widths)
        widths = None if y_bandwidth is None else y_bandwidths(model, y_bandwidth)
        outcomes, smoother = array_outcomes(model, X)
        return ConditionalDistribution(outcomes, outputs, flat, widths, smoother, X is None)

    def quantile(self, X: ArrayLike | None, levels: ArrayLike = 0.5, *, y_bandwidth: Any = None) -> Array:
        """Compute conditional quantiles of y at rows: those of `conditional_distribution`.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None is for the training rows, leave-one-out or leave-cluster-out.
        levels : float or array_like of shape (l,), default=0.5
            Quantile orders, probabilities in any order; by default the conditional median.
        y_bandwidth : float, array_like of shape (c,), "rule" or "ml", default=None
            Smooths the distribution in y, whose inverse is then no longer a step function. None is for quantiles that
            are values.

        Returns
        -------
        ndarray of shape (m,), (m, l), (m, c) or (m, c, l)
            In the units of y. What `empty` says where a window is empty.

        Raises
        ------
        ValueError
            If a level is not between 0 and 1.
        TypeError
            After a fit to chunks, whose rows and residuals are not held, if X is None, planes are local, or
            `y_bandwidth` is given.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        See Also
        --------
        ConditionalDistribution.quantile : The formula, cost and caveats.
        confidence_interval : How well the mean is known, which is another question.
        pool_quantile : The same of arrays.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.quantile([[0.1], [3.0]], [0.1, 0.5, 0.9])
        array([[1., 2., 9.],
               [5., 5., 5.]])
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
    check_choice("criterion", criterion, CRITERIA)
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
