"""Specification test of a parametric regression model against any smooth alternative (Zheng; Li and Wang)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from kernpool._arrays import Array
from kernpool.core import Categories, Geometry
from kernpool.data import COLUMN_OPTIONS, Encoding, as_bandwidth, is_frame, refuse_other_labels
from kernpool.execution import abbreviate
from kernpool.inference.hypothesis_tests.base import TestResult, TestSample, read_inputs, read_output, read_weight
from kernpool.inference.hypothesis_tests.significance import zheng_statistic
from kernpool.inference.resampling.random_draws import as_seed
from kernpool.kernels import get_kernel
from kernpool.pooling import Recipe


class Regressor(Protocol):
    """Regressor of scikit-learn's interface."""

    def fit(self, X: Any, y: Any, /) -> Any:
        """Fit the model to rows."""

    def predict(self, X: Any, /) -> Any:
        """Predict the output at rows."""


@np.errstate(under="ignore")
def specification_test(
    X: Any,
    y: ArrayLike,
    model: Regressor | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    bandwidth: ArrayLike | None = None,
    kernel: str = "gaussian",
    kind: str = "wild",
    n_resamples: int = 399,
    random_state: Any = 0,
    n_jobs: int | None = None,
) -> TestResult:
    r"""Test whether a parametric model is correctly specified, against any smooth alternative.

    .. math:: T = \sum_i u_i \sum_{j \ne i} K_{ij} u_j \Big/ \sqrt{2 \sum_i u_i^2 \sum_{j \ne i} K_{ij}^2 u_j^2},
              \qquad u = y - \hat y

    If the model is right, its residuals u are unrelated; where it is wrong, residuals of neighbours have the same sign.

    Parameters
    ----------
    X : array_like of shape (n, d) or frame
        Inputs of the model. In a frame of pandas or polars columns may be categorical. Dates and durations become days
        since 1970-01-01 UTC and days; only a frame is passed to `model` unchanged.
    y : array_like of shape (n,)
        Output.
    model : scikit-learn regressor, optional
        The model of the null hypothesis, with few parameters; by default ``LinearRegression()``. It is cloned and
        fitted to y, and to each resample. If it pools columns otherwise, such as ``periodic``, K does as well.
    sample_weight : array_like of shape (n,), optional
        Frequencies: whole numbers. The model is fitted to rows repeated by their frequencies.
    bandwidth : float or array_like of shape (d,), optional
        Bandwidth of K; by default the standard deviation of each column times :math:`n^{-1/(4 + d)}`.
    kernel : str, default="gaussian"
        Kernel K; see `kernpool.kernel_names`.
    kind : {"wild", "mammen", "gaussian"}, default="wild"
        Multipliers of the residuals in a resample: random signs, Mammen's two points, or normal numbers. Residuals stay
        at their rows, which allows heteroscedastic noise.
    n_resamples : int, default=399
        Number of resamples. Unless the model is ``LinearRegression()`` each takes a fit.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draws.
    n_jobs : int, optional
        Threads, as in `kernpool.pool`.

    Returns
    -------
    TestResult
        Its `bandwidth` is that of K.

    Raises
    ------
    TypeError
        If the model has no ``fit`` and ``predict``.
    ValueError
        If there are fewer than five rows or several outputs, y does not vary, the model fits without residuals, or an
        argument is out of its range.

    See Also
    --------
    kernpool.NadarayaWatsonRegressor.significance_test : Whether a column matters.

    Notes
    -----
    The statistic is that of Zheng [1]_ and of Li and Wang [2]_, and of ``npcmstest`` of R's np [3]_, whose J is this T.
    The normal limit is not used: convergence is slow, and the test would reject too rarely. A flexible model, such as a
    forest, has negatively correlated residuals, and the test has no power against it.

    Ordinary least squares fits all resamples by one decomposition of X. Then the time is that of two passes over pairs
    of rows, one column of values for each resample. Different categories have the factor :math:`n^{-2/(4 + d)}`.

    References
    ----------
    .. [1] J. X. Zheng, "A consistent test of functional form via nonparametric estimation techniques", Journal of
       Econometrics 75 (1996), 263-289.
    .. [2] Q. Li and S. Wang, "A simple consistent bootstrap test for a parametric regression function", Journal of
       Econometrics 87 (1998), 145-165.
    .. [3] C. Hsiao, Q. Li and J. S. Racine, "A consistent model specification test with mixed discrete and continuous
       data", Journal of Econometrics 140 (2007), 802-826.

    Examples
    --------
    >>> import numpy as np
    >>> from kernpool import specification_test
    >>> random = np.random.default_rng(0)
    >>> x = random.uniform(-1, 1, size=(200, 1))
    >>> noise = 0.2 * random.normal(size=200)
    >>> line, bent = 1 + x[:, 0] + noise, 1 + x[:, 0] + x[:, 0] ** 2 + noise
    >>> specification_test(x, line).p_value > 0.05, specification_test(x, bent).p_value
    (True, 0.0025)
    """
    if isinstance(model, type) or (model is not None and not (hasattr(model, "fit") and hasattr(model, "predict"))):
        raise TypeError(
            f"model must be a regressor with fit and predict, got {abbreviate(model)}; such as LinearRegression()"
        )
    refuse_other_labels(X=X, y=y, sample_weight=sample_weight)
    sample, inputs = _read(X, y, sample_weight, model)
    sample = replace(sample, kind=kind, n_resamples=n_resamples, seed=as_seed(random_state))
    profile = get_kernel(kernel)
    width, geometry = sample.test_bandwidth(profile), sample.geometry
    if bandwidth is not None:
        width = geometry.per_column(as_bandwidth(bandwidth, len(geometry) or len(width)))
    rate = len(sample) ** (-2.0 / (4.0 + sample.X.shape[1]))
    smoothing = np.minimum(sample.categories.largest, rate)
    statistic = zheng_statistic(sample.smoother(Recipe.of(profile, width, n_jobs=n_jobs), smoothing))
    if sample.categories.kernels and _is_least_squares(model):
        raise ValueError(
            "X has categorical columns, which LinearRegression() does not take; give model= a pipeline that encodes "
            "them, or X with numbers alone"
        )
    predict = _predictions(model, sample.numeric if _is_least_squares(model) else inputs)
    middle = predict(sample.y[:, None])[:, 0]
    sample.refuse_exact(sample.y - middle, "the model")
    return sample.test(
        lambda outputs: statistic(outputs - predict(outputs)),
        middle,
        sample.y - middle,
        null=f"{_name(model)} has the right form",
        bandwidth=width,
    )


