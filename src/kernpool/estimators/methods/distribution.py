"""Conditional distribution of a fitted regressor: quantiles, distribution function, density, draws and scores.

The numbers are those of `kernpool.distribution`. `WeightedOutcomes` holds the outcomes, or residuals around the fit,
that kernel weights are applied to at given points. `ConditionalBandwidths` has bandwidths in y and in X for the whole
distribution of y, `ConditionalFunctions` the distribution function and density, `ConditionalScores` the probability
integral transform and the continuous ranked probability score of observed values, and `ConditionalDistribution`
quantiles and draws. Estimators on chunks read their rows again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.utils.validation import check_is_fitted

from kernpool.bandwidth import BandwidthSearch
from kernpool.core import Prepared, Problem
from kernpool.data.array_validation import as_real_array
from kernpool.data.chunks.base import Chunks
from kernpool.distribution import (
    Function,
    KernelWeights,
    QuantileInterval,
    as_levels,
    as_thresholds,
    chunk_functions,
    finalize_cdf,
    known_cdf,
    known_quantiles,
    rows_of,
    with_limits,
    without_axes,
)
from kernpool.distribution import without_axes as drop_axes
from kernpool.distribution.quantile import levels_around, without_ends
from kernpool.distribution.scoring_rules import check_y_bandwidth, find_y_bandwidth, indicators, known_crps, known_pit
from kernpool.distribution.smoothed_cdf import known_smooth, known_smooth_quantiles, normal_density
from kernpool.estimators.bandwidth import choose_bandwidth, in_order_of_columns
from kernpool.estimators.chunked_fit import quantile_of_chunks
from kernpool.estimators.fitted_model import (
    check_unchanged,
    clusters_of,
    need_rows,
    numeric_query,
    read_places,
    read_query,
    recipe_of,
    scale_of,
    scaled_keys,
    shaped,
    smoother_of,
    training_fit_key,
)
from kernpool.estimators.parameter_validation import search_parameters
from kernpool.execution.error_messages import abbreviate, check_choice
from kernpool.execution.progress import current_progress
from kernpool.inference import as_random, check_level, local_noise
from kernpool.inference.variance.standard_errors import checked_errors, errors_of, rounding_of, warn_of_empty
from kernpool.pooling.recipe import Recipe
from kernpool.smoother import EvaluationPoints, LinearWeights, Smoother, estimate, log_mass, squared_norm

Array = NDArray[np.float64]
Index = NDArray[np.intp]
# Of a problem, the number of an output, its values, what is added to them at each query (None is nothing) and which
# queries these are: an array of shape (m, t), and which windows are not empty.
Answer = Callable[[Problem, int, Array, Array | None, Index], tuple[Array, NDArray[np.bool_]]]


@dataclass(frozen=True, eq=False)
class WeightedOutcomes:
    """Conditional distributions of y: training outputs, or residuals, with their kernel weights at evaluation points.

    Parameters
    ----------
    smoother : Smoother
        The rows of the model, local constant.
    recipe : Recipe
        How weights are summed, and what empty windows get.
    whole, problem : Problem
        Of the weights; in the second one rows without a residual have none.
    output, value : ndarray of shape (n, c)
        Outputs of the rows, and what is weighed: these, or residuals.
    fit : ndarray of shape (m, c), or None
        What is added to what is weighed; None for outputs.
    dtype : dtype
        Of predictions.
    """

    smoother: Smoother
    recipe: Recipe
    whole: Problem
    problem: Problem
    output: Array
    value: Array
    fit: Array | None
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, model: Any, X: ArrayLike | None, what: str) -> WeightedOutcomes:
        """Build the `WeightedOutcomes` of a fitted model at X; X=None means at the training rows, each left out.

        Training rows are held out one by one, or by clusters after a fit with groups.
        """
        need_rows(model, what)
        smoother = smoother_of(model)
        constant, output = smoother.of_degree(0), np.asarray(model.value_, dtype=np.float64)
        output = output.reshape(len(output), -1)
        if X is None:
            places, dtype = smoother.training, np.result_type(model.key_, model.value_)
            whole = _left_out(model, constant)
        else:
            numeric, code = read_query(model, X)
            places = EvaluationPoints(np.asarray(scale_of(model).apply(numeric), dtype=np.float64), code)
            whole, dtype = constant.problem(places), np.result_type(numeric, model.key_, model.value_)
        if smoother.recipe.degree == 0:
            return cls(constant, smoother.recipe, whole, whole, output, output, None, dtype)
        left_out, problem = model.leave_one_out(), whole
        prediction, known = left_out.prediction.reshape(output.shape), left_out.occupied
        if not known.all():
            weight = np.ones(len(output)) if whole.key_weight is None else whole.key_weight
            problem = replace(whole, key_weight=np.where(known, weight, 0.0), prepared=None)
        fit = prediction if X is None else smoother.fit(places).fit.intercept
        return cls(constant, smoother.recipe, whole, problem, output, output - prediction, fit, dtype)

    @property
    def center(self) -> Array:
        """Fit to which weighted residuals are added, of shape (m, c); zeros if outputs are weighted, not residuals."""
        return np.zeros((len(self.problem.query), self.output.shape[1])) if self.fit is None else self.fit

    def added(self, found: Array) -> Array:
        """Add the fit to results computed from residuals, of shape (m, c, l); return results from outputs unchanged."""
        return found if self.fit is None else found + self.fit[:, :, None]

    def filled(self, found: Array, occupied: NDArray[np.bool_], level: Array) -> Array:
        """Replace results of shape (m, c, l) where all kernel weights are zero, according to the parameter `empty`.

        With "mean" they are quantiles of all outputs.
        """
        return with_limits(self.recipe, self.whole, self.output, level, found, occupied).astype(self.dtype, copy=False)

    def answered(self, answer: Answer, at_zero: Any) -> Array:
        """Evaluate a callback on the weighted outcomes of each output; where all weights are zero, apply `empty`.

        Parameters
        ----------
        answer : callable
            Says what is known of one output.
        at_zero : array_like
            What is true of a value that is always zero, for ``empty="zero"``; to be broadcast to the result.

        Returns
        -------
        ndarray of shape (m, c, t)
            The answers.
        """

        def known(_: Problem, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
            return ask(self.problem, self.value, self.fit, rows)

        def limit(part: Problem, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
            return ask(part, self.output, None, rows)

        def ask(problem: Problem, value: Array, fit: Array | None, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
            found = [
                answer(problem, number, column, None if fit is None else fit[rows, number], rows)
                for number, column in enumerate(value.T)
            ]
            return np.stack([array for array, _ in found], axis=1), found[0][1]

        return finalize_cdf(self.recipe, self.whole, known, at_zero, limit)


def _left_out(model: Any, constant: Smoother) -> Problem:
    """Build the pooling problem of leave-one-out fits at training rows; leave-cluster-out after a fit with groups."""
    group = vars(model).get("key_group_")
    problem = constant.problem(constant.training, exclude_self=group is None)
    return problem if group is None else problem.with_groups(group, group)


def y_bandwidths(model: Any, y_bandwidth: Any) -> Array:
    """Return the bandwidth in y of each output, as given or by a named rule; cached per fit."""
    outputs = 1 if model.value_.ndim == 1 else model.value_.shape[1]
    method = check_y_bandwidth(y_bandwidth, outputs)
    if not isinstance(method, str):
        return method

    def make() -> Array:
        weighed = WeightedOutcomes.of(model, None, "a bandwidth in y needs")
        fitted = model.leave_one_out().prediction.reshape(weighed.output.shape)
        return np.array(
            [
                find_y_bandwidth(weighed.problem, *columns, method)
                for columns in zip(weighed.value.T, weighed.output.T, fitted.T, weighed.center.T, strict=True)
            ]
        )

    prepared: Prepared = vars(model).setdefault("_prepared", Prepared())
    of = (method, *training_fit_key(model, smoother_of(model)))
    found: Array = prepared.get("y bandwidth", of, make)
    return found


def rows_in_chunks(model: Any, X: Any, what: str) -> bool:
    """Return whether a model was fitted to chunks; raise if what is asked of it then needs the rows in memory."""
    check_is_fitted(model)
    if "chunks_" not in vars(model):
        return False
    if model._degree:
        need_rows(model, f"residuals of planes, which {what},")
    if X is None:
        need_rows(model, "leave-one-out distributions of its training rows need")
    return True


def given_y_bandwidths(y_bandwidth: Any, outputs: int) -> Array:
    """Convert numeric bandwidths in y to an array; raise for named rules, which need the rows in memory."""
    width = check_y_bandwidth(y_bandwidth, outputs)
    if isinstance(width, str):
        raise TypeError(
            f"y_bandwidth must be a number where rows are not in memory, "
            f"got {abbreviate(y_bandwidth)}; y_bandwidth() of "
            "NadarayaWatsonRegressor(bandwidth=model.bandwidth_), fitted to a sample of the rows in arrays, finds one"
        )
    return width


def one_per_row(y: Any, shape: tuple[int, int]) -> Array:
    """Convert y to shape (m, c), one value per row and output; raise for any other shape."""
    read = np.asarray(as_real_array("y", y), dtype=np.float64)
    if read.shape != shape and not (shape[1] == 1 and read.shape == shape[:1]):
        wanted = f"({shape[0]},)" if shape[1] == 1 else f"{shape}"
        raise ValueError(f"y must have one value for each row of X, shape {wanted}, got shape {read.shape}")
    return read.reshape(shape)


def without_axes_of(model: Any, found: Array, thresholds: bool = False) -> Array:
    """Drop the output axis of shape (m, c, t) if y was one-dimensional, and the last axis unless `thresholds`."""
    return drop_axes(found, model.value_.ndim == 1, thresholds)


CRITERIA = ("loo", "regularised")


class ConditionalBandwidths:
    """Mixin of regressors: search for bandwidths, in y and in X, of the conditional distribution of y."""

    def y_bandwidth(self, method: str = "rule") -> float | Array:
        """Choose the bandwidth in y that smooths the conditional distribution.

        Parameters
        ----------
        method : {"rule", "ml"}, default="rule"
            Silverman's rule, of the leave-one-out residuals and the median of the effective sample sizes; or maximum
            likelihood of the rows, each from the others (`kernpool.distribution.scoring_rules` has the formulas).

        Returns
        -------
        float, or ndarray of shape (c,)
            In units of y: the standard deviation of the normal distribution around each value.

        Raises
        ------
        ValueError
            If there is no such method, y does not differ from the fit, or no row has another one in its window.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        UserWarning
            If the likelihood has no maximum, as where outputs are equal to the last digit.

        Notes
        -----
        The rule is for noise that is near to normal, and takes the same time at any n; it oversmooths where there are
        several modes. The likelihood finds these, and follows tails: a value far from all others widens the bandwidth
        for all. Both look at up to 1000 rows and all that they are predicted from, 2**21 pairs where that leaves at
        least 50 rows; the result is kept until the next fit.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(size=(300, 1))
        >>> y = x[:, 0] + rng.choice([-1.0, 1.0], 300) + 0.1 * rng.normal(size=300)
        >>> model = LocalLinearRegressor(bandwidth=0.2).fit(x, y)
        >>> model.y_bandwidth("ml") < 0.3 * model.y_bandwidth()
        True
        """
        need_rows(self, "a bandwidth in y needs")
        if not isinstance(method, str):
            raise ValueError(f"method must be 'rule' or 'ml', got {abbreviate(method)}")
        widths = y_bandwidths(self, method)
        return float(widths[0]) if self.value_.ndim == 1 else widths.copy()  # type: ignore[attr-defined]  # set by fit

    def distribution_bandwidth(self, criterion: str = "loo", *, thresholds: int = 19) -> BandwidthSearch:
        r"""Search for the bandwidths of X that are best for the conditional distribution, not only its mean.

        .. math:: CV(h) = \sum_i w_i \sum_b \big(1\{y_i \le t_b\} - F_{-i}(t_b \mid x_i)\big)^2 \Big/ \sum_i w_i

        over quantiles t of y: the mean of y may hardly depend on a column that its spread depends on.

        Parameters
        ----------
        criterion : {"loo", "regularised"}, default="loo"
            The first is the formula. The second penalises small and unlike bandwidths, as it does for means
            (`kernpool.bandwidth.criteria`).
        thresholds : int, default=19
            How many quantiles of y; by default those at .05, .1, ..., .95.

        Returns
        -------
        BandwidthSearch
            Of the training rows, with the options of this model. Its `bandwidth` and `smoothing` are parameters of the
            next one, as below.

        Raises
        ------
        ValueError
            If the model is local linear, the criterion unknown, `thresholds` not positive, or y constant.
        TypeError
            If the model was fitted to chunks.

        See Also
        --------
        y_bandwidth : The bandwidth in y.

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
        >>> from kernpool import NadarayaWatsonRegressor
        >>> rng = np.random.default_rng(1)
        >>> x = rng.uniform(size=(200, 1))
        >>> y = (0.1 + x[:, 0]) * rng.normal(size=200)
        >>> mean = NadarayaWatsonRegressor().fit(x, y)
        >>> found = mean.distribution_bandwidth()
        >>> mean.bandwidth_.round(1), found.bandwidth.round(2)
        (array([9.9]), array([0.15]))
        >>> whole = NadarayaWatsonRegressor(bandwidth=found.bandwidth).fit(x, y)
        """
        need_rows(self, "bandwidths for the distribution need")
        model: Any = self
        if recipe_of(model).degree:
            raise ValueError(
                "distribution_bandwidth is for local constants: this model has the distribution of residuals around a "
                "local linear fit; fit NadarayaWatsonRegressor, or keep the bandwidth of the fit"
            )
        check_choice("criterion", criterion, CRITERIA)
        weight = model.key_weight_
        found = choose_bandwidth(
            scaled_keys(model),
            indicators(model.value_, weight, thresholds),
            weight,
            code=model.key_code_,
            categories=model._categories(),
            group=vars(model).get("key_group_"),
            degree=0,
            standardise=False,
            **(search_parameters(model) | {"bandwidth": criterion}),
        )
        encoding = model.encoding_
        names = vars(model).get("feature_names_in_") if encoding is None else encoding.names
        search: BandwidthSearch = in_order_of_columns(found, names, encoding)["bandwidth_search_"]
        return search


def functions_of_chunks(model: Any, X: Any, y: Any, y_bandwidth: Any = None, *, density: bool = False) -> Array:
    """Compute conditional distribution functions or densities of y by reading the chunks of the fit again.

    Parameters
    ----------
    model : NadarayaWatsonRegressor
        Fitted to chunks.
    X : array_like of shape (m, d)
        Queries.
    y : float or array_like
        Thresholds, as of ``model.cdf``.
    y_bandwidth : float or array_like of shape (c,), optional
        Bandwidths in y.
    density : bool, default=False
        Whether densities are wanted.

    Returns
    -------
    ndarray of shape (m,), (m, t), (m, c) or (m, c, t)
        As of ``model.cdf``.
    """
    query, chunks = numeric_query(model, X), model.chunks_
    check_unchanged(model)
    outputs = outputs_of(chunks)
    threshold, with_axis = as_thresholds(y, len(query), outputs, several=not chunks.flat)
    widths = None if y_bandwidth is None else given_y_bandwidths(y_bandwidth, outputs)
    function = Function(threshold, widths, density)
    found = chunk_functions(recipe_of(model), query, chunks, function, current_progress())
    return without_axes(found, bool(chunks.flat), with_axis)


def outputs_of(chunks: Chunks) -> int:
    """Return the number of output columns of chunks, reading the first chunk if necessary."""
    return int(chunks.outputs or next(iter(chunks)).value.shape[1])


class ConditionalFunctions:
    """Mixin of regressors: conditional distribution function and density of y."""

    def cdf(self, X: ArrayLike | None, y: ArrayLike, *, y_bandwidth: Any = None) -> Array:
        r"""Compute the conditional distribution function of y at new rows.

        .. math:: F(y \mid x) = \sum_{j:\, v_j \le y} \alpha_j(x) \qquad \text{or} \qquad
                  \sum_j \alpha_j(x)\, \Phi\big((y - v_j) / h_y\big)

        with the weights alpha of the training rows at x (`attention_weights`) and the v of `quantile`, of which it is
        the inverse.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None is for the training rows, leave-one-out, or leave-cluster-out after a fit with
            `groups`.
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
        weighed = WeightedOutcomes.of(self, X, "a distribution function needs")
        threshold, with_axis = self._thresholds(weighed, y)

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            some = rows_of(threshold, rows)[:, number]
            if widths is None:
                return known_cdf(weighed.recipe, problem, value, some, center, weighed.dtype)
            return known_smooth(weighed.recipe, problem, value, some, float(widths[number]), center=center)

        at_zero = threshold >= 0 if widths is None else ndtr(threshold / widths[:, None])
        return without_axes_of(self, weighed.answered(answer, at_zero), with_axis)

    def density(self, X: ArrayLike | None, y: ArrayLike, *, y_bandwidth: Any = "rule") -> Array:
        r"""Estimate the conditional density of y at new rows.

        .. math:: f(y \mid x) = \sum_j \frac{\alpha_j(x)}{h_y}\, \varphi\Big(\frac{y - v_j}{h_y}\Big)

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None is for the training rows, leave-one-out or leave-cluster-out.
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
        weighed = WeightedOutcomes.of(self, X, "a density needs")
        threshold, with_axis = self._thresholds(weighed, y)

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            some, width = rows_of(threshold, rows)[:, number], float(widths[number])
            return known_smooth(weighed.recipe, problem, value, some, width, density=True, center=center)

        at_zero = normal_density(threshold / widths[:, None]) / widths[:, None]
        return without_axes_of(self, weighed.answered(answer, at_zero), with_axis)

    def _thresholds(self, weighed: WeightedOutcomes, y: ArrayLike) -> tuple[Array, bool]:
        several = self.value_.ndim > 1  # type: ignore[attr-defined]  # set by fit
        return as_thresholds(y, len(weighed.problem.query), weighed.output.shape[1], several=several)


class ConditionalScores:
    """Mixin of regressors: probability integral transform and continuous ranked probability score of y."""

    def pit(self, X: ArrayLike | None = None, y: ArrayLike | None = None, *, random_state: Any = None) -> Array:
        r"""Compute the probability integral transform: uniform if the conditional distribution is correct.

        .. math:: u_i = F(y_i^- \mid x_i) + U_i \big(F(y_i \mid x_i) - F(y_i^- \mid x_i)\big)

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None, the default, is for the training rows, leave-one-out, or leave-cluster-out after a
            fit with `groups`, so that no row checks a distribution that contains it.
        y : array_like of shape (m,) or (m, c), or None
            The value at each point; None for the training rows.
        random_state : int, RandomState, Generator or None, default=None
            Of the U, uniform between 0 and 1, which count only where y equals a value exactly.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            Between 0 and 1.

        Raises
        ------
        ValueError
            If X and y do not go together.
        TypeError
            If local planes were fitted to chunks, or the training rows of chunks are asked for.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

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
        >>> np.histogram(model.pit(), bins=4, range=(0, 1))[0] // 10
        array([12, 12, 12, 12])
        """
        random = as_random(random_state)
        if y is not None and rows_in_chunks(self, X, "a probability integral transform needs"):
            return self._pit_of_chunks(X, y, random)
        weighed, given = self._observed(X, y, "a probability integral transform needs")
        uniform = np.asarray(random.uniform(size=given.shape))

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            seen, center = _observed_and_center(weighed, given, X is None, number, center, rows)
            of = seen, uniform[rows, number], center
            found, occupied = known_pit(weighed.recipe, problem, value, *of, weighed.dtype)
            return found[:, None], occupied

        at_zero = np.where(given == 0, uniform, given > 0)[:, :, None]
        return without_axes_of(self, weighed.answered(answer, at_zero))

    def _pit_of_chunks(self, X: ArrayLike | None, y: ArrayLike, random: Any) -> Array:
        chunks = self.chunks_  # type: ignore[attr-defined]  # set by fit
        outputs = outputs_of(chunks)
        given = one_per_row(y, (len(np.asarray(X)), outputs))
        uniform = np.asarray(random.uniform(size=given.shape)).reshape(-1, *() if chunks.flat else (outputs,))
        both = np.stack([np.nextafter(given, -np.inf), given], axis=2)
        share = functions_of_chunks(self, X, both[:, 0] if chunks.flat else both)
        found: Array = share[..., 0] + uniform * (share[..., 1] - share[..., 0])
        return found

    def crps(self, X: ArrayLike | None = None, y: ArrayLike | None = None) -> Array:
        r"""Compute the continuous ranked probability score of conditional distributions; smaller is better.

        .. math:: \mathrm{CRPS}(F, y) = \int \big(F(z) - 1\{y \le z\}\big)^2 dz
                  = \mathrm E|Y - y| - \tfrac12 \mathrm E|Y - Y'|, \qquad Y, Y' \sim F

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None, the default, is for the training rows, leave-one-out or leave-cluster-out.
        y : array_like of shape (m,) or (m, c), or None
            The value at each point; None for the training rows.

        Returns
        -------
        ndarray of shape (m,) or (m, c)
            In units of y. For a distribution that is a single value, the absolute error.

        Raises
        ------
        ValueError
            If X and y do not go together.
        TypeError
            If the model was fitted to chunks.

        Warns
        -----
        EmptyWindowWarning
            If windows are empty and `empty` is ``"nearest"``, the default, or ``"nan"``.
        ExtrapolationWarning
            If rows of X are far beyond the training rows; `kernpool.ExtrapolationWarning` has the rule.

        Notes
        -----
        The score is proper: on average no distribution does better than that of the values. It is the sum of squares
        times gaps between values, exactly, in O(m n) time: 2.4 s of one core for 20 000 rows and as many places, in one
        column with the Gaussian kernel. After a fit with `groups`, with a kernel of one's own, and at places far away
        from all rows, tables of some places at a time take about ten times as long. Memory is O(n + m).

        References
        ----------
        .. [1] T. Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation", JASA 102
           (2007), 359-378, section 4.2.

        Examples
        --------
        >>> from kernpool import NadarayaWatsonRegressor
        >>> model = NadarayaWatsonRegressor(bandwidth=0.5).fit([[0.0], [0.1], [0.2], [3.0]], [1.0, 2.0, 9.0, 5.0])
        >>> model.crps([[0.1], [3.0]], [3.0, 3.0]).round(3)
        array([1.215, 2.   ])
        """
        weighed, given = self._observed(X, y, "a score needs")

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            seen, center = _observed_and_center(weighed, given, X is None, number, center, rows)
            found, occupied = known_crps(weighed.recipe, problem, value, seen, center)
            return found[:, None], occupied

        return without_axes_of(self, weighed.answered(answer, np.abs(given)[:, :, None]))

    def _observed(self, X: ArrayLike | None, y: ArrayLike | None, what: str) -> tuple[WeightedOutcomes, Array]:
        """Return the `WeightedOutcomes` at X and the observed y; those of the training rows if X and y are None."""
        need_rows(self, what)
        if (X is None) != (y is None):
            given, missing = ("y", "X") if X is None else ("X", "y")
            raise ValueError(f"{given} needs {missing}: pass both, or neither for leave-one-out of the training rows")
        weighed = WeightedOutcomes.of(self, X, what)
        if y is None:
            return weighed, weighed.output
        return weighed, one_per_row(y, (len(weighed.problem.query), weighed.output.shape[1]))


def _observed_and_center(
    weighed: WeightedOutcomes, given: Array, training: bool, number: int, center: Array | None, rows: Index
) -> tuple[Array, Array | None]:
    """Return observed values of one output, and the fit to subtract from them; None if nothing is to be subtracted.

    Training rows are their residuals, to the last bit: a prediction and a residual, added and rounded, would miss ties
    between equal rows.
    """
    if training and center is not None:
        return weighed.value[rows, number], None
    return given[rows, number], center


class ConditionalDistribution(ConditionalFunctions, ConditionalScores, ConditionalBandwidths):
    """Mixin of regressors: conditional quantiles, draws, distribution functions, densities and scores."""

    def quantile(self, X: ArrayLike | None, levels: ArrayLike = 0.5, *, y_bandwidth: Any = None) -> Array:
        r"""Compute conditional quantiles of y at new rows.

        .. math:: \hat Q(\tau \mid x) = \min \Big\{ v_j : \sum_{l:\, v_l \le v_j} \alpha_l(x) \ge \tau \Big\}

        with the weights alpha of the training rows at x (`attention_weights`).

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None is for the training rows, leave-one-out, or leave-cluster-out after a fit with
            `groups`.
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
        weighed = WeightedOutcomes.of(self, X, "residuals, of which planes have quantiles, need")
        progress = current_progress()
        found, occupied = known_quantiles(weighed.recipe, weighed.problem, weighed.value, level.ravel(), progress)
        found = weighed.filled(weighed.added(found), occupied, level.ravel())
        return without_axes_of(self, found, level.ndim > 0)

    def _smooth_quantile(self, X: ArrayLike | None, level: Array, y_bandwidth: Any) -> Array:
        need_rows(self, "quantiles need")
        widths = y_bandwidths(self, y_bandwidth)
        weighed = WeightedOutcomes.of(self, X, "quantiles need")

        def answer(
            problem: Problem, number: int, value: Array, center: Array | None, _rows: Index
        ) -> tuple[Array, NDArray[np.bool_]]:
            found, occupied = known_smooth_quantiles(
                weighed.recipe, problem, value, level.ravel(), float(widths[number])
            )
            return (found if center is None else found + center[:, None]), occupied

        found = weighed.answered(answer, widths[:, None] * ndtri(level.ravel()))
        return without_axes_of(self, found.astype(weighed.dtype, copy=False), level.ndim > 0)

    def quantile_interval(self, X: ArrayLike, levels: ArrayLike = 0.5, *, level: float = 0.95) -> QuantileInterval:
        r"""Compute conditional quantiles with confidence intervals.

        .. math:: \big[\hat Q(r / n \mid x),\ \hat Q(s / n \mid x)\big], \qquad
                  n = \lVert \alpha(x) \rVert^{-2}, \quad P(\text{Bin}(n, \tau) < r),\,
                  P(\text{Bin}(n, \tau) \ge s) \le (1 - \text{level}) / 2

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points.
        levels : float or array_like of shape (l,), default=0.5
            Of the quantiles, as for `quantile`.
        level : float, default=0.95
            Confidence level: coverage of each interval.

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
        >>> found = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y).quantile_interval([[0.0]])
        >>> found.center, found.lower, found.upper
        (array([49.]), array([39.]), array([60.]))
        """
        tau = as_levels(levels)
        check_level(level)
        weighed = WeightedOutcomes.of(self, X, "intervals of quantiles need")
        problem, smoother = weighed.problem, weighed.smoother
        mass = log_mass(smoother.sums(problem))
        share = LinearWeights(problem, smoother.factor, mass, np.ones(len(mass)), np.zeros((len(mass), 0)))
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
            without_axes_of(self, center, with_axis),
            without_axes_of(self, lower, with_axis),
            without_axes_of(self, upper, with_axis),
            tau.copy(),
            float(level),
            rows,
        )

    def sample(self, X: ArrayLike | None, size: int = 1, *, random_state: Any = None) -> Array:
        r"""Draw values of y at new rows from the conditional distribution.

        Parameters
        ----------
        X : array_like of shape (m, d), or None
            Evaluation points. None is for the training rows, leave-one-out or leave-cluster-out.
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
        weighed = WeightedOutcomes.of(self, X, "draws need")
        random = as_random(random_state)
        level = random.uniform(size=(len(weighed.problem.query), int(size)))
        sums = KernelWeights.of(weighed.problem, weighed.recipe)
        places = sums.places(np.arange(len(weighed.value)), level)
        found = weighed.added(np.moveaxis(weighed.value[places], 1, 2))
        found = np.moveaxis(weighed.filled(found, sums.occupied, level), 1, 2)
        return found[..., 0] if self.value_.ndim == 1 else found  # type: ignore[attr-defined]  # set by fit


def std_of_new(model: Any, X: ArrayLike) -> Array:
    """Return the standard deviation of a new observation around the prediction of a model, at each query.

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
