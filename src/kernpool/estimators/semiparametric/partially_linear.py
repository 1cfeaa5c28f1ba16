"""Partially linear regression: coefficients of some columns, and a curve in the others."""

from __future__ import annotations

from copy import copy
from dataclasses import KW_ONLY, dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from kernpool._arrays import AnyArray, Array, Codes
from kernpool.bandwidth import LeaveOneOut
from kernpool.data import Encoding
from kernpool.estimators.limits import smoother_of
from kernpool.estimators.methods.prediction_intervals import check_rows, read_outputs
from kernpool.estimators.methods.row_order import warn_of_correlated_noise
from kernpool.estimators.model import as_fitted, with_parameters
from kernpool.estimators.regressors import LocalPolynomialRegressor
from kernpool.estimators.semiparametric.coefficient_regressor import (
    CoefficientRegressor,
    centered,
    curve_columns,
    linear_columns,
)
from kernpool.execution import as_level, weighted_sum
from kernpool.inference import Coefficients, Interval, Residuals, Summary
from kernpool.inference.coefficients import EXACT, SMOOTH, coefficients_of, covariance_of, freedom_of, refuse_dependent
from kernpool.inference.model_summary import explained, summary_of_regression


@dataclass(frozen=True)
class CurveEncoding(Encoding):
    """Encoding of the columns of the curve that reads them from tables with the linear ones."""

    whole: Encoding = Encoding((), ())  # noqa: RUF009  # frozen
    linear: tuple[int, ...] = ()

    def encode(self, X: Any, unseen: str = "raise") -> tuple[AnyArray, Codes]:
        """Convert a table of all columns to numbers and category codes of those of the curve."""
        return curve_columns(self.whole, self.linear, *self.whole.encode(X, unseen))


