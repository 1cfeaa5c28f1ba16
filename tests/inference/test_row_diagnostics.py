"""What displays draw of rows, groups and slopes at other bandwidths: the numbers of models that are asked for them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor


@pytest.fixture
def rows():
    random = np.random.default_rng(3)
    x = np.sort(random.uniform(0, 2, 60))
    return x[:, None], np.sin(3 * x) + (0.1 + 0.2 * x) * random.normal(size=60), random.integers(0, 4, 60)


@pytest.mark.parametrize("Regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_residuals_are_those_of_the_model(rows, Regressor, kernel):
    X, y, weight = rows
    model = Regressor(kernel=kernel, bandwidth=0.3).fit(X, y, sample_weight=weight)
    found = model.residuals()
    assert_allclose(found.fitted, model.predict(X), rtol=1e-12, atol=1e-12)
    kept = weight > 0
    deleted = model.leave_one_out().prediction.ravel()
    assert_allclose(found.residual[kept], (y - deleted)[kept], rtol=1e-10, atol=1e-12)
    share = np.diagonal(model.attention_weights(X))
    assert_allclose(found.leverage[kept] * weight[kept], share[kept], rtol=1e-10)
    new = model.predict(X, return_std=True)[1]
    assert_allclose(found.noise**2 + model.get_prediction(X).standard_error ** 2, new**2, rtol=1e-12)
    assert_array_equal(found.weight, weight)


def test_residuals_become_a_frame(rows):
    X, y, _ = rows
    y = np.c_[y, y]
    y[17, 1] += 5.0
    found = LocalLinearRegressor(bandwidth=0.3).fit(X, y).residuals()
    frame = found.to_frame()
    assert frame.columns[:4].tolist() == ["fitted_0", "fitted_1", "residual_0", "residual_1"]
    assert_array_equal(frame["standardized_1"], found.residual[:, 1] / found.noise[:, 1])
    interval = LocalLinearRegressor(bandwidth=0.3).fit(X, y[:, 0]).confidence_interval(X)
    assert_array_equal(interval.to_frame(), np.c_[interval.center, interval.lower, interval.upper])


@pytest.mark.parametrize("Regressor", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_residuals_of_a_fit_with_groups_are_of_left_out_clusters(rows, Regressor):
    X, y, weight = rows
    y, groups = np.c_[y, 3.0 - y**2], np.arange(60) % 15
    model = Regressor(bandwidth=0.3).fit(X, y, sample_weight=weight, groups=groups)
    found, kept = model.residuals(), weight > 0
    for g in range(15):
        others = groups != g
        alone = Regressor(bandwidth=0.3).fit(X[others], y[others], sample_weight=weight[others])
        assert_allclose(found.residual[~others & kept], (y - alone.predict(X))[~others & kept], rtol=1e-9, atol=1e-12)
    assert_array_equal(found.cluster, groups)
    share = np.exp(-0.5 * ((X - X.T) / 0.6) ** 2) * weight  # noise is averaged in twice the bandwidth
    expected = np.sqrt(share @ np.where(kept[:, None], found.residual, 0.0) ** 2 / share.sum(axis=1)[:, None])
    assert_allclose(found.noise, expected, rtol=1e-11)
    prediction = model.get_prediction(X)
    total = found.noise**2 + prediction.standard_error**2
    assert_allclose(total, prediction.observation_std**2, rtol=1e-12)
    plain = Regressor(bandwidth=0.3).fit(X, y, sample_weight=weight).residuals()
    assert plain.cluster is None
    assert_array_equal(plain.fitted, found.fitted)
    assert_array_equal(plain.leverage, found.leverage)


def test_few_clusters_have_residuals_and_no_standard_deviation_of_new_rows(rows):
    X, y, _ = rows
    model = LocalLinearRegressor(bandwidth=0.3).fit(X, y, groups=np.arange(60) % 3)
    assert model.residuals().residual.shape == (60,)
    for ask in (lambda: model.get_prediction(X).standard_error, lambda: model.predict(X, return_std=True)):
        with pytest.raises(ValueError, match=r"3 clusters of positive weight.*at least 5"):
            ask()


@pytest.mark.parametrize("groups", [None, np.arange(60) % 12])
def test_residuals_are_the_callers_to_change(groups):
    generator = np.random.default_rng(0)
    X, y = generator.uniform(size=(60, 1)), generator.normal(size=60)
    model = LocalLinearRegressor(bandwidth=0.3).fit(X, y, groups=groups)
    before = model.get_prediction(X).standard_error, model.summary().r2
    found = model.residuals()
    for array in (found.fitted, found.residual, found.leverage, found.weight, found.noise):
        array *= 3.0
    assert_array_equal(model.get_prediction(X).standard_error, before[0])
    assert_array_equal(model.summary().r2, before[1])
