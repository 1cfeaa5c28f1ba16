"""Loess as a scikit-learn estimator: fit, predictions with standard errors, summary, and comparison of two fits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit
from scipy.stats import f as f_distribution
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d

from kernpool.core import EmptyWindowWarning
from kernpool.core.local_fit import RankDeficiencyWarning
from kernpool.estimators.fitted_model import read_query
from kernpool.estimators.loess.robust_fit import LoessFit
from kernpool.estimators.parameter_validation import FLAG, Accepted, NamedCalls
from kernpool.estimators.training_rows import Scoring, frequencies, read_rows
from kernpool.execution.text_table import ROWS, PrintedResult, digits_beside, lines_of, printed_table
from kernpool.execution.threads import resolve_n_jobs
from kernpool.execution.warnings import warn_caller
from kernpool.inference import ExtrapolationWarning, Interval, as_level
from kernpool.smoother.nearest_polynomials import NearestPolynomials, WindowFits, Windows

Array = NDArray[np.float64]

FAMILIES = ("gaussian", "symmetric")
TRIMMED = 0.1  # of the rows at both ends of a column, which its scale leaves out
ACCEPTED = {
    "span": Accepted("a positive number, the fraction of the rows in a window", numbers=lambda x: 0 < x < np.inf),
    "degree": Accepted("0, 1 or 2", numbers=lambda n: 0 <= n <= 2, whole=True),
    "family": Accepted("'gaussian' or 'symmetric'", FAMILIES),
    "normalize": FLAG,
    "iterations": Accepted("a number of fits from 1 on", numbers=lambda n: n >= 1, whole=True),
}


@dataclass(frozen=True, eq=False, repr=False)
class LoessPrediction(PrintedResult):
    """Predictions of loess at m rows, with standard errors, made by ``model.get_prediction(X)``.

    Parameters
    ----------
    mean : ndarray of shape (m,)
        Predictions.
    standard_error : ndarray of shape (m,)
        Standard errors of the mean, ``s |l(x)|``; bias is not included.
    residual_sd : float
        Residual standard error s.
    fit : LoessFit
        The fit, for its degrees of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import LoessRegressor
    >>> x = np.arange(20.0)
    >>> model = LoessRegressor(span=0.8, degree=1).fit(x[:, None], 2.0 * x + np.sin(9.0 * x))
    >>> print(model.get_prediction([[5.0], [7.5]]))
    rows      2
    level     0.95, pointwise
    df        16.9
    <BLANKLINE>
      row  mean   lower  upper  se
      0    10.01  9.531  10.49  0.226
      1    15     14.5   15.5   0.239
    """

    mean: Array
    standard_error: Array
    residual_sd: float
    fit: LoessFit

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def observation_std(self) -> Array:
        """Standard deviation of a new observation of weight one: noise and uncertainty of the curve together."""
        return np.hypot(self.residual_sd, self.standard_error)

    def confidence_interval(self, *, level: float = 0.95) -> Interval:
        """Compute pointwise confidence intervals of the curve by Student's t, without bias correction, as R does.

        Parameters
        ----------
        level : float, default=0.95
            Confidence level.

        Returns
        -------
        Interval
            Centered at the predictions.

        Notes
        -----
        The degrees of freedom are delta1 squared over delta2. The first call of a fit computes delta2: O(n^3) up to
        2000 rows, beyond by four passes over all pairs of rows and random probes of fixed seed.
        """
        df, level = self.fit.df, as_level(level)
        half = -stdtrit(df, 0.5 * (1.0 - level)) * self.standard_error
        center, freedom = self.mean.copy(), np.full(len(self), df)
        return Interval(center, center - half, center + half, level, "naive", self.standard_error, freedom)

    def __str__(self) -> str:
        few = LoessPrediction(self.mean[:ROWS], self.standard_error[:ROWS], self.residual_sd, self.fit)
        found = few.confidence_interval()
        rows = []
        for i, (at, low, high, error) in enumerate(
            zip(few.mean, found.lower, found.upper, few.standard_error, strict=True)
        ):
            digits = digits_beside(np.array([at, low, high]), np.array([error]))
            rows.append([str(i), *(f"{number:.{digits}g}" for number in (at, low, high)), f"{error:.3g}"])
        facts = {"rows": f"{len(self)}", "level": "0.95, pointwise", "df": f"{self.fit.df:.3g}"}
        return printed_table(facts, ["row", "mean", "lower", "upper", "se"], rows, more=len(self) > ROWS)


@dataclass(frozen=True, eq=False)
class LoessSummary(PrintedResult):
    """Summary of a loess fit: what R's `summary` prints, and the degrees of freedom.

    Parameters
    ----------
    rows, columns, window : int
        Rows, columns, and rows in a window.
    span : float
        Fraction of the rows in a window.
    degree : int
        Of the local polynomials.
    family : str
        Gaussian or symmetric.
    equivalent_parameters, trace : float
        tr LL' and tr L of the smoother matrix.
    residual_sd, df : float
        Residual standard error and its degrees of freedom.
    r2 : float
        Of the rows; NaN if y is constant.
    outliers : int
        Rows whose robustness weight is zero.
    """

    rows: int
    columns: int
    window: int
    span: float
    degree: int
    family: str
    equivalent_parameters: float
    trace: float
    residual_sd: float
    df: float
    r2: float
    outliers: int

    def __str__(self) -> str:
        d = self.columns
        facts = {
            "windows": f"{self.window} nearest rows (span {self.span:g})",
            "equivalent parameters": f"{self.equivalent_parameters:.2f} (tr L'L), {self.trace:.2f} (tr L)",
            "residual standard error": f"{self.residual_sd:.4g} on {self.df:.4g} degrees of freedom",
            "R2": f"{self.r2:.4f}",
        }
        if self.family == "symmetric":
            facts["rows of weight zero"] = f"{self.outliers}"
        head = f"LoessRegressor: {self.rows} rows, {d} column{'s' * (d != 1)}, degree {self.degree}, {self.family}"
        return "\n".join([head, *(f"  {line}" for line in lines_of(facts, 24))])


@dataclass(frozen=True)
class LoessComparison(PrintedResult):
    """Analysis of variance of two loess fits to the same rows.

    Parameters
    ----------
    f : float
        Statistic of the test that the smaller model is enough.
    numerator_df, denominator_df : float
        Degrees of freedom.
    p_value : float
        By the F distribution.
    """

    f: float
    numerator_df: float
    denominator_df: float
    p_value: float

    def __str__(self) -> str:
        degrees = f"{self.numerator_df:.4g} and {self.denominator_df:.4g} degrees of freedom"
        facts = {
            "null hypothesis": "the fit of fewer parameters is enough",
            "F": f"{self.f:.4g} on {degrees}",
            "p-value": f"{self.p_value:.3g}",
        }
        return "\n".join(lines_of(facts))


class LoessRegressor(NamedCalls, Scoring, RegressorMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    r"""Loess: local polynomial regression in windows of the nearest rows, as R's `loess` with ``surface = "direct"``.

    .. math:: \hat y(x) = \hat\beta_0, \qquad \hat\beta = \arg\min_\beta \sum_j w_j B_j
              \Big(1 - \frac{|x - x_j|^3}{s(x)^3}\Big)_+^3 (y_j - p_\beta(x_j - x))^2

    with the distance s of the k-th nearest row, a polynomial p of degree 0, 1 or 2, and robustness weights B.

    Parameters
    ----------
    span : float, default=0.75
        Fraction of the rows in a window: k is ``floor(n * span + 1e-5)`` rows, whatever their weights. Above 1 all rows
        are in every window, whose width is the distance of the farthest times ``sqrt(span)``. (R does the same in any
        number of columns; its manual has another exponent.)
    degree : {0, 1, 2}, default=2
        Degree of the local polynomials, with products of columns.
    family : {"gaussian", "symmetric"}, default="gaussian"
        Least squares, or a robust fit: bisquare weights of residuals in six median absolute residuals.
    normalize : bool, default=True
        Whether columns, if there are several, are divided by the standard deviation of their middle 80 percent.
    iterations : int, default=4
        Fits in all of ``family="symmetric"``: the first is plain, and three are re-weighted.
    n_jobs : int or None, default=None
        Threads, as in `NadarayaWatsonRegressor`.

    Attributes
    ----------
    fitted_values_ : ndarray of shape (n,)
        Fit at the training rows.
    robust_weight_ : ndarray of shape (n,)
        Robustness weights of the last fit; ones for the Gaussian family.
    equivalent_parameters_, trace_, residual_sd_ : float
        tr LL', tr L, and the residual standard error s: R's ``enp``, ``trace.hat`` and ``s``.
    delta1_, delta2_, df_ : float
        Moments of the residual matrix and ``delta1**2 / delta2``; delta2 is computed when first asked for.
    n_features_in_, feature_names_in_
        As in `NadarayaWatsonRegressor`.

    See Also
    --------
    LocalLinearRegressor : Bandwidths chosen by cross-validation, bias-corrected intervals, categories, large data.
    lowess : Cleveland's earlier smoother, of one column and degree 1.

    Notes
    -----
    Numbers are those of R's loess with ``surface = "direct"`` and ``statistics = "exact"``; its default surface
    interpolates, and is off by up to a tenth of the noise. Statistics of robust fits are from pseudovalues, and as in R
    standard errors have the linear weights that robustness weights are part of. Standard errors are without bias, and
    traces are of the smoother matrix itself, also where rows have weights.

    On purpose other than R: where the k nearest rows coincide with the query the fit is their mean, with a warning, and
    not 0. Where more than half of the rows are fitted exactly robust fits keep the weights they have, with a warning.
    Where robustness weights of a window are all zero, those of the pass before are taken there, with a warning.

    A fit takes O(n) time in one column after sorting, or O(n k) in windows of at most 2000 rows, and O(n^2) in several
    columns; predictions likewise; memory is O(n). Intervals and summaries need delta2, which takes O(n^2): 5 s for 1e4
    rows.

    References
    ----------
    W. S. Cleveland and S. J. Devlin, "Locally weighted regression: an approach to regression analysis by local
    fitting", JASA 83 (1988), 596-610.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import LoessRegressor
    >>> x = np.linspace(0.0, 6.0, 60)
    >>> y = np.sin(x) + 0.2 * np.cos(40.0 * x)
    >>> model = LoessRegressor(span=0.5).fit(x[:, None], y)
    >>> model.predict([[1.0], [2.5]]).round(2)
    array([0.84, 0.6 ])
    >>> print(model.summary())
    LoessRegressor: 60 rows, 1 column, degree 2, gaussian
      windows                   30 nearest rows (span 0.5)
      equivalent parameters     6.32 (tr L'L), 6.89 (tr L)
      residual standard error   0.1521 on 52.73 degrees of freedom
      R2                        0.9621
    """

    # As which columns are read: dates and durations are days, and there are no categories.
    unordered: ClassVar[None] = None
    missing: ClassVar[str] = "raise"
    ordered: ClassVar[None] = None
    _reads_pairs_as_numbers: ClassVar[bool] = True

    def __init__(
        self,
        span: float = 0.75,
        degree: int = 2,
        family: str = "gaussian",
        normalize: bool = True,
        iterations: int = 4,
        *,
        n_jobs: int | None = None,
    ) -> None:
        self.span = span
        self.degree = degree
        self.family = family
        self.normalize = normalize
        self.iterations = iterations
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the rows, and compute the statistics of the fit.

        Parameters
        ----------
        X : array_like of shape (n,) or (n, d)
            Inputs, columns of numbers, dates or durations.
        y : array_like of shape (n,)
            Outputs.
        sample_weight : array_like of shape (n,), optional
            Weights of rows, which multiply the kernel; variances of rows are inverse to them.

        Returns
        -------
        self
            The estimator, fitted.

        Raises
        ------
        ValueError
            If a window has fewer rows than the polynomial has coefficients, all weights are zero, y has several
            columns, an argument holds NaN or infinity, or a parameter is out of its range.
        TypeError
            If X has columns of categories.

        Warns
        -----
        RankDeficiencyWarning
            If the rows of a window coincide, or do not determine a polynomial.
        """
        for name, accepted in ACCEPTED.items():
            accepted.check(name, getattr(self, name))
        threads = resolve_n_jobs(self.n_jobs)
        read = read_rows(self, X, y, numbers=True)
        if read.code.shape[1]:
            raise TypeError(
                "X must have columns of numbers, dates or durations, got categories, which have no nearest rows; "
                "encode them as numbers, drop them, or use LocalLinearRegressor, which has a kernel for them"
            )
        key, output = np.asarray(read.key, dtype=np.float64), read.output
        if output.ndim == 2 and output.shape[1] > 1:
            raise ValueError(f"y must be one column, got shape {output.shape}; fit one LoessRegressor for each")
        value = column_or_1d(output, warn=True).astype(np.float64)
        n, d = key.shape
        weight = np.ones(n) if sample_weight is None else frequencies(sample_weight, n)
        k, terms = min(n, int(np.floor(n * self.span + 1e-5))), (1, 1 + d, (1 + d) * (2 + d) // 2)[self.degree]
        if k < terms:
            wider = f"use span={min(terms / n + 1e-3, 1.0):.3g} or more, " if n >= terms else ""
            raise ValueError(
                f"span={self.span:g} of n_samples = {n} has {k} rows in a window, and a polynomial of degree "
                f"{self.degree} in {d} column{'s' * (d != 1)} has {terms} coefficients; {wider or 'give '}"
                f"{'a smaller degree, or more rows' if wider else f'at least {terms} rows, or a smaller degree'}"
            )
        scale = _scale_of(key) if self.normalize and d > 1 else np.ones(d)
        smoother = NearestPolynomials(key / scale, k, self.degree, float(np.sqrt(max(1.0, self.span))), threads)
        fit = LoessFit.of(smoother, value, weight, self.iterations if self.family == "symmetric" else 1)
        _warn_of_windows(smoother.of_rows, fit.first, "training row", "training rows")
        self._fit, self._scale, self.encoding_ = fit, scale, read.encoding
        self.fitted_values_, self.robust_weight_ = fit.fitted, fit.robust[-1]
        self.equivalent_parameters_, self.trace_ = fit.equivalent_parameters, fit.trace
        self.residual_sd_, self.delta1_ = fit.residual_sd, fit.delta1
        return self

    @property
    def delta2_(self) -> float:
        """Second moment of the residual matrix, computed when first asked for."""
        return self._fitted().delta2

    @property
    def df_(self) -> float:
        """Degrees of freedom of the residual standard error."""
        return self._fitted().df

    def _fitted(self) -> LoessFit:
        if "_fit" not in vars(self):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet; call fit first")
        fit: LoessFit = self._fit
        return fit

    def get_prediction(self, X: ArrayLike) -> LoessPrediction:
        """Predict at new rows, with standard errors.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.

        Returns
        -------
        LoessPrediction
            With `mean`, `standard_error`, `observation_std` and `confidence_interval`.

        Warns
        -----
        ExtrapolationWarning
            If a query is farther beyond the training rows than half of the width of its window.
        RankDeficiencyWarning
            If the rows of a window coincide, or do not determine a polynomial.
        EmptyWindowWarning
            If no row of a window has a weight: the prediction is NaN.
        """
        check_is_fitted(self)
        query = np.asarray(read_query(self, X, warn=False)[0], dtype=np.float64) / self._scale
        fit = self._fit
        windows = fit.smoother.windows(query)
        found, fallen = fit.at(windows)
        _warn_of_windows(windows, found, "query", "queries")
        if fallen:
            warn_caller(
                f"in the windows of {fallen} of {len(query)} queries all rows are outliers of weight zero, and the fit "
                "there has the robustness weights of an earlier pass; use a larger span"
            )
        key = fit.smoother.key
        beyond = np.maximum(key.min(axis=0) - query, query - key.max(axis=0)).max(axis=1)
        far = np.flatnonzero(beyond > 0.5 * windows.width)
        if far.size and self.degree:
            warn_caller(
                f"{far.size} of {len(query)} queries, the first is query {far[0]}, are farther beyond the training "
                "rows than half of the width of their windows, and polynomials lead anywhere there; predict among the "
                "training rows, or use a smaller degree",
                ExtrapolationWarning,
            )
        return LoessPrediction(found.fitted, fit.residual_sd * np.sqrt(found.norm), fit.residual_sd, fit)

    def predict(self, X: ArrayLike, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predict y at new rows; `return_std` adds the standard deviation of a new observation.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        return_std : bool, default=False
            Whether to return the standard deviation of a new observation around the prediction, too. The standard
            error of the curve alone is in `get_prediction`.

        Returns
        -------
        prediction : ndarray of shape (m,)
            One per query.
        std : ndarray of shape (m,)
            Only with `return_std`.
        """
        FLAG.check("return_std", return_std)
        found = self.get_prediction(X)
        return (found.mean, found.observation_std) if return_std else found.mean

    def confidence_interval(self, X: ArrayLike, *, level: float = 0.95) -> Interval:
        """Compute pointwise confidence intervals of the curve, as `LoessPrediction.confidence_interval`.

        Parameters
        ----------
        X : array_like of shape (m, d)
            Queries.
        level : float, default=0.95
            Confidence level.
        """
        return self.get_prediction(X).confidence_interval(level=level)

    def summary(self) -> LoessSummary:
        """Summarise the fit: windows, equivalent parameters, residual standard error, R2.

        Returns
        -------
        LoessSummary
            A record that prints well.
        """
        check_is_fitted(self)
        fit, weight = self._fit, self._fit.weight
        spread = float(weight @ (fit.value - weight @ fit.value / weight.sum()) ** 2)
        error = float(np.nansum(weight * (fit.value - fit.fitted) ** 2))
        n, d = fit.smoother.key.shape
        return LoessSummary(
            n, d, fit.smoother.k, float(self.span), int(self.degree), self.family, fit.equivalent_parameters,
            fit.trace, fit.residual_sd, fit.df, 1.0 - error / spread if spread > 0 else np.nan,
            int(np.count_nonzero(fit.robust[-1] == 0.0)),
        )  # fmt: skip

    def anova(self, other: LoessRegressor) -> LoessComparison:
        r"""Test whether the fit of fewer parameters, of this one and another to the same rows, is enough.

        .. math:: F = \frac{(\mathrm{RSS}_0 - \mathrm{RSS}_1) / (\delta_{1,0} - \delta_{1,1})}{s_1^2}

        with the squared difference of :math:`\delta_1` over that of :math:`\delta_2` degrees of freedom, and those of
        the larger fit: the analysis of variance of Cleveland and Devlin (1988), R's ``anova``.

        Parameters
        ----------
        other : LoessRegressor
            Fitted to the same y and weights.

        Returns
        -------
        LoessComparison
            With `f`, `numerator_df`, `denominator_df` and `p_value`.

        Raises
        ------
        TypeError, ValueError
            If the other is no fitted LoessRegressor, was fitted to other rows, or has as many parameters.
        """
        check_is_fitted(self)
        if not isinstance(other, LoessRegressor):
            raise TypeError(f"other must be a fitted LoessRegressor, got {type(other).__name__}")
        check_is_fitted(other)
        one, two = self._fit, other._fit
        if not (np.array_equal(one.value, two.value) and np.array_equal(one.weight, two.weight)):
            raise ValueError("other must be fitted to the same y and sample_weight in the same order; fit both again")
        small, large = sorted((one, two), key=lambda fit: fit.equivalent_parameters)
        difference = abs(small.delta1 - large.delta1)
        if not difference > 1e-9 * large.delta1:
            raise ValueError(
                f"both fits have {large.equivalent_parameters:.4g} equivalent parameters, so there is nothing to test; "
                "compare fits of another span or degree"
            )
        squares = [fit.residual_sd**2 * fit.delta1 for fit in (small, large)]
        statistic = abs(squares[0] - squares[1]) / difference / large.residual_sd**2
        numerator, denominator = difference**2 / abs(small.delta2 - large.delta2), large.df
        p_value = float(f_distribution.sf(statistic, numerator, denominator))
        return LoessComparison(float(statistic), float(numerator), float(denominator), p_value)


def _scale_of(key: Array) -> Array:
    """Return the standard deviation of each column without a tenth of the rows at both ends; one if it is zero."""
    trim = int(np.ceil(TRIMMED * len(key)))
    middle = np.sort(key, axis=0)[trim : len(key) - trim]
    deviation = middle.std(axis=0, ddof=1) if len(middle) > 1 else np.zeros(key.shape[1])
    return np.where(deviation > 0, deviation, 1.0)


def _warn_of_windows(windows: Windows, found: WindowFits, one: str, many: str) -> None:
    """Warn of windows of width zero, without determined polynomials, and without weights."""
    m = len(windows.query)
    zero = np.flatnonzero(windows.width == 0.0)
    if zero.size:
        warn_caller(
            f"in the windows of {zero.size} of {m} {many} (the first is {one} {zero[0]}) all rows coincide, and the "
            "fit is their mean; use a larger span, so that windows hold different rows",
            RankDeficiencyWarning,
        )
    if found.deficient.size:
        warn_caller(
            f"the rows in the windows of {found.deficient.size} of {m} {many} (the first is {one} "
            f"{found.deficient[0]}) do not determine a polynomial, and the fit is that of least norm; use a larger "
            "span or a smaller degree, or drop columns that are constant or linear in others",
            RankDeficiencyWarning,
        )
    empty = np.flatnonzero(np.isnan(found.fitted))
    if empty.size:
        warn_caller(
            f"in the windows of {empty.size} of {m} {many} (the first is {one} {empty[0]}) no row has a positive "
            "weight, and the fit is NaN; use a larger span, or leave rows of weight zero out",
            EmptyWindowWarning,
        )
