"""Inference for fitted regressors: predictions as objects, confidence intervals, summary, residuals.

A `Prediction` has mean, standard errors, intervals and slopes at given rows, in addition to the sums, weights and
explanations of `PredictionBase`. `Inference` has the methods of regressors. The numbers are those of
`kernpool.inference` and `kernpool.pooling`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array
from kernpool.bandwidth import RULES
from kernpool.core import MOST_COLUMNS, Exclusion, fill_empty
from kernpool.estimators.fitted_model import exclusion_of_groups, output_shape, printed_columns, shaped, windows_of
from kernpool.estimators.limits import refuse, smoother_of
from kernpool.estimators.methods.prediction import PredictionBase, computed_once, prediction_at
from kernpool.estimators.model import FittedModel, as_fitted
from kernpool.execution.error_messages import as_level, check_choice
from kernpool.execution.progress import current_progress
from kernpool.execution.text_table import ROWS, PrintedResult, digits_beside, frame_of, names_of, printed_table
from kernpool.inference import Interval, Summary, interval, local_noise, summarise
from kernpool.inference.explanation import AdditiveTerms
from kernpool.inference.model_summary import Residuals, residuals
from kernpool.inference.variance import standard_errors
from kernpool.kernels import get_kernel
from kernpool.pooling import choose
from kernpool.smoother import Estimate, Smoother, StoredModel, estimates, mean_slopes, mean_slopes_of_stored
from kernpool.smoother.bias_correction import METHODS

QUANTITIES = ("fit", "derivative")


@dataclass(frozen=True, eq=False, repr=False)
class Prediction(PrintedResult, PredictionBase):
    r"""Prediction of a regressor at given rows, made by ``model.get_prediction(X)``.

    .. math:: \hat m(x) = \sum_j l_j(x)\, y_j, \qquad
              \widehat{\mathrm{se}}(x) = \hat\sigma(x) \Big( \sum_j l_j(x)^2 / w_j \Big)^{1/2}

    where l are the linear weights of the training outputs, w the frequency weights of the rows, and
    :math:`\hat\sigma(x)` the standard deviation of the noise around x.

    Parameters
    ----------
    model, query, code, index
        As of `PredictionBase`: the fitted model and the rows.
    variance : str
        Where the noise of standard errors is taken from, as in ``get_prediction``.
    exclusion : Exclusion or None
        Which training rows are left out together; None for those of the fit, if any.

    See Also
    --------
    ConditionalDistribution : Quantiles, distribution functions and draws at given rows.

    Notes
    -----
    Each property is computed when it is first used, and kept; arrays are read-only. The mean, the slopes of local
    planes and their weights come from one pass over the training rows, which the standard error shares where it is made
    of the same sums. The object holds on to the rows of the model at that time, never changes, and may be shared among
    threads. For a model fitted to chunks or on Dask sums go through all rows, and the noise is that of leave-one-out
    residuals of at most 4000 rows, drawn at random by `random_state`; weights, simultaneous bands, groups and other
    variances need the rows themselves.

    Weights are frequencies: a weight of 3 is three equal rows. The first standard error leaves out each training row
    once, one pass over pairs of them, which the model keeps. Beyond that four passes over rows and places, and O(n + m)
    memory.

    Examples
    --------
    >>> from kernpool import LocalLinearRegressor
    >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.1, 0.9, 2.1, 2.9, 4.1]
    >>> model = LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y)
    >>> prediction = model.get_prediction([[2.0], [2.5]])
    >>> prediction.mean.round(3), prediction.standard_error.round(3), prediction.slope.round(3).tolist()
    (array([2.02, 2.52]), array([0.077, 0.082]), [[1.0], [1.0]])
    >>> print(prediction)
    rows      2
    level     0.95, pointwise
    method    quadratic
    <BLANKLINE>
      row  mean  se      bias-corrected  lower  upper  n_eff
      0    2.02  0.0771  1.963           1.654  2.272  5
      1    2.52  0.0818  2.47            2.175  2.765  5
    """

    variance: str = "local"
    exclusion: Exclusion | None = None

    @computed_once
    def mean(self) -> Array:
        """Predicted means, of shape (m,) or (m, c): what `predict` returns, with its warnings."""
        return self._pooled()

    @computed_once
    def _smoother(self) -> Smoother:
        if self.variance != "local":
            refuse(self.model, "another variance than 'local'")
        smoother = self.model.smoother_.linear
        return smoother if self.exclusion is None else replace(smoother, exclusion=self.exclusion)

    def _estimated(self, quantity: str) -> tuple[list[Estimate], list[standard_errors.Errors]]:
        """Return the fit or its slopes, without bias correction, with their standard errors before any warning."""
        columns = (None,) if quantity == "fit" else self._slopes
        found = estimates(self._smoother, self._places, "naive", columns)
        return found, standard_errors.errors_of(self._smoother, self._places, found, self.variance)

    @property
    def _slopes(self) -> range:
        """Columns to differentiate by, which are all numeric columns."""
        refuse(self.model, "the standard error of slopes")
        return range(self._smoother.columns)

    @computed_once
    def _curve(self) -> tuple[list[Estimate], list[standard_errors.Errors]]:
        return self._estimated("fit")

    def _standard_errors(self, quantity: str) -> Array:
        found, errors = self._curve if quantity == "fit" else self._estimated(quantity)
        report = self.model._report_rank if self._smoother.recipe.degree else None
        standard_errors.warn_of_windows(found[0], self._smoother.columns, report)
        checked = [standard_errors.checked_errors(*both)[0] for both in zip(found, errors, strict=True)]
        return shaped(self.model, self.query, checked[0] if quantity == "fit" else np.stack(checked, axis=1))

    @computed_once
    def standard_error(self) -> Array:
        """Standard errors of the mean, of shape (m,) or (m, c); bias is not included.

        NaN where the window is empty, whatever `empty` says, because what a policy puts there has no standard error;
        and where `confidence_interval` has none, for the same reasons. Twice a standard error on both sides is no
        confidence interval: `confidence_interval` corrects the bias first.
        """
        return self._standard_errors("fit")

    @computed_once
    def slope_standard_error(self) -> Array:
        """Standard errors of the slopes, of shape (m, d) or (m, d, c).

        NaN where `standard_error` is, and for slopes that the rows of the window do not identify. Those of a local
        constant fit need the Gaussian kernel, and no `Nearest` windows.
        """
        return self._standard_errors("derivative")

    @computed_once
    def observation_std(self) -> Array:
        """Standard deviation of a new observation around the mean, of shape (m,) or (m, c).

        Noise and uncertainty of the curve together, as ``predict(X, return_std=True)`` returns it. With groups the
        observation is of a new cluster: residuals are those of fits without the whole cluster.
        """
        (found,), (errors,) = self._curve
        if not self._recipe.warns_of_empty:  # otherwise `mean` warns
            standard_errors.warn_of_windows(found, self._smoother.columns, None)
        smoother, noise = self._smoother, errors.noise
        if noise is None:
            noise, _ = local_noise(smoother, self._places, errors.residual**2)
        error, _ = standard_errors.checked_errors(found, errors)
        std = np.sqrt(np.where(noise <= smoother.rounding**2, 0.0, noise) + error**2)
        return shaped(self.model, self.query, std)

    @computed_once
    def slope(self) -> Array:
        r"""Slopes per unit of each numeric column, of shape (m, d) or (m, d, c).

        Of a `LocalLinearRegressor` the slopes :math:`\hat\beta` of the local planes, which estimate the slope of the
        true curve. They are not the derivative of the predictions, because the plane changes from query to query, as
        the documentation of R's np notes. NaN where the window is empty, with an EmptyWindowWarning; zero in directions
        that the rows of a window do not determine.

        Of a `NadarayaWatsonRegressor` the derivative of the predictions, :math:`\sum_j \alpha_j(x)\, (y_j - \hat y(x))
        \, \partial \log K((x - x_j)/h) / \partial x_a`, and what `Nearest` windows change in h. As an
        estimate of the slope of the truth it is biased where rows are denser on one side. NaN where the window is empty
        and ``empty="nan"``; zero there with the other policies, whose values do not depend on the place. A user-defined
        kernel without `log_slope` raises ValueError.
        """
        slopes = self._slopes_of_planes() if self.model._degree else self._slopes_of_constants()
        return shaped(self.model, self.query, slopes)

    def _slopes_of_planes(self) -> Array:
        fit = self._planes
        slopes: Array = fit.slope / self._widths[..., None]
        fill_empty(slopes.reshape(len(slopes), -1), fit.occupied, "nan")
        return slopes

    def _slopes_of_constants(self) -> Array:
        """Return the slopes of weighted means: those of the sums, one output after the other."""
        smoother, recipe, progress = self.model.smoother_, self._recipe, current_progress()
        state = self._sums.state
        if isinstance(smoother, Smoother):
            problem = self._problem
            if self._sums.center is not None:
                state = choose(problem, recipe.algorithm, reuse=True).reduce(problem, n_jobs=recipe.n_jobs)
            moved = smoother.width_slopes(problem)
            slopes = mean_slopes(problem, state, recipe.algorithm, recipe.n_jobs, progress, moved)
        else:
            slopes = mean_slopes_of_stored(smoother.source, recipe, self.query, state)
        m = len(slopes)
        flat = recipe.fill_empty(
            slopes.reshape(m, -1), state.denominator != 0, lambda rows: np.zeros((len(rows), slopes[0].size))
        )
        return flat.reshape(slopes.shape)

    def additive_terms(self) -> AdditiveTerms:
        r"""Split each prediction of a local plane into the mean of the rows around it and a term of each column.

        .. math:: \hat y(x) = \bar y(x) + \sum_a \hat\beta_a(x)\, (x_a - \bar x_a(x))

        where means are by the pooling weights of the query.

        Returns
        -------
        AdditiveTerms
            With `local_mean`, `value`, `center`, `slope` and `term`; numbers are NaN where the window is empty.

        Raises
        ------
        TypeError
            If the model is a weighted mean, which has no slopes, or has no numeric columns.
        ValueError
            If columns are not pooled as they are.

        Notes
        -----
        Exact, but for the rounding of sums. The terms are about the neighbourhood of the query: they say how it differs
        from the rows around it, not from the mean of all rows. Nothing is summed that the mean has not summed, so
        models of chunks have it, too.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> model = LocalLinearRegressor(bandwidth=1.0, ridge=0.0).fit([[0.0], [1.0], [2.0]], [0.0, 2.0, 4.0])
        >>> found = model.get_prediction([[0.0]]).additive_terms()
        >>> found.local_mean.round(3), found.term.round(3)
        (array([1.007]), array([[-1.007]]))
        """
        refuse(self.model, "additive_terms")
        names = tuple(column.name for column in printed_columns(self.model) if not column.has_levels)
        if not names:
            raise TypeError("this model has no numeric columns, and so no terms; use attention_weights(X)")
        fit, sums, widths = self._planes, self._sums, self._widths
        known, mean = fit.occupied[:, None], sums.state.finalize(empty="zero")
        local = np.where(known, mean[:, sums.layout.value] + (0.0 if sums.center is None else sums.center), np.nan)
        away = np.where(known, mean[:, sums.layout.first], np.nan)
        term = -away[:, :, None] * fit.slope
        predicted = np.where(known, fit.intercept, np.nan)
        flat = not output_shape(self.model)
        return AdditiveTerms(
            names,
            predicted[:, 0] if flat else predicted,
            local[:, 0] if flat else local,
            self.query,
            self.query + away * widths,
            self.slope,
            term[:, :, 0] if flat else term,
            self.index,
        )

    def confidence_interval(
        self,
        *,
        level: float = 0.95,
        method: str = "auto",
        simultaneous: bool | str = False,
        quantity: str = "fit",
        n_resamples: int = 999,
        random_state: Any = 0,
    ) -> Interval:
        """Compute pointwise confidence intervals or a simultaneous band for the true regression curve or its slope.

        Parameters
        ----------
        level, method, simultaneous, quantity, n_resamples, random_state
            As of the `confidence_interval` of a regressor, which has the formulas, references and coverage.

        Returns
        -------
        Interval
            As of the `confidence_interval` of a regressor.
        """
        model, smoother, places = self.model, self._smoother, self._places
        level = as_level(level)
        check_choice("method", method, ("auto", *METHODS))
        if method not in ("auto", "naive"):
            refuse(model, "a corrected confidence interval")
        if method == "quadratic":
            refuse(model, 'method="quadratic"')
        if not isinstance(simultaneous, bool | np.bool_) or simultaneous:
            refuse(model, "a simultaneous band")
        check_choice("quantity", quantity, QUANTITIES)
        found = interval(
            smoother,
            places,
            None if quantity == "fit" else self._slopes,
            level=level,
            method=_default_method(model, quantity) if method == "auto" else method,
            variance=self.variance,
            simultaneous=simultaneous,
            n_resamples=n_resamples,
            random_state=random_state,
            report_rank=model._report_rank,
        )
        center, lower, upper, error = (
            shaped(model, self.query, values)
            for values in (found.center, found.lower, found.upper, np.asarray(found.standard_error))
        )
        critical = found.critical
        if isinstance(critical, np.ndarray):
            critical = shaped(model, self.query, critical)
        axes = ("output",) if quantity == "fit" else ("column", "output")
        found = replace(
            found, center=center, lower=lower, upper=upper, standard_error=error, critical=critical, axes=axes,
            index=self.index,
        )  # fmt: skip
        fit, first = model.smoother_, found.first_predictions
        if isinstance(fit, StoredModel) or quantity != "fit" or found.method == "naive":
            return replace(found, first_predictions=None)
        if first is None or fit is not smoother or np.isnan(first).any():
            first = fit.predict(fit.problem(places.rows(slice(0, ROWS))))  # of the printed table
        return replace(found, first_predictions=shaped(model, self.query, first))

    def _few(self) -> Prediction:
        """Return the prediction at the first rows, those of printed tables."""
        if len(self) <= ROWS:
            return self
        return replace(self, query=self.query[:ROWS], code=self.code[:ROWS], index=None)

    def to_frame(self, level: float = 0.95) -> Any:
        """Return mean, standard error, confidence limits, slopes and effective sample size as a frame of pandas.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the pointwise limits, which are those of `confidence_interval`.

        Returns
        -------
        pandas.DataFrame
            One line per row, with the columns ``mean``, ``se``, of the interval ``center``, ``lower`` and ``upper``,
            ``slope_`` and the name of each numeric column, and ``n_eff``. Of several outputs names end with the number
            of the output, as in ``mean_0``.
            There are no slopes of weighted means by a user-defined kernel without `log_slope`.

        Raises
        ------
        ImportError
            If pandas is not installed.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> x, y = [[0.0], [1.0], [2.0], [3.0], [4.0]], [0.1, 0.9, 2.1, 2.9, 4.1]
        >>> model = LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(x, y)
        >>> model.get_prediction([[2.0], [2.5]]).to_frame().columns.tolist()
        ['mean', 'se', 'center', 'lower', 'upper', 'slope_0', 'n_eff']
        """
        found = self.confidence_interval(level=level)
        columns = {"mean": self.mean, "se": self.standard_error}
        columns |= {"center": found.center, "lower": found.lower, "upper": found.upper}
        of_means = get_kernel(self.model.kernel).log_slope is not None
        if self.model._degree or of_means:
            names = [column.name for column in printed_columns(self.model) if not column.has_levels]
            columns |= {f"slope_{name}": self.slope[:, a] for a, name in enumerate(names)}
        return frame_of(columns | {"n_eff": self.effective_sample_size}, self.index)

    def __str__(self) -> str:
        few = self._few()
        mean, at = few.mean, list(np.ndindex(few.mean.shape))
        labels = names_of(self.index, len(self))
        facts, names = {"rows": f"{len(self)}"}, ["row", "output"][: mean.ndim]
        try:
            found, se = few.confidence_interval(), few.standard_error
        except (TypeError, ValueError):  # another variance of rows in chunks, or too few rows: only the mean is known
            names, rows = [*names, "mean"], [[f"{labels[i[0]]}", *map(str, i[1:]), f"{mean[i]:.4g}"] for i in at]
        else:
            facts |= {"level": f"{found.level:g}, pointwise", "method": found.method}
            # The interval is around its own center.
            names, rows = [*names, "mean", "se", "bias-corrected", "lower", "upper", "n_eff"], []
            for i in at:
                ends = np.array([found.center[i], found.lower[i], found.upper[i]])
                digit = digits_beside(ends, se[i])
                cells = f"{mean[i]:.{digit}g}", f"{se[i]:.3g}", *(f"{end:.{digit}g}" for end in ends)
                rows.append([f"{labels[i[0]]}", *map(str, i[1:]), *cells, f"{few.effective_sample_size[i[0]]:.3g}"])
        return printed_table(facts, names, rows, more=few is not self)


class Inference(FittedModel):
    """Mixin of regressors: predictions at rows, confidence intervals, a summary of the fit, and its residuals."""

    def get_prediction(self, X: ArrayLike, *, variance: str = "local", groups: ArrayLike | None = None) -> Prediction:
        r"""Return the prediction at rows: mean, standard error, intervals, slopes, weights, effective sample size.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Evaluation points; they are copied.
        variance : {"local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"}, default="local"
            Noise of standard errors. ``"local"``: mean squared leave-one-out residual in a window of twice the
            bandwidth. ``"sandwich"``, which is ``"hc3"``: each row's own residual, for noise that jumps. ``"nn"``:
            residuals from the three nearest rows. ``"hc0"`` to ``"hc2"``: for comparison.
        groups : array_like of shape (n,), optional
            Cluster of each training row; by default as in `fit`.

        Returns
        -------
        Prediction
            Nothing is computed before it is used, and nothing twice.

        Raises
        ------
        ValueError
            If `variance` or the groups are invalid; standard errors: if there are fewer than five rows or clusters, or
            the fit takes all degrees of freedom.
        TypeError
            If the model was fitted to chunks, and there are groups or another `variance`.

        Warns
        -----
        ExtrapolationWarning
            If rows of X are far beyond the training rows.

        See Also
        --------
        conditional_distribution : Quantiles, distribution functions and draws at rows.

        Examples
        --------
        >>> from kernpool import LocalLinearRegressor
        >>> model = LocalLinearRegressor(bandwidth=1.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
        >>> model.get_prediction([[1.0]]).slope.round(9)
        array([[2.]])
        """
        exclusion = None
        if groups is not None:
            refuse(self, "groups=")
            weight = smoother_of(self).weight
            exclusion = exclusion_of_groups(self, groups)
            exclusion.units.refuse_few(weight)
        standard_errors.check_variance(variance, exclusion or getattr(self, "exclusion_", None))
        return prediction_at(Prediction, self, X, variance=variance, exclusion=exclusion)

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
            ``"quadratic"``, by a local quadratic fit in one to three numeric columns. ``"auto"`` takes it for the curve
            where the bandwidth was given or is of a rule, and ``"robust"`` elsewhere. ``"naive"``, the prediction and
            its standard error, and ``"undersmoothed"`` are for comparison.
        variance : {"local", "sandwich", "nn", "hc0", "hc1", "hc2", "hc3"}, default="local"
            As for `get_prediction`.
        groups : array_like of shape (n,), optional
            Cluster of each training row, by default as in `fit`; ``groups=range(n)`` is independent rows.
        simultaneous : bool or {"tube", "multiplier"}, default=False
            Whether the intervals hold all at once, output by output: ``"tube"`` along the whole curve between the ends
            of X, for one numeric column and independent rows; ``"multiplier"`` at the points of X, by random draws.
            True takes the former where it holds.
        quantity : {"fit", "derivative"}, default="fit"
            The curve, or its slope per unit of each numeric column.
        n_resamples : int, default=999
            Draws of ``"multiplier"``.
        random_state : int, RandomState, Generator or None, default=0
            Their seed.

        Returns
        -------
        Interval
            ``center``, ``lower``, ``upper``, ``standard_error`` of shape (m,) or (m, c), for slopes (m, d) or
            (m, d, c); ``df``; ``critical`` and ``band`` of a band.

        Raises
        ------
        ValueError, TypeError
            If there are fewer than five rows or clusters, the fit takes all degrees of freedom, or an argument is out
            of range or not for this fit.

        Warns
        -----
        EmptyWindowWarning
            If there is no training row in a window: the interval is NaN, whatever `empty` says.
        ExtrapolationWarning
            If rows of X are far beyond the training rows.
        InferenceWarning
            If residuals around a point are zero, or the correction of ``"robust"`` is larger than two standard errors:
            the bandwidth is too wide for the curve there.
        RankDeficiencyWarning
            If the rows around a point determine no plane, or, for ``method="quadratic"``, no quadratic.

        Notes
        -----
        The center is not `predict`: a curve that is fitted best is biased by about as much as it is uncertain. From
        three columns on intervals are approximate. The guide on methods has measured coverage and references.

        Examples
        --------
        >>> import numpy as np
        >>> from kernpool import LocalLinearRegressor
        >>> x, noise = np.linspace(0.0, 1.0, 50), np.cos(40.0 * np.arange(50))
        >>> found = LocalLinearRegressor(bandwidth=0.2).fit(x, 3.0 * x + noise).confidence_interval([0.5])
        >>> bool(found.lower[0] < 1.5 < found.upper[0])
        True
        """
        return self.get_prediction(X, variance=variance, groups=groups).confidence_interval(
            level=level, method=method, simultaneous=simultaneous, quantity=quantity, n_resamples=n_resamples,
            random_state=random_state,
        )  # fmt: skip

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
        Two passes over pairs of training rows. After a fit with `groups` it also has number and sizes of clusters, and
        the R2 of left-out ones; all other numbers are as if rows were independent.
        """
        model = as_fitted(self)
        refuse(model, "summary")
        smoother = model.smoother_.linear
        ridge = float(np.max(smoother.recipe.ridge))
        found = windows_of(model, model, f", ridge {ridge:.3g}" * (ridge > 0))
        chosen = found["chosen"] + ("" if smoother.exclusion is None else f", {smoother.exclusion.option}")
        return summarise(smoother, smoother.training_fit, type(model).__name__, chosen, found["columns"])

    def residuals(self) -> Residuals:
        """Return leave-one-out residuals, leverages and local noise of the training rows.

        After a fit with `groups`, residuals and noise are leave-cluster-out.

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
        found = replace(residuals(smoother, smoother.training_fit), names=self.index_)
        if self.value_.ndim == 1:
            found = replace(found, **{name: getattr(found, name)[:, 0] for name in ("fitted", "residual", "noise")})
        return found


def _default_method(model: FittedModel, quantity: str) -> str:
    """Return the default method of confidence intervals, "quadratic" or "robust", for a fitted model.

    It is "quadratic" for the fit itself of one to three numeric columns, unless the bandwidth was found by a search,
    and else "robust". The "robust" correction removes the bias that a bandwidth of least error leaves, but
    not that of a larger one. The local quadratic fit is no better for slopes.
    """
    if model._degree == 2:
        return "naive"
    columns = len(model.encoding_.numeric)
    if model.encoding_.options:
        return "robust"  # squares of coordinates of a circle are linear in each other
    chosen = model._bandwidth_was_found and not (isinstance(model.bandwidth, str) and model.bandwidth in RULES)
    return "robust" if quantity != "fit" or chosen or not 1 <= columns <= MOST_COLUMNS else "quadratic"
