"""Conformal quantiles: ends are two quantiles of a table of weights, moved by an order statistic of their misses."""

import math
from fractions import Fraction

import numpy as np
import pytest

from kernpool import (
    EmptyWindowWarning,
    InferenceWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    pooling_weights,
)
from kernpool.conformal import prediction_interval
from tests.support.conformal_settings import setting_of


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
        key_weight=model.key_weight_, composition=model.composition,
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
def test_every_end_is_that_of_a_table(kernel, degree, calibrated, level):
    X, y, new, other = rows()
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    model = kind(kernel=kernel, bandwidth=0.15).fit(X, y)
    calibration = other if calibrated else None
    found = prediction_interval(setting_of(model, new, level, calibration), "cqr")
    lower, upper = reference(model, new, calibration, level)
    np.testing.assert_allclose(found.lower[:, 0], lower, rtol=0, atol=2e-12)
    np.testing.assert_allclose(found.upper[:, 0], upper, rtol=0, atol=2e-12)
    np.testing.assert_allclose(found.center[:, 0], model.predict(new), rtol=0, atol=1e-12)


def test_two_columns_of_a_product():
    X, y, new, other = rows(d=2)
    model = NadarayaWatsonRegressor(kernel="triweight", composition="product", bandwidth=0.7).fit(X, y)
    found = prediction_interval(setting_of(model, new, 0.8, other), "cqr")
    np.testing.assert_allclose([found.lower[:, 0], found.upper[:, 0]], reference(model, new, other, 0.8), atol=1e-13)


@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_weights_are_rows(kind):
    X, y, new, _ = rows()
    times = np.random.default_rng(3).integers(0, 4, len(X))
    weighted = kind(bandwidth=0.15).fit(X, y, sample_weight=times)
    repeated = kind(bandwidth=0.15).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    found = prediction_interval(setting_of(weighted, new), "cqr")
    expected = prediction_interval(setting_of(repeated, new), "cqr")
    np.testing.assert_allclose(found.lower, expected.lower, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=0, atol=1e-12)
    if kind is NadarayaWatsonRegressor:
        np.testing.assert_allclose(
            [found.lower[:, 0], found.upper[:, 0]], reference(weighted, new, None, 0.9), atol=1e-13
        )


def test_outputs_one_after_the_other():
    X, y, new, (other, z) = rows()
    both = NadarayaWatsonRegressor(bandwidth=0.15).fit(X, np.column_stack([y, np.exp(y)]))
    found = prediction_interval(setting_of(both, new, 0.9, (other, np.column_stack([z, np.exp(z)]))), "cqr")
    for c, (of_rows, of_other) in enumerate([(y, z), (np.exp(y), np.exp(z))]):
        one = NadarayaWatsonRegressor(bandwidth=0.15).fit(X, of_rows)
        expected = prediction_interval(setting_of(one, new, 0.9, (other, of_other)), "cqr")
        np.testing.assert_array_equal(found.lower[:, c], expected.lower[:, 0])
        np.testing.assert_array_equal(found.upper[:, c], expected.upper[:, 0])


def test_ends_that_pass_each_other_meet_in_the_middle():
    """Calibration rows that are all at the median make quantiles move together by more than their distance."""
    g = np.random.default_rng(0)
    X, y = g.uniform(size=(200, 1)), g.normal(size=200) * np.repeat([0.01, 10.0], 100)
    X[:100, 0] -= 1.0
    model = NadarayaWatsonRegressor(kernel="boxcar", bandwidth=0.2).fit(X, y)
    other = g.uniform(0.2, 0.8, size=(60, 1))
    calibration = other, np.zeros(60)
    with pytest.warns(InferenceWarning, match=r"1 of 2 prediction intervals \(the first is of query 0\) have no width"):
        found = prediction_interval(setting_of(model, [[-0.5], [0.5]], 0.9, calibration), "cqr")
    np.testing.assert_allclose(
        found.lower[0, 0], found.upper[0, 0], rtol=0, atol=1e-11
    )  # ends are moved out by rounding
    assert found.lower[1, 0] < found.upper[1, 0]
    lower, upper = reference(model, np.array([[-0.5], [0.5]]), calibration, 0.9)
    np.testing.assert_allclose([found.lower[:, 0], found.upper[:, 0]], [lower, upper], atol=1e-11)


@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_windows_that_are_empty_bound_nothing(kind):
    X, y, _, other = rows()
    model = kind(kernel="epanechnikov", bandwidth=0.1, empty="nan").fit(X, y)
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries"):
        found = prediction_interval(setting_of(model, [[0.5], [9.0]], 0.9, other), "cqr")
    assert np.isfinite(found.upper[:, 0]).tolist() == [True, False]
    assert found.lower[1, 0] == -np.inf
    assert np.isnan(found.center[1, 0])
    filled = kind(kernel="epanechnikov", bandwidth=0.1, empty="mean").fit(X, y)
    found = prediction_interval(setting_of(filled, [[0.5], [9.0]], 0.9, other), "cqr")
    assert np.isfinite(found.upper).all()


def test_rows_without_others_do_not_count():
    """An isolated row has no quantile of others: its miss is infinite, and one of 101 does no harm."""
    X, y, new, _ = rows()
    X, y = np.vstack([X, [[50.0]]]), np.append(y, 1e3)
    for kind in (NadarayaWatsonRegressor, LocalLinearRegressor):
        model = kind(kernel="epanechnikov", bandwidth=0.3).fit(X, y)
        found = prediction_interval(setting_of(model, np.clip(new, 0, 1)), "cqr")
        assert np.isfinite(found.upper).all()
        assert found.upper.max() < 10


def test_too_few_rows_and_what_is_promised():
    X, y, new, (other, z) = rows()
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, y)
    with pytest.warns(InferenceWarning, match="needs at least 9 rows"):
        found = prediction_interval(setting_of(model, new, 0.9, (other[:8], z[:8])), "cqr")
    assert np.isinf(found.lower).all()
    assert "at least 0.9" in found.guarantee
    assert "without a finite-sample guarantee" in prediction_interval(setting_of(model, new), "cqr").guarantee


def test_predictions_are_those_of_the_model():
    X, y, new, other = rows()
    model = LocalLinearRegressor(bandwidth=0.2).fit(X, y)
    setting = setting_of(model, new, 0.9, other)
    np.testing.assert_array_equal(prediction_interval(setting, "cqr").center, setting.prediction)


@pytest.mark.slow
def test_coverage_of_skew_noise():
    """The level is exact with calibration rows, and ends follow the skewness; errors of 140 samples are .25 percent."""
    g, covered, below = np.random.default_rng(0), [], []
    for seed in range(140):
        X, y, _, other = rows(n=160, seed=seed)
        new = g.uniform(size=(200, 1))
        z = np.sin(6 * new[:, 0]) + (0.1 + 0.4 * new[:, 0]) * g.exponential(size=200)
        model = NadarayaWatsonRegressor(bandwidth=0.05, algorithm="brute", n_jobs=1).fit(X, y)
        found = prediction_interval(setting_of(model, new, 0.9, other), "cqr")
        covered.append(np.mean((found.lower[:, 0] <= z) & (z <= found.upper[:, 0])))
        below.append(np.mean(z < found.lower[:, 0]))
    assert 0.89 <= np.mean(covered) <= 0.915
    assert 0.02 <= np.mean(below) <= 0.08  # of 10 % about half on either side
