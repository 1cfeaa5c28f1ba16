"""Conformal quantiles: ends are two quantiles of a table of weights, moved by an order statistic of their misses."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import InferenceWarning, LocalLinearRegressor, NadarayaWatsonRegressor, pooling_weights


def interval(model, X, level, calibration):
    options = {} if calibration is None else dict(zip(("X_calibration", "y_calibration"), calibration, strict=True))
    return model.prediction_interval(X, level=level, method="cqr", **options)


def rows(n=100, m=30, seed=0, d=1):
    g = np.random.default_rng(seed)
    X, new, other = g.uniform(size=(n, d)), g.uniform(-0.1, 1.1, size=(m, d)), g.uniform(size=(n - 13, d))

    def outputs(x):
        return np.sin(6 * x[:, 0]) + (0.1 + 0.4 * x[:, 0]) * g.exponential(size=len(x))

    return X, outputs(X), new, (other, outputs(other))


def quantiles_of(weights, value, level):
    """Return the quantile of each row of weights: the smallest value at which they reach the level."""
    order = np.argsort(value, kind="stable")
    sums = np.cumsum(weights[:, order], axis=1)
    place = np.argmax(sums >= level * sums[:, -1:] * (1 - 1e-12), axis=1)
    return value[order][place]


def ends(model, query, value, shift, levels, exclude_self=False):
    """Return both quantiles at places, by tables of weights."""
    weights = pooling_weights(
        query, model.key_, kernel=model.kernel, bandwidth=model.bandwidth_, exclude_self=exclude_self,
        key_weight=model.key_weight_,
    )  # fmt: skip
    return [quantiles_of(weights, value, level) + shift for level in levels]


def reference(model, new, calibration, level):
    """Return the lower and the upper end at each place."""
    alpha = 1 - Fraction(str(level))
    levels = float(alpha / 2), float(1 - alpha / 2)
    left_out = model.leave_one_out().prediction.ravel()
    planes = isinstance(model, LocalLinearRegressor)
    value = model.value_ - left_out if planes else model.value_
    low, high = ends(model, new, value, model.predict(new) if planes else 0.0, levels)
    if calibration is None:
        miss_low, miss_high = ends(model, model.key_, value, left_out if planes else 0.0, levels, exclude_self=True)
        y, weight = model.value_, np.ones(len(value)) if model.key_weight_ is None else model.key_weight_
    else:
        X, y = calibration
        miss_low, miss_high = ends(model, X, value, model.predict(X) if planes else 0.0, levels)
        weight = np.ones(len(y))
    score = np.repeat(np.maximum(miss_low - y, y - miss_high), weight.astype(int))
    rank = math.ceil((1 - alpha) * (len(score) + 1))
    miss = np.sort(score)[rank - 1] if rank <= len(score) else np.inf
    lower, upper = low - miss, high + miss
    middle = (lower + upper) / 2
    return np.where(lower > upper, middle, lower), np.where(lower > upper, middle, upper)


@pytest.mark.parametrize("level", [0.9, 0.5])
@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace", "cosine"])
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_every_end_is_that_of_a_table(kernel, degree, calibrated, level):
    X, y, new, other = rows()
    times = np.random.default_rng(3).integers(0, 4, len(X)) if degree == 0 else None
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    model = kind(kernel=kernel, bandwidth=0.15).fit(X, y, sample_weight=times)
    calibration = other if calibrated else None
    found = interval(model, new, level, calibration)
    assert_allclose([found.lower, found.upper], reference(model, new, calibration, level), rtol=0, atol=2e-12)
    assert_allclose(found.center, model.predict(new), rtol=0, atol=1e-12)


def test_two_columns_of_a_product():
    X, y, new, other = rows(d=2)
    model = NadarayaWatsonRegressor(kernel="product triweight", bandwidth=0.7).fit(X, y)
    found = interval(model, new, 0.8, other)
    assert_allclose([found.lower, found.upper], reference(model, new, other, 0.8), atol=1e-13)


def test_ends_that_pass_each_other_meet_in_the_middle():
    """Calibration rows that are all at the median make quantiles move together by more than their distance."""
    g, new = np.random.default_rng(0), np.array([[-0.5], [0.5]])
    X, y = g.uniform(size=(200, 1)), g.normal(size=200) * np.repeat([0.01, 10.0], 100)
    X[:100, 0] -= 1.0
    model = NadarayaWatsonRegressor(kernel="boxcar", bandwidth=0.2).fit(X, y)
    calibration = g.uniform(0.2, 0.8, size=(60, 1)), np.zeros(60)
    with pytest.warns(InferenceWarning, match=r"1 of 2 queries \(.* query 0\) prediction intervals have no width"):
        found = interval(model, new, 0.9, calibration)
    assert found.upper[0] - found.lower[0] < 1e-11  # ends are moved out by rounding
    assert found.lower[1] < found.upper[1]
    ends = reference(model, new, calibration, 0.9)
    assert_allclose([found.lower, found.upper], ends, atol=1e-11)
