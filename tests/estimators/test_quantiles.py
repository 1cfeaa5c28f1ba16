"""Quantiles and draws of models are those of their weights."""

import numpy as np
import pandas as pd
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


def test_levels_and_ranks_weigh_as_they_do_for_means():
    X, y, generator = make_rows()
    frame = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(generator.choice(list("abc"), len(y)))})
    model = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.3], scale="rank").fit(frame, y)
    assert_quantiles(model.quantile(frame[:20], LEVELS), model.attention_weights(frame[:20]), y, LEVELS)


def test_planes_have_quantiles_of_their_residuals():
    X, y, _ = make_rows()
    model = LocalLinearRegressor(bandwidth=0.4, kernel="epanechnikov").fit(X, y)
    residual = y - model.leave_one_out().prediction[:, 0]
    around = pool_quantile(X[:20], X, residual, LEVELS, bandwidth=0.4, kernel="epanechnikov")
    expected = model.predict(X[:20])[:, None] + around
    np.testing.assert_allclose(model.quantile(X[:20], LEVELS), expected, rtol=0, atol=1e-13)


def test_a_straight_line_with_an_infinite_bandwidth_keeps_its_slope():
    generator = np.random.default_rng(1)
    X = generator.uniform(-1, 1, (400, 1))
    y = 5 * X[:, 0] + 0.1 * generator.normal(size=400)
    found = LocalLinearRegressor(kernel="constant", bandwidth=1.0).fit(X, y).quantile([[-0.8], [0.8]], [0.05, 0.95])
    np.testing.assert_allclose(found, [[-4.16, -3.84], [3.84, 4.16]], atol=0.05)


def test_clusters_leave_residuals_of_whole_clusters():
    X, y, generator = make_rows()
    groups = generator.integers(0, 12, len(y))
    model = LocalLinearRegressor(bandwidth=0.4).fit(X, y, groups=groups)
    residual = y - model.leave_one_out().prediction[:, 0]
    expected = model.predict(X[:9])[:, None] + pool_quantile(X[:9], X, residual, LEVELS, bandwidth=0.4)
    np.testing.assert_allclose(model.quantile(X[:9], LEVELS), expected, rtol=0, atol=1e-13)


def test_several_outputs_each_have_their_own():
    X, y, _ = make_rows()
    both = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, np.column_stack([y, -y])).quantile(X[:7], LEVELS)
    assert both.shape == (7, 2, 3)
    np.testing.assert_array_equal(both[:, 1], NadarayaWatsonRegressor(bandwidth=0.4).fit(X, -y).quantile(X[:7], LEVELS))


def test_draws_have_the_conditional_distribution():
    X, y, _ = make_rows(n=30)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y)
    drawn = model.conditional_distribution(X[:2]).sample(20000, random_state=0)
    assert drawn.shape == (2, 20000)
    for row, weights in zip(drawn, model.attention_weights(X[:2]), strict=True):
        share = np.array([np.mean(row == value) for value in y])
        np.testing.assert_allclose(share, weights, atol=5 * np.sqrt(0.25 / 20000))
    np.testing.assert_array_equal(drawn, model.conditional_distribution(X[:2]).sample(20000, random_state=0))


def test_draws_of_several_outputs_are_rows():
    X, y, _ = make_rows()
    both = np.column_stack([y, -y])
    drawn = (
        NadarayaWatsonRegressor(bandwidth=0.4).fit(X, both).conditional_distribution(X[:3]).sample(50, random_state=1)
    )
    assert drawn.shape == (3, 50, 2)
    np.testing.assert_array_equal(drawn[..., 0], -drawn[..., 1])
    assert np.isin(drawn[..., 0], y).all()


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


@pytest.mark.parametrize("regressor", [LocalLinearRegressor, NadarayaWatsonRegressor])
def test_empty_windows_have_quantiles_of_all_outputs(regressor):
    X = np.linspace(0, 1, 101)[:, None]
    model = regressor("epanechnikov", 0.2, empty="mean").fit(X, 10 * X[:, 0])
    np.testing.assert_allclose(model.quantile([[5.0]], LEVELS), [[9.0, 1.0, 5.0]], atol=0.11)


def test_types_are_those_of_predictions():
    X, y, _ = make_rows()
    for regressor in (LocalLinearRegressor, NadarayaWatsonRegressor):
        model = regressor(bandwidth=0.4).fit(X.astype(np.float32), y.astype(np.float32))
        at = X[:3].astype(np.float32)
        assert model.quantile(at).dtype == model.predict(at).dtype == np.float32
        assert model.conditional_distribution(at).sample(2, random_state=np.random.default_rng(0)).dtype == np.float32


def test_what_is_refused():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, y)
    with pytest.raises(ValueError, match="levels must be between 0 and 1, got 90"):
        model.quantile(X, 90)
    with pytest.raises(ValueError, match="size must be a positive number of draws, got 0"):
        model.conditional_distribution(X).sample(0)
    with pytest.raises(ValueError, match="features"):
        model.quantile(np.ones((2, 3)))