@with_parameters
class PartiallyLinearRegressor(CoefficientRegressor):
    r"""Partially linear regression: coefficients of some columns, and a curve in the others.

    .. math:: y = x \cdot b + g(z) + e

    where x are the linear columns, and z the others [1]_. Both y and each linear column are smoothed in z, each with
    its own bandwidth, and b is the least-squares fit of their leave-one-out residuals; what is left of
    :math:`y - (x - \bar x) \cdot b` by its own smooth is fitted once more, and the curve is the smooth at the last b.

    Parameters
    ----------
    linear : str, int or collection of these
        Names or positions of the linear columns. Of categories each level but the first has a coefficient.
    degree : {0, 1, 2}, default=1
        Degree of the local fits in the other columns, as of `LocalPolynomialRegressor`.
    kernel, bandwidth, smoothing, categorical_kernel, window, search, empty
        As of `LocalPolynomialRegressor`, for the columns that are not linear, of all smooths alike.
    unordered, ordered, periodic, geographic, unseen, gap, n_jobs
        As of `LocalPolynomialRegressor`; columns are those of X.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        Coefficients, in the order of `coef_names_`.
    coef_names_ : list of str
        Columns; of categories column and level, as in ``region[north]``.
    covariance_, df_ : ndarray of shape (p, p), and float
        Covariance matrix of the coefficients, and degrees of freedom of their t statistics.
    curve_ : LocalPolynomialRegressor
        The curve at the means of the linear columns, a model of the other columns with all answers of its class. They
        take the coefficients as known: intervals of the curve with their error are `confidence_interval` of this model
        at rows with linear columns at their means, and tests and bands of `curve_` leave it out.
    linear_mean_ : ndarray of shape (p,)
        Means of the linear columns.
    n_features_in_, feature_names_in_, encoding_, index_, target_name_, key_, value_, key_weight_, exclusion_
        As of `LocalPolynomialRegressor`.

    See Also
    --------
    LocalPolynomialRegressor : A curve in all columns.

    Notes
    -----
    Standard errors are robust to uneven noise (HC3), with the degrees of freedom that coefficients and curve leave;
    with `groups` whole clusters are left out, and with a `gap` products of neighbouring rows count. R's ``npplreg`` has
    residuals of fits that contain the row itself, whose 95 percent intervals cover 83 in a hundred at 60 rows.

    A fit takes a search and a pass for y, for each coefficient, and twice for the curve.

    References
    ----------
    .. [1] P. M. Robinson, "Root-N-consistent semiparametric regression", Econometrica 56 (1988), 931-954.

    Examples
    --------
    >>> from kernpool import PartiallyLinearRegressor
    >>> rng = np.random.default_rng(0)
    >>> z = rng.uniform(size=200)
    >>> x = z**2 + 0.3 * rng.normal(size=200)
    >>> y = 2.0 * x + np.sin(6 * z) + 0.2 * rng.normal(size=200)
    >>> model = PartiallyLinearRegressor(linear=[0]).fit(np.column_stack([x, z]), y)
    >>> print(model.coefficients())
         coef   std err  t      P>|t|  [0.025  0.975]
      0  2.036  0.0553   36.84  0.000  1.927   2.145
    <BLANKLINE>
    t with 185.8 degrees of freedom
    """

    _named = "linear", "the curve", "least squares, such as sklearn.linear_model.LinearRegression"
    _kind = LocalPolynomialRegressor
    _: KW_ONLY
    linear: Any = None
    degree: int = 1

    @property
    def _reads_pairs_as_numbers(self) -> bool:
        return bool(self._of_others()._reads_pairs_as_numbers)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, time: Any = None) -> Self:
        """Fit the coefficients, and the curve.

        Parameters
        ----------
        X : array_like of shape (n, columns), or frame
            Linear columns and those of the curve, as of `LocalPolynomialRegressor.fit`, in memory.
        y : array_like of shape (n,)
            Outputs.
        sample_weight : array_like of shape (n,), optional
            Frequencies of rows, non-negative.
        groups : array_like of shape (n,), optional
            Cluster of each row: residuals are of fits without the whole cluster, and standard errors cluster-robust.
        time : array_like of shape (n,), or str, optional
            Order of the rows, for `gap`, as of `LocalPolynomialRegressor.fit`.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If `linear` names no columns or all, a linear column is constant, a combination of linear ones, or a
            function of the others that its smooth finds, rows are too few, there are several outputs, or as of
            `LocalPolynomialRegressor.fit`.
        TypeError
            If X is a file, chunks or on Dask, or as of `LocalPolynomialRegressor.fit`.

        Warns
        -----
        RepeatedRowsWarning, SerialCorrelationWarning, SuspectColumnWarning
            As of `LocalPolynomialRegressor.fit`.
        """
        curve, place = self._read(X, y, sample_weight=sample_weight, groups=groups, time=time)
        z, z_code = curve_columns(self.encoding_, self.linear_, self.key_, self.key_code_)

        def smooth(output: Array) -> LocalPolynomialRegressor:
            fitted: LocalPolynomialRegressor = copy(curve)
            fitted._fit_pairs(z, z_code, output, self.key_weight_, self.exclusion_)
            return fitted

        def residual(fitted: LocalPolynomialRegressor) -> Array:
            return np.asarray(fitted.value_ - fitted.leave_one_out().prediction[:, 0])

        self.curve_ = smooth(self.value_)
        weight, x = smoother_of(self.curve_).weight, self._x
        rows, p = float(weight.sum()), x.shape[1]
        freedom_of(rows, p, 1.0)  # of too few rows no trace is known
        self.linear_mean_, x = centered(x, weight)
        root, size = np.sqrt(weight)[:, None], np.sqrt(weighted_sum(weight, x**2))
        refuse_dependent(root * x, size, self.coef_names_, EXACT)
        of_columns = np.column_stack([residual(smooth(column)) for column in x.T])
        refuse_dependent(root * of_columns, size, self.coef_names_, SMOOTH)
        self.coef_ = np.zeros(p)
        for _ in range(2):  # bandwidths of the second smooth are of the curve, whatever x adds to y
            outcome = residual(self.curve_)
            step = coefficients_of(outcome, of_columns, weight)
            self.coef_ += step
            self.curve_ = smooth(self.value_ - x @ self.coef_)
        warn_of_correlated_noise(self.curve_, place)
        df = freedom_of(rows, p, smoother_of(self.curve_).training_fit.trace)
        self.covariance_, self.df_ = covariance_of(outcome - of_columns @ step, of_columns, weight, df, self.exclusion_)
        self._freeze()
        return self

    @property
    def _curve(self) -> LocalPolynomialRegressor:
        """The curve as a model that reads tables of all columns."""
        taken = as_fitted(self)
        curve = as_fitted(taken.curve_, self)
        of_curve = {each.name: getattr(curve.encoding_, each.name) for each in fields(curve.encoding_)}
        curve.encoding_ = CurveEncoding(**of_curve, whole=taken.encoding_, linear=taken.linear_)
        return curve

    def _x_at(self, X: ArrayLike) -> Array:
        """Return the linear columns of queries less their means."""
        return np.asarray(linear_columns(self.encoding_, self.linear_, *self._encoded(X)) - self.linear_mean_)

    @property
    def _shift(self) -> Array:
        """What the linear columns add to the curve at the training rows."""
        return np.asarray((self._x - self.linear_mean_) @ self.coef_)

    def predict(self, X: ArrayLike) -> Array:
        """Predict y at new rows: the curve, and the linear columns times their coefficients.

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
        ExtrapolationWarning, EmptyWindowWarning, RankDeficiencyWarning
            As `LocalPolynomialRegressor.predict`, for the columns of the curve.
        """
        return np.asarray(self._curve.predict(X) + self._x_at(X) @ self.coef_)

    def coefficients(self, level: float = 0.95) -> Coefficients:
        """Return the coefficients with standard errors, t statistics, p-values and confidence intervals.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of each interval.

        Returns
        -------
        Coefficients
            Prints as a regression table, and has `to_frame`.
        """
        check_is_fitted(self)
        return Coefficients.of(self.coef_names_, self.coef_, self.covariance_, self.df_, as_level(level))

    def confidence_interval(self, X: ArrayLike, *, level: float = 0.95, method: str = "auto") -> Interval:
        r"""Compute pointwise confidence intervals for the mean of y at rows.

        Their variance is that of the curve and :math:`d' V d` with :math:`d = x - \hat E(x | z)`. Those of
        `curve_` leave out the second part.

        Parameters
        ----------
        X : array_like of shape (m, columns)
            Evaluation points.
        level : float, default=0.95
            Coverage of each interval.
        method : str, default="auto"
            As of `LocalPolynomialRegressor.confidence_interval`.

        Returns
        -------
        Interval
            As of `LocalPolynomialRegressor.confidence_interval`.
        """
        prediction, x = self._curve.get_prediction(X), self._x_at(X)
        found = prediction.confidence_interval(level=level, method=method)
        smoother = prediction._smoother.with_values(self._x - self.linear_mean_)
        away = x - smoother.predict(smoother.problem(prediction._places))
        curve = np.asarray(found.standard_error)
        error = np.sqrt(curve**2 + np.sum((away @ self.covariance_) * away, axis=1))
        half = (found.upper - found.center) * np.divide(error, curve, where=curve > 0, out=np.ones_like(curve))
        lower, upper = found.center - half, found.center + half
        return _moved(replace(found, standard_error=error, lower=lower, upper=upper), x @ self.coef_)

    def prediction_interval(
        self,
        X: ArrayLike,
        *,
        level: float = 0.9,
        method: str = "auto",
        X_calibration: ArrayLike | None = None,
        y_calibration: ArrayLike | None = None,
    ) -> Interval:
        """Compute prediction intervals: they contain a new observation of y with a given probability.

        They are those of the curve, moved by the linear columns times their coefficients, which are taken as given.

        Parameters
        ----------
        X : array_like of shape (m, columns)
            Evaluation points.
        level : float, default=0.9
            Coverage of the intervals.
        method, X_calibration, y_calibration
            As of `LocalPolynomialRegressor.prediction_interval`.

        Returns
        -------
        Interval
            As of `LocalPolynomialRegressor.prediction_interval`.
        """
        curve = self._curve
        if X_calibration is not None and check_rows(X_calibration, y_calibration, None):
            shift = self._x_at(X_calibration) @ self.coef_
            y_calibration = read_outputs(y_calibration, shift.shape, None)[:, 0] - shift
        found = curve.prediction_interval(
            X, level=level, method=method, X_calibration=X_calibration, y_calibration=y_calibration
        )
        return _moved(found, self._x_at(X) @ self.coef_)

    def leave_one_out(self) -> LeaveOneOut:
        """Compute leave-one-out predictions, at the coefficients of all rows.

        Returns
        -------
        LeaveOneOut
            As of `LocalPolynomialRegressor.leave_one_out`.
        """
        found = as_fitted(self).curve_.leave_one_out()
        return replace(found, prediction=found.prediction + self._shift[:, None])

    def residuals(self) -> Residuals:
        """Return leave-one-out residuals, leverages and local noise of the training rows, at the coefficients of all.

        Returns
        -------
        Residuals
            As of `LocalPolynomialRegressor.residuals`.
        """
        found = as_fitted(self).curve_.residuals()
        return replace(found, fitted=found.fitted + self._shift)

    def summary(self) -> Summary:
        """Summarise the fit: coefficients as a regression table, bandwidths of the curve, R2 and leave-one-out R2.

        Returns
        -------
        Summary
            A record that prints well. Beyond numbers of `LocalPolynomialRegressor.summary` it has `coefficients`;
            effective parameters are those of the curve.
        """
        smoother = smoother_of(as_fitted(self).curve_)
        training, y, weight = smoother.training_fit, self.value_[:, None], smoother.weight
        values = dict(self.curve_.summary().values)
        for name in ("correlation_r2", "aicc", "gcv"):  # of y less its linear part
            del values[name]
        values |= {
            "columns": self._with_names(values["columns"]),
            "r2": explained(y, training.value - training.fitted, weight),
            "loo_r2": explained(y, training.value - training.deleted, weight),
            "coefficients": self.coefficients(),
        }
        if "cluster_r2" in values:
            values["cluster_r2"] = explained(y, smoother.residual_of_units, weight)
        found = summary_of_regression(type(self).__name__, self.n_features_in_, values)
        kind = "HC3" if self.exclusion_ is None else "Newey and West" if self.exclusion_.gap else "cluster-robust"
        found.facts["standard errors"] = f"{kind}, t with {self.df_:.4g} degrees of freedom"
        return found


def _moved(found: Interval, by: Array) -> Interval:
    """Return intervals moved by a number for each point."""
    first = found.first_predictions
    return replace(
        found,
        center=found.center + by,
        lower=found.lower + by,
        upper=found.upper + by,
        first_predictions=None if first is None else first + by[: len(first)],
    )
