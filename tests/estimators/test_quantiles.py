"""Quantiles and draws of models are those of their weights."""

import numpy as np
import pytest

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonRegressor, pool_quantile
from tests.support.dense_quantiles import assert_quantiles

LEVELS = [0.9, 0.1, 0.5]


def make_rows(n=150, d=1, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.uniform(-1, 1, (n, d))
    return X, np.sin(3 * X[:, 0]) + 0.3 * generator.normal(size=n), generator


@pytest.mark.parametrize("d", [1, 3])
def test_local_constants_have_quantiles_of_the_outputs(d):
    X, y, generator = make_rows(d=d)
    weight = generator.integers(0, 4, len(y))
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, y, sample_weight=weight)
    assert_quantiles(model.quantile(X[:20], LEVELS), model.attention_weights(X[:20]), y, LEVELS)
    np.testing.assert_array_equal(model.quantile(X[:20]), model.quantile(X[:20], [0.5])[:, 0])


@pytest.mark.parametrize("clusters", [None, 12])
def test_planes_have_quantiles_of_their_residuals(clusters):
    X, y, generator = make_rows()
    groups = None if clusters is None else generator.integers(0, clusters, len(y))
    model = LocalLinearRegressor(bandwidth=0.4, kernel="epanechnikov").fit(X, y, groups=groups)
    residual = y - model.leave_one_out().prediction[:, 0]
    around = pool_quantile(X[:20], X, residual, LEVELS, bandwidth=0.4, kernel="epanechnikov")
    expected = model.predict(X[:20])[:, None] + around
    np.testing.assert_allclose(model.quantile(X[:20], LEVELS), expected, rtol=0, atol=1e-13)


def test_draws_have_the_conditional_distribution():
    X, y, _ = make_rows(n=30)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    drawn = model.conditional_distribution(X[:2]).sample(20000, random_state=0)
    assert drawn.shape == (2, 20000)
    for row, weights in zip(drawn, model.attention_weights(X[:2]), strict=True):
        share = np.array([np.mean(row == value) for value in y])
        np.testing.assert_allclose(share, weights, atol=5 * np.sqrt(0.25 / 20000))
    np.testing.assert_array_equal(drawn, model.conditional_distribution(X[:2]).sample(20000, random_state=0))


def test_rows_that_are_alone_have_no_residual():
    """The mean of all others is no fit of an isolated row, and what it is off by is no noise."""
    X = np.append(np.linspace(0, 1, 60), 9.0)[:, None]
    y = np.append(np.zeros(60), 50.0)
    model = LocalLinearRegressor("epanechnikov", 0.3, empty="mean").fit(X, y)
    with np.errstate(all="raise"):
        found = model.quantile([[0.5], [9.0], [5.0]], [0.1, 0.9])
    np.testing.assert_allclose(found[0], 0.0, atol=1e-12)
    assert found[1:].tolist() == [[0.0, 0.0], [0.0, 0.0]]  # of all outputs, where no residual is near
    single = LocalLinearRegressor("epanechnikov", 1e-3, empty="nan").fit(X[:3], y[:3])
    with pytest.warns(EmptyWindowWarning, match="2 of 2 queries"):
        assert np.isnan(single.quantile(X[:2])).all()
