"""Windows of few rows, ties and constant columns: the public models, fitted again without a row or with one more."""

import warnings

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from tests.support.dense_conformal import order_statistic, ranks

N, LEVEL = 24, 0.5
KERNELS = ("epanechnikov", "boxcar", "gaussian")


def scarce(seed):
    """Rows whose windows often hold one row or two, or rows in a line."""
    generator = np.random.default_rng(seed)
    d = 1 + seed % 2
    X, y, q = generator.uniform(size=(N, d)), generator.normal(size=N), generator.uniform(size=(2, d))
    if seed % 3 == 0:
        X = np.round(X, 1)
    if seed % 4 == 1 and d == 2:
        X[:, 1] = q[:, 1] = 0.5
    return X, y, q, {"kernel": KERNELS[seed % 3], "bandwidth": float(generator.uniform(0.08, 0.3)), "empty": "nan"}


def predicted(model, X, y, q, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(**options).fit(X, y).predict(q)


def found(model, X, y, q, options, method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interval = model(**options).fit(X, y).prediction_interval(q, method=method, level=LEVEL)
    return interval.lower, interval.upper


@pytest.mark.parametrize("model", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("seed", range(6))
def test_jackknife_plus_is_of_models_without_each_row(model, seed):
    X, y, q, options = scarce(seed)
    ends, rows = np.empty((2, N, len(q))), np.arange(N)
    for i in rows:
        fits = predicted(model, X[rows != i], y[rows != i], np.vstack([q, X[i]]), options)
        reach = np.inf if np.isnan(fits[-1]) else abs(y[i] - fits[-1])
        ends[0, i] = np.where(np.isnan(fits[:-1]), -np.inf, fits[:-1] - reach)
        ends[1, i] = np.where(np.isnan(fits[:-1]), np.inf, fits[:-1] + reach)
    lower, upper = found(model, X, y, q, options, "jackknife+")
    low, high = ranks(LEVEL, N)
    for place in range(len(q)):
        assert lower[place] == pytest.approx(order_statistic(ends[0, :, place], low), abs=1e-9)
        assert upper[place] == pytest.approx(order_statistic(ends[1, :, place], high), abs=1e-9)