def _name(model: Regressor | None) -> str:
    return "LinearRegression()" if model is None else " ".join(repr(model).split())


def _read(X: Any, y: ArrayLike, sample_weight: ArrayLike | None, model: Regressor | None) -> tuple[TestSample, Any]:
    """Validate the rows of a test, repeated by frequency weight; return a `TestSample`, and X for the model's fit."""
    table: Any = X if is_frame(X) else read_inputs(X)
    options: dict[str, Any] = {name: getattr(model, name, None) for name in COLUMN_OPTIONS}
    encoding = Encoding.fit(table, **options)
    numeric, code = encoding.encode(table)
    categories = Categories.of(encoding, "li_racine")
    n = len(numeric)
    output, weight = read_output(y, n, "specification_test"), read_weight(sample_weight, n)
    sample = TestSample.of(encoding.pooled(numeric), output, weight, code, categories, what="specification_test")
    sample = replace(sample, geometry=Geometry(encoding.sizes))
    if weight is None:
        return sample, table
    rows = np.repeat(np.arange(n), weight.astype(np.int64))
    return sample, table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def _is_least_squares(model: object) -> bool:
    from sklearn.linear_model import LinearRegression

    if not isinstance(model, LinearRegression):
        return model is None
    return type(model) is LinearRegression and bool(model.fit_intercept) and not model.positive


def _predictions(model: Regressor | None, inputs: Any) -> Callable[[Array], Array]:
    """Return a function that refits the model to each column of outputs, and returns the fitted values."""
    from sklearn.base import clone

    if _is_least_squares(model):
        basis = _basis(np.asarray(inputs, dtype=np.float64))

        def project(outputs: Array) -> Array:
            mean = outputs.mean(axis=0)
            return np.asarray(mean + basis @ (basis.T @ (outputs - mean)))

        return project

    def refit(outputs: Array) -> Array:
        return np.column_stack([clone(model).fit(inputs, column).predict(inputs) for column in outputs.T])

    return refit


def _basis(X: Array) -> Array:
    """Return an orthonormal basis of the column space of X after centering its columns."""
    centered = X - X.mean(axis=0)
    unit = np.max(np.abs(centered), axis=0)
    left, size, _ = np.linalg.svd(centered / np.where(unit > 0, unit, 1.0), full_matrices=False)
    return left[:, size > max(X.shape) * np.finfo(np.float64).eps * size[0]]
