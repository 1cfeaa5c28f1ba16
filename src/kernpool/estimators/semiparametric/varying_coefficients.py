"""Regression with coefficients that vary with other columns, such as a place: geographically weighted regression."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import KW_ONLY, replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import AnyArray, Array, Codes, Index
from kernpool.bandwidth import CRITERIA, RULES, LeaveOneOut
from kernpool.conformal import as_fraction
from kernpool.conformal.calibration import upper_rank, upper_statistic
from kernpool.core import EmptyWindowWarning
from kernpool.data import Columns, Encoding, is_frame, labels_of_rows
from kernpool.estimators.bandwidth import MOST_ROWS
from kernpool.estimators.fitted_model import points_of, windows_of
from kernpool.estimators.methods.prediction_intervals import check_rows, read_outputs
from kernpool.estimators.model import MULTISCALE, as_fitted, with_parameters
from kernpool.estimators.regressors import NadarayaWatsonRegressor
from kernpool.estimators.semiparametric.coefficient_regressor import (
    CoefficientRegressor,
    centered,
    curve_columns,
    linear_columns,
)
from kernpool.execution import as_count, as_level, check_choice, warn_of_queries, weighted_sum
from kernpool.execution.text_table import listed
from kernpool.inference import Interval, Residuals, Summary, local_noise
from kernpool.inference.local_coefficients import (
    LocalCoefficients,
    VariationTable,
    condition_numbers,
    in_windows_of_rule,
    local_r2,
    tests_in_words,
    variation_test,
)
from kernpool.inference.model_summary import criteria_of_fit, errors_of_fit, residuals_of, summary_of_regression
from kernpool.inference.resampling.random_draws import as_seed
from kernpool.pooling import Floor, Nearest, limit_values
from kernpool.smoother import EvaluationPoints
from kernpool.smoother.backfitting import Backfitting, backfit
from kernpool.smoother.local_least_squares import COLLINEAR, VaryingSmoother, gram_of, products_of, tolerances
from kernpool.smoother.varying_error import VaryingError

MOST_WEIGHTS = 8000  # rows times coefficients of linear weights: eight seconds, and half a gigabyte
METHODS = ("auto", "robust", "naive")
VARIANCES = ("local", "constant")


@with_parameters
class VaryingCoefficientRegressor(CoefficientRegressor):
    r"""Regression whose coefficients vary with other columns, such as a place, time, a number or a level.

    .. math:: y = b_0(z) + x \cdot b(z) + e

    where z are the columns that `by` names, and x the others. The coefficients at z are those of least squares of the
    rows around z, weighted by their similarity. Where z is a place, this is geographically weighted regression [1]_.

    Parameters
    ----------
    kernel : str or Kernel, default="gaussian"
        See `kernpool.kernel_names`; ``"biweight"`` is known as bisquare here.
    bandwidth : float, array_like of shape (d,), or name, default="loo"
        Of the columns of `by`: a number, one per column, or how to find them: ``"loo"``, ``"aicc"``, ``"gcv"``,
        ``"scott"`` or ``"silverman"``, as of `NadarayaWatsonRegressor`; ``"multiscale"``: for each coefficient its own,
        by backfitting, for coefficients that vary at unlike scales. Errors of these take (n p)^2 numbers, and are for
        n p up to 8000.
    by : str, int or collection of these
        Names or positions of the columns that coefficients vary with.
    window : "auto", "fixed", Nearest or Floor, default="auto"
        As of `NadarayaWatsonRegressor`: ``Nearest(60)`` are windows to the 60 nearest rows, and ``Nearest()`` finds the
        number by the criterion that `bandwidth` names, and whether columns are best in equal units.
    smoothing, categorical_kernel, search, empty
        As of `NadarayaWatsonRegressor`, of the columns of `by`. A search takes all rows up to 8191 of one column and
        4095 of several, and beyond a sample of 4096 or 2048, whose bandwidths are those of all rows by a rate. Where
        windows are empty, or do not determine the coefficients, `empty` says which coefficients there are: by default
        those of the nearest row.
    unordered, ordered, periodic, geographic, unseen, gap, n_jobs
        As of `NadarayaWatsonRegressor`; columns are those of X.

    Attributes
    ----------
    coef_ : ndarray of shape (n, p)
        Coefficients at the training rows, in the order of `coef_names_`, the intercept first; NaN at rows of weight
        zero whose windows do not determine them.
    coef_names_ : list of str
        ``"intercept"`` (in brackets where a column has that name), columns, and of categories column and level, as in
        ``region[north]``.
    scale_ : ndarray of shape (p,)
        Of ``bandwidth="multiscale"``, the width of the windows of each coefficient in that of `places_`.
    places_ : NadarayaWatsonRegressor
        The columns of `by`, with `bandwidth_`, `smoothing_` and `window_`; its outputs are products of the others.
    n_features_in_, feature_names_in_, encoding_, index_, target_name_, key_, value_, key_weight_, exclusion_
        As of `NadarayaWatsonRegressor`.

    See Also
    --------
    PartiallyLinearRegressor : Coefficients that are the same everywhere, next to a curve.

    Notes
    -----
    A fit is one pass that pools products of the p - 1 columns, p (p + 3) / 2 of them. Leave-one-out errors are exact:
    those of fits without the row. Of mgwr the coefficients, standard errors (``coefficients(method="naive",
    variance="constant")``), effective parameters and AICc are the same: ``("gaussian", 0.1)`` is its ``fixed=True,
    kernel="gaussian"``, and ``("biweight", window=Nearest(45))`` its ``kernel="bisquare"``, but for windows that it
    widens by 1e-7.

    References
    ----------
    .. [1] A. S. Fotheringham, C. Brunsdon and M. Charlton, "Geographically Weighted Regression", Wiley (2002).
    .. [2] T. Hastie and R. Tibshirani, "Varying-coefficient models", JRSS B 55 (1993), 757-796.

    Examples
    --------
    >>> from kernpool import VaryingCoefficientRegressor
    >>> rng = np.random.default_rng(0)
    >>> place, x = rng.uniform(size=(200, 2)), rng.normal(size=200)
    >>> y = 1.0 + (place[:, 0] + place[:, 1]) * x + 0.1 * rng.normal(size=200)
    >>> model = VaryingCoefficientRegressor(by=[0, 1]).fit(np.column_stack([place, x]), y)
    >>> model.coefficients([[0.2, 0.2, 0.0], [0.8, 0.8, 0.0]]).coef.round(1)
    array([[1. , 0.5],
           [1. , 1.6]])
    """

    _named = "by", "coefficients", "NadarayaWatsonRegressor"
    _kind = NadarayaWatsonRegressor
    bandwidth: Any = "loo"
    _: KW_ONLY
    by: Any = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, time: Any = None) -> Self:
        """Find the windows, and fit the coefficients at the training rows.

        Parameters
        ----------
        X : array_like of shape (n, columns), or frame
            Columns of `by` and those with coefficients, in memory.
        y : array_like of shape (n,)
            Outputs.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.
        groups : array_like of shape (n,), optional
            Cluster of each row: whole clusters are left out, and standard errors are cluster-robust.
        time : array_like of shape (n,), or str, optional
            Order of the rows, for `gap`, as of `NadarayaWatsonRegressor.fit`.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If `by` names no columns or all, rows are fewer than coefficients, columns are collinear in the window of a
            row, there are several outputs, or as of `NadarayaWatsonRegressor.fit`.
        TypeError
            If X is a file, chunks or on Dask, or as of `NadarayaWatsonRegressor.fit`.

        Warns
        -----
        RepeatedRowsWarning, SuspectColumnWarning
            As of `NadarayaWatsonRegressor.fit`.
        """
        places, _ = self._read(X, y, sample_weight=sample_weight, groups=groups, time=time)
        if isinstance(self.bandwidth, str) and CRITERIA.get(self.bandwidth, CRITERIA["loo"]).regular:
            raise ValueError(f"bandwidth={self.bandwidth!r} is for means and planes; use 'loo' or 'aicc'")
        own_scales = isinstance(self.bandwidth, str) and self.bandwidth == MULTISCALE
        if own_scales and self.window not in ("auto", "fixed"):
            raise ValueError(f"bandwidth={MULTISCALE!r} finds widths, and window={self.window} has none; use 'fixed'")
        self.coef_names_ = ["(intercept)" if "intercept" in self.coef_names_ else "intercept", *self.coef_names_]
        z, z_code = curve_columns(self.encoding_, self.linear_, self.key_, self.key_code_)
        weight = np.ones(len(z)) if self.key_weight_ is None else self.key_weight_
        kept = np.flatnonzero(weight > 0)
        self.mean_, x = centered(self._x, weight)
        spread = np.sqrt(weighted_sum(weight, x**2) / weight.sum())
        self.spread_ = np.where(spread > 0, spread, 1.0)
        value_mean, outcome = centered(self.value_, weight)
        self.value_mean_ = float(value_mean)
        u = self._regressors(self._x)
        self._refuse_collinear(u[kept], weight[kept])
        places.bandwidth = "loo" if own_scales else self.bandwidth
        places._objective = partial(VaryingError, p=u.shape[1])
        places._fit_pairs(z, z_code, products_of(u, outcome), self.key_weight_, self.exclusion_)
        del places._objective
        self.places_ = places
        self.window_ = places.window_
        self._freeze()
        training = self._varying.training
        alone = np.flatnonzero(~training.determined & (weight > 0))
        if alone.size:
            self._refuse_window(alone)
        if own_scales:
            some = np.sort(np.random.default_rng(0).permutation(kept)[:MOST_ROWS])
            fitted = backfit(self._varying, some)
            self.scale_, self.partial_ = fitted.factor, fitted.partial
            self._freeze()
        self.coef_ = self._in_units(self._known)
        return self

    def _freeze(self) -> None:
        """Keep the parameters of the fit, and make its smoother again."""
        super()._freeze()
        smoother: Any = self.places_.smoother_
        self._varying = varying = VaryingSmoother(smoother, self._regressors(self._x), self.value_ - self.value_mean_)
        scale = getattr(self, "scale_", None)
        self._own = None if scale is None else Backfitting(varying, scale, self.partial_)

    @property
    def _known(self) -> Array:
        """Coefficients of regressors at the training rows."""
        own = self._own
        return self._varying.training.coefficients if own is None else own.at(self._varying.smoother.training)

    def _coefficients(self, places: EvaluationPoints) -> Array:
        """Return coefficients of regressors, also where windows do not determine them, as `empty` says."""
        smoother = self._varying.smoother
        problem = smoother.problem(places)
        found = self._varying.fit(problem).coefficients if self._own is None else self._own.at(places)
        determined = np.asarray(np.isfinite(found).all(axis=1))
        rows = np.flatnonzero(~determined)
        if not rows.size:
            return found
        smoother.recipe.report_empty(determined)
        policy = smoother.recipe.empty_value
        if policy is not None:
            found[rows] = policy
            found[rows, 0] -= self.value_mean_
            return found
        own = smoother.with_values(np.nan_to_num(self._known))
        found[rows] = limit_values(own.with_own_values(problem), rows, smoother.recipe.empty, self.n_jobs) + 0.0
        return found

    def _answering(self) -> VaryingSmoother | Backfitting:
        """Return the fit that has leverages and leave-one-out residuals: in common windows, or each in its own.

        Raises ValueError where those of coefficients in windows of their own would take too much memory.
        """
        check_is_fitted(self)
        n, p = self._varying.regressors.shape
        if self._own is not None and (n * p > MOST_WEIGHTS or self.exclusion_ is not None):
            raise ValueError(
                f"errors of bandwidth='multiscale' take (n p)^2 numbers, and are for n p up to {MOST_WEIGHTS} without "
                f"groups and gap; the fit has {n} rows and {p} coefficients; fit a sample of the rows, or windows in "
                "common: bandwidth=model.places_.bandwidth_"
            )
        return self._varying if self._own is None else self._own

    def _regressors(self, x: Array) -> Array:
        """Return one and the columns in their spreads from their means."""
        return np.concatenate([np.ones((len(x), 1)), (x - self.mean_) / self.spread_], axis=1)

    @property
    def _to_units(self) -> Array:
        """The matrix from coefficients of regressors to those of columns; the mean of y is not in it."""
        found = np.diag(np.append(1.0, 1.0 / self.spread_))
        found[0, 1:] = -self.mean_ / self.spread_
        return found

    def _in_units(self, coefficients: Array) -> Array:
        found = coefficients @ self._to_units.T
        found[:, 0] += self.value_mean_
        return np.asarray(found)

    def _refuse_collinear(self, u: Array, weight: Array) -> None:
        """Raise ValueError if there are too few rows for the coefficients, or columns are collinear in all rows."""
        if len(u) < u.shape[1]:
            raise ValueError(
                f"{len(u)} sample(s) of positive weight are fewer than the {u.shape[1]} coefficients; fit more rows, "
                "or fewer columns"
            )
        mean = weighted_sum(weight, products_of(u, np.zeros(len(u)))) / weight.sum()
        left = tolerances(gram_of(mean[None], u.shape[1]))[0]
        if not np.all(left > COLLINEAR):
            name = self.coef_names_[int(np.argmin(left > COLLINEAR))]
            raise ValueError(
                f"column {name!r} is constant, or a combination of the columns before it; leave it out of X"
            )

    def _refuse_window(self, alone: Index) -> None:
        """Raise ValueError about windows of these rows, in which columns are collinear, with the least that are not."""
        varying = self._varying
        fit = varying.at(varying.smoother.training.rows(alone))
        left = tolerances(np.nan_to_num(fit.gram))
        name = self.coef_names_[int(np.argmin(left[0] > COLLINEAR))]

        def enough(k: int) -> bool:
            smoother = replace(varying.smoother, window=Nearest(k), first=None)
            code = smoother.key_code
            points = smoother.points(smoother.keys.rows.array[alone], None if code is None else code[alone])
            return bool(replace(varying, smoother=smoother).at(points).determined.all())

        low = bisect_left(range(len(varying.outcome)), True, varying.regressors.shape[1], key=enough)
        raise ValueError(
            f"the windows of {len(alone)} row(s), such as row {alone[0]}, do not determine the coefficients: column "
            f"{name!r} is constant there, or a combination of the columns before it. Windows to {low} rows or more are "
            f"wide enough there: give window=Nearest({low}) or more, or a larger bandwidth"
            f"{', which a Floor doubles at most' * isinstance(varying.smoother.window, Floor)}, or leave the column out"
        )

    def _places_at(self, X: Any) -> tuple[Array, EvaluationPoints]:
        """Return regressors and places of queries, with a warning of extrapolation in the places."""
        key, code = self._encoded(X)
        z, z_code = curve_columns(self.encoding_, self.linear_, key, code)
        self.places_._extent.warn(z)
        return self._regressors(linear_columns(self.encoding_, self.linear_, key, code)), points_of(
            self.places_, z, z_code
        )

    def _z_of(self, X: Any) -> tuple[AnyArray, Codes]:
        """Return the columns of `by` as numbers and category codes; X has these columns alone, or all of the fit."""
        encoding: Encoding = self.places_.encoding_
        if is_frame(X) and encoding.labels is not None and set(encoding.labels) <= set(X.columns):
            X = X[list(encoding.labels)]
        if len(Columns.of(X).columns) == len(encoding.kinds):
            return encoding.encode(X, self.unseen)
        return curve_columns(self.encoding_, self.linear_, *self._encoded(X))

    def predict(self, X: ArrayLike) -> Array:
        """Predict y at new rows: their columns times the coefficients at their places.

        Parameters
        ----------
        X : array_like of shape (m, columns)
            Queries.

        Returns
        -------
        ndarray of shape (m,)
            One per query.

        Warns
        -----
        ExtrapolationWarning, EmptyWindowWarning
            As `NadarayaWatsonRegressor.predict`, for the columns of `by`; also where windows hold rows, and do not
            determine the coefficients.
        """
        u, places = self._places_at(X)
        return self._mean(u, self._coefficients(places))

    def _mean(self, u: Array, coefficients: Array) -> Array:
        return np.asarray(np.einsum("ma,ma->m", u, coefficients) + self.value_mean_)

    def _estimates(self, places: EvaluationPoints, method: str, variance: str) -> tuple[Array, Array, Array, Array]:
        """Return coefficients of regressors, (m, p), their covariance, the noise (m,), and degrees of freedom."""
        fitted = self._answering()
        check_choice("method", method, METHODS)
        check_choice("variance", variance, VARIANCES)
        varying, smoother, m = self._varying, self._varying.smoother, len(places.query)
        training, code, error = fitted.training, smoother.noise_units.code, fitted.residual
        noise: Any = self._error
        df: Any
        if code is not None:
            df = len(np.unique(code[smoother.weight > 0])) - 1.0
        elif variance == "local":
            noise, df = local_noise(smoother, places, error[:, None] ** 2)
            noise = noise[:, 0]
        else:
            df = smoother.rows - training.trace
            if not df > 1.0:
                raise ValueError(
                    f"the fit has {training.trace:.6g} effective parameters for {smoother.rows:g} rows, so that no "
                    "residual is left to estimate the noise from; use larger windows"
                )
            noise = weighted_sum(smoother.weight, training.residual**2) / df
        noise, df = np.full(m, noise), np.full(m, df)

        def estimate(one: VaryingSmoother, some: Index) -> tuple[Array, Array]:
            fit = one.at(places.rows(some))
            norms = one.norms(fit) * noise[some, None, None] if code is None else one.covariance_of_units(fit, error)
            return fit.coefficients, norms

        if isinstance(fitted, Backfitting):
            linear = fitted.linear(places, twice=method != "naive")
            unit = linear / np.where(smoother.weight > 0, smoother.weight, 1.0)
            covariance = np.einsum("amn,bmn->mab", linear, unit) * noise[:, None, None]
            return np.einsum("amn,n->ma", linear, fitted.varying.outcome), covariance, noise, df

        found, covariance = estimate(varying if method == "naive" else varying.planes(), np.arange(len(places.query)))
        flat = np.isnan(found[:, 0]) & (method != "naive")
        if flat.any():
            found[flat], covariance[flat] = estimate(varying, np.flatnonzero(flat))
            warn_of_queries(
                flat & np.isfinite(found[:, 0]),
                "rows determine coefficients, and not how these change from place to place, so that intervals there "
                "are around coefficients with their bias; use a larger bandwidth, or method='naive'",
            )
        return found, covariance, noise, df

    @property
    def _error(self) -> float:
        """Mean squared leave-one-out error."""
        smoother = self._varying.smoother
        return float(weighted_sum(smoother.weight, self._answering().residual ** 2)) / smoother.rows

    @property
    def _tests(self) -> Array:
        """Effective number of tests of each coefficient: its effective parameters."""
        p = len(self.coef_names_)
        each = np.full(p, self._varying.training.trace / p) if self._own is None else self._own.hat.sum(axis=1)
        return np.asarray(np.maximum(each, 1.0))

    def coefficients(
        self, X: Any = None, *, level: float = 0.95, method: str = "auto", variance: str = "local"
    ) -> LocalCoefficients:
        r"""Return the coefficients at places, with intervals, significance and local diagnostics.

        Parameters
        ----------
        X : array_like of shape (m, columns), optional
            Rows at whose places coefficients are asked for, or their columns of `by` alone; by default the training
            rows. Beyond all windows coefficients and all else are NaN, whatever `empty` says.
        level : float, default=0.95
            Confidence level of each interval.
        method : {"auto", "robust", "naive"}, default="auto"
            ``"robust"``, which is ``"auto"``: centers are of planes of coefficients in the same windows, which have no
            bias of first order; of 400 rows 95 percent intervals cover 95 to 96 in a hundred. ``"naive"``: around the
            coefficients as they are, whose bias costs a tenth of coverage; also where rows do not determine planes.
        variance : {"local", "constant"}, default="local"
            Noise of the rows around a place, from leave-one-out residuals, or the same everywhere: residual sum of
            squares over rows less effective parameters. After a fit with groups standard errors are cluster-robust, as
            they are with a gap, with stretches of four times as many places for clusters.

        Returns
        -------
        LocalCoefficients
            Prints as a table, and has `to_frame`.

        Warns
        -----
        EmptyWindowWarning
            If places are beyond all windows.
        UserWarning
            If rows around a place determine no planes.
        """
        level, fitted, varying = as_level(level), self._answering(), self._varying
        own, places = self.places_, varying.smoother.training
        z = own.key_
        if X is not None:
            z, code = self._z_of(X)
            own._extent.warn(z)
            places = points_of(own, z, code)
        fit = varying.at(places)
        warn_of_queries(
            ~fit.determined & (X is not None),
            "have too few rows in their windows for coefficients, so that these and their errors become NaN, whatever "
            "empty= says; use a larger bandwidth, or a kernel of infinite support",
            EmptyWindowWarning,
            before="",
        )
        center, covariance, _, df = self._estimates(places, method, variance)
        turn = self._to_units
        error = np.sqrt(np.diagonal(turn @ covariance @ turn.T, axis1=1, axis2=2))
        center = self._in_units(center)
        coef = fit.coefficients if self._own is None else self._own.at(places)
        with np.errstate(invalid="ignore"):
            half = -stdtrit(df[:, None], 0.5 * (1.0 - level)) * error
        back, condition = np.linalg.inv(turn), np.full(len(center), np.nan)
        condition[fit.determined] = condition_numbers(back.T @ fit.gram[fit.determined] @ back)
        index = self.index_ if X is None else labels_of_rows(X)
        named = [self._names_of_others[i] for i in own.encoding_.numeric]
        order = np.arange(len(named))
        for one in own.encoding_.options:
            order[list(one.columns)] = one.columns[::-1]  # longitude first, as on maps
        return LocalCoefficients(
            tuple(self.coef_names_), self._in_units(coef), center, error, center - half, center + half, df, level,
            "naive" if method == "naive" else "bias-corrected", self._tests, local_r2(varying, fit, fitted.training),
            condition, z[:, order], tuple(named[i] for i in order), index,
        )  # fmt: skip

    def confidence_interval(
        self, X: ArrayLike, *, level: float = 0.95, method: str = "auto", variance: str = "local"
    ) -> Interval:
        """Compute pointwise confidence intervals for the mean of y at rows.

        Parameters
        ----------
        X : array_like of shape (m, columns)
            Evaluation points.
        level : float, default=0.95
            Coverage of each interval.
        method, variance
            As of `coefficients`.

        Returns
        -------
        Interval
            As of `NadarayaWatsonRegressor.confidence_interval`.
        """
        level, (u, places) = as_level(level), self._places_at(X)
        found, covariance, _, df = self._estimates(places, method, variance)
        error = np.sqrt(np.einsum("ma,mab,mb->m", u, covariance, u))
        center = self._mean(u, found)
        half = -stdtrit(df, 0.5 * (1.0 - level)) * error
        name = "naive" if method == "naive" else "robust"
        return Interval(center, center - half, center + half, level, name, error, df, index=labels_of_rows(X))

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: str = "auto",
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
    ) -> Interval:
        r"""Compute prediction intervals: they contain a new observation of y with a given probability.

        Around predictions, as many errors :math:`(\hat\sigma^2(z) + \mathrm{se}^2(x, z))^{1/2}` wide as `level` of
        the calibration rows, new ones, or the training rows left out of their fits, lie within.

        Parameters
        ----------
        X : array_like of shape (m, columns)
            Evaluation points.
        level : float, default=0.9
            Coverage of the intervals.
        method : {"auto", "adaptive", "split"}, default="auto"
            ``"adaptive"`` takes the training rows, ``"split"`` new ones, and ``"auto"`` these if there are any.
        X_calibration, y_calibration : array_like, optional
            Rows that the fit has not seen: coverage is then at least the level, whatever the noise.

        Returns
        -------
        Interval
            As of `NadarayaWatsonRegressor.prediction_interval`.
        """
        level, (u, places) = as_level(level), self._places_at(X)
        varying, given = self._varying, check_rows(X_calibration, y_calibration, None)
        own = "split" if given else "adaptive"
        check_choice("method", method, ("auto", own))

        def size(u: Array, places: EvaluationPoints) -> Array:
            _, covariance, noise, _ = self._estimates(places, "naive", "local")
            return np.asarray(np.sqrt(noise + np.einsum("ma,mab,mb->m", u, covariance, u)))

        if given:
            error = self.predict(X_calibration)  # type: ignore[arg-type]  # as of `check_rows`
            error = read_outputs(y_calibration, error.shape, None)[:, 0] - error
            known, weight = size(*self._places_at(X_calibration)), np.ones(len(error))
        else:
            error, weight = self._answering().residual, varying.smoother.weight
            known = size(varying.regressors, varying.smoother.training)
        share = np.divide(np.abs(error), known, where=known > 0, out=np.zeros(len(error)))
        rows = float(weight.sum())
        times = upper_statistic(share, weight, upper_rank(as_fraction(level), rows))
        center, half = self._mean(u, self._coefficients(places)), times * size(u, places)
        return Interval(
            center, center - half, center + half, level, own, index=labels_of_rows(X),
            guarantee="at least the level" if given else "about the level, for rows like those of the fit",
            n_calibration=rows,
        )  # fmt: skip

    def leave_one_out(self) -> LeaveOneOut:
        """Compute leave-one-out predictions, exactly those of fits to the other rows in the same windows.

        Returns
        -------
        LeaveOneOut
            As of `NadarayaWatsonRegressor.leave_one_out`.
        """
        fitted = self._answering()
        known = fitted.left_out[1] if isinstance(fitted, VaryingSmoother) else fitted.training.determined
        return LeaveOneOut((self.value_ - fitted.residual)[:, None], self._error, known.copy())

    def residuals(self) -> Residuals:
        """Return leave-one-out residuals, leverages and local noise of the training rows.

        Returns
        -------
        Residuals
            As of `NadarayaWatsonRegressor.residuals`.
        """
        fitted = self._answering()
        smoother, training = self._varying.smoother, fitted.training
        noise = np.sqrt(local_noise(smoother, smoother.training, fitted.residual[:, None] ** 2)[0][:, 0])
        value = training.fitted + self.value_mean_
        return residuals_of(smoother, value, fitted.residual, training.leverage, noise, self.index_)

    def variation(self, *, n_resamples: int = 199, random_state: Any = 0) -> VariationTable:
        """Test for each coefficient whether it varies at all, and list its quartiles over the training rows.

        The statistic is the variance of its estimates over the rows (at most 1000 of them), compared with those of
        outputs under the hypothesis that it is constant and all others are as they are (wild bootstrap). Windows are
        those of the fit if they were given, else those of Scott's rule: found ones follow the noise.

        Parameters
        ----------
        n_resamples : int, default=199
            Outputs that are drawn; p-values are at least one over one more.
        random_state : int or generator, default=0
            Seed of the draws.

        Returns
        -------
        VariationTable
            Prints as a table, and has `to_frame`.
        """
        fitted = as_fitted(self)
        as_count("n_resamples", n_resamples, hint=" such as 199")
        varying, seed = self._varying, as_seed(random_state)
        searched = isinstance(fitted.bandwidth, str) and fitted.bandwidth not in RULES
        if searched or getattr(fitted.window, "k", 0) is None:
            varying = in_windows_of_rule(varying)
        statistic, p_value = variation_test(varying, self._to_units, n_resamples, seed)
        weight = varying.smoother.weight
        return VariationTable.of(self.coefficients(), weight, statistic, p_value, n_resamples)

    def summary(self) -> Summary:
        """Summarise the fit: each coefficient over the training rows, windows, effective parameters, R2 and AICc.

        Returns
        -------
        Summary
            A record that prints well; `coefficients` is the table of `variation`.
        """
        answering, smoother, variation = self._answering(), self._varying.smoother, self.variation()
        y, own, left_out = (
            column[:, None] for column in (self._varying.outcome, answering.training.residual, answering.residual)
        )
        values = windows_of(as_fitted(self), self.places_)
        values |= errors_of_fit(y, own, left_out, smoother.weight, answering.training.trace)
        values |= criteria_of_fit(weighted_sum(smoother.weight, own**2), values["trace"], smoother.rows)
        values |= {
            "columns": self._with_names(values["columns"]),
            "coefficients": variation,
            "effective_tests": self._tests,
        }
        found = summary_of_regression(type(self).__name__, self.n_features_in_, values)
        found.facts["tests per coefficient"] = tests_in_words(self._tests)
        found.facts["p constant"] = f"from {variation.n_resamples} resamples"
        if self._own is not None:
            found.facts["width of each"] = listed(self.scale_)
        return found
