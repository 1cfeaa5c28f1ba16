"""A ridge on the slopes of local planes: the penalised least squares of every query, solved densely."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import kernpool
from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.core import Layout, solve, with_ridge
from kernpool.core.local_fit import change_by_ridge, check_ridge
from tests.support.problems import with_algorithm, with_products

KERNELS = ["gaussian", "epanechnikov", "laplace", "tricube"]


def penalised_planes(query, key, value, h, kernel, ridge):
    """Value and slopes, per bandwidth, of each query by least squares of rows that are weighted and appended."""
    kernel = kernpool.get_kernel(kernel)
    profile, is_radial = kernel.profile, kernel.composition == "radial"
    found = []
    for q in query:
        t = (key - q) / h
        weight = profile(np.linalg.norm(t, axis=1)) if is_radial else profile(np.abs(t)).prod(axis=1)
        peak = profile(np.zeros(1))[0] ** (1 if is_radial else key.shape[1])
        rows = np.sqrt(weight)[:, None] * np.column_stack([np.ones(len(t)), t])
        extra = np.sqrt(ridge * peak) * np.eye(key.shape[1] + 1)[1:]
        right = np.concatenate([np.sqrt(weight) * value, np.zeros(key.shape[1])])
        found.append(np.linalg.lstsq(np.vstack([rows, extra]), right, rcond=None)[0])
    return np.array(found)


@pytest.mark.covering
@pytest.mark.parametrize("kernel", with_products(KERNELS))
@pytest.mark.parametrize("algorithm", ["auto", "brute", "reference"])
def test_a_ridge_is_that_of_penalised_least_squares(kernel, algorithm):
    generator = np.random.default_rng(0)
    key, query = generator.uniform(size=(200, 2)), generator.uniform(size=(60, 2))
    value, h, ridge = np.sin(5 * key[:, 0]) + key[:, 1], np.array([0.3, 0.5]), 0.7
    model = with_algorithm(LocalLinearRegressor(kernel, h, ridge=ridge).fit(key, value), algorithm)
    expected = penalised_planes(query, key, value, h, kernel, ridge)
    assert_allclose(model.predict(query), expected[:, 0], rtol=1e-10, atol=1e-10)
    assert_allclose(model.get_prediction(query).slope, expected[:, 1:] / h, rtol=1e-9, atol=1e-9)
    assert_allclose(model.attention_weights(query) @ value, expected[:, 0], rtol=1e-9, atol=1e-10)


def test_none_is_none_and_a_large_one_is_local_constant():
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(50, 2)), generator.normal(size=50)
    plain = LocalLinearRegressor(bandwidth=0.7).fit(X, y)
    assert plain.ridge_ == 0.0
    assert_array_equal(plain.predict(X), LocalLinearRegressor(bandwidth=0.7, ridge=0).fit(X, y).predict(X))
    constant = NadarayaWatsonRegressor(bandwidth=0.7).fit(X, y).predict(X)
    assert_allclose(LocalLinearRegressor(bandwidth=0.7, ridge=1e12).fit(X, y).predict(X), constant, rtol=1e-9)


def test_far_queries_take_the_nearest_row_and_warn_of_nothing_but_that_they_are_far():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 3.0, 5.0])
    model = LocalLinearRegressor(bandwidth=0.5, ridge=0.1).fit(X, y)
    with pytest.warns(kernpool.ExtrapolationWarning, match="3 of 3"):
        found = model.predict([[1e3], [-1e5], [60.0]])
    assert_allclose(found, [5.0, 1.0, 5.0], rtol=1e-12)


def test_a_ridge_grows_the_fit_as_it_says():
    generator = np.random.default_rng(2)
    key, value, query = generator.normal(size=(30, 2)), generator.normal(size=(30, 2)), generator.normal(size=(8, 2))
    state = kernpool.pool_state(query, key, value, bandwidth=[0.6, 0.9], degree=1)
    layout, ridge, step = Layout(values=2, columns=2, degree=1), np.array([0.3, 0.8]), 1e-5

    def fitted(scale):
        return solve(with_ridge(state, layout, ridge * scale), layout)

    fit = fitted(1.0)
    found = change_by_ridge(state, fit, ridge, fit.slope)
    for a in range(2):
        up, down = (fitted(np.exp(sign * step * (np.arange(2) == a))).intercept for sign in (1, -1))
        assert_allclose(found[:, :, a], (up - down) / (2 * step), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("ridge", [-1.0, np.nan, np.inf, "much", [[1.0]]])
def test_what_is_no_ridge_is_refused(ridge):
    with pytest.raises(ValueError, match="ridge must be"):
        check_ridge(ridge)
    with pytest.raises(ValueError, match="ridge must be"):
        LocalLinearRegressor(ridge=ridge).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
