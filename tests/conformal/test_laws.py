"""Laws of prediction intervals: rows that are repeated, shuffled, moved and scaled, and windows that are empty."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.inference import InferenceWarning
from tests.support.dense_conformal import ranks

MODELS = [NadarayaWatsonRegressor, LocalLinearRegressor]
OF_TRAINING = ["adaptive", "jackknife+", "cv+", "cqr"]
PLACES = np.array([[0.05], [0.4], [0.75], [1.2]])


def rows(n=40, seed=0, d=1):
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(n, d))
    return X, np.sin(6 * X[:, 0]) + 0.3 * generator.normal(size=n), generator


def ends(model, method, X=PLACES, **options):
    found = model.prediction_interval(X, method=method, random_state=0, **options)
    return np.stack([found.lower, found.upper])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["gaussian", "epanechnikov", "triangular"]), st.sampled_from(MODELS))
def test_intervals_are_nested_by_level(seed, kernel, model):
    generator = np.random.default_rng(seed)
    n, d = int(generator.integers(5, 40)), int(generator.integers(1, 3))
    X = np.round(generator.uniform(size=(n, d)), int(generator.integers(1, 4)))
    y = np.round(X[:, 0] + generator.standard_t(2, n), int(generator.integers(0, 4)))
    q = generator.uniform(-0.2, 1.2, size=(5, d))
    fitted = model(kernel=kernel, bandwidth=float(generator.uniform(0.05, 1.0))).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = np.stack([ends(fitted, "jackknife+", q, level=level) for level in (0.5, 0.8, 0.9)])
    assert not np.isnan(found).any()
    assert np.all(found[1:, 0] <= found[:-1, 0])
    assert np.all(found[1:, 1] >= found[:-1, 1])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", OF_TRAINING)
def test_places_without_rows_have_the_infinite_interval(model, method):
    X, y, _ = rows()
    fitted = model(kernel="epanechnikov", bandwidth=0.3, empty="nan").fit(X, y)
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries"):
        found = fitted.prediction_interval([[0.5], [9.0]], method=method)
    assert np.isfinite([found.lower[0], found.upper[0]]).all()
    assert (found.lower[1], found.upper[1]) == (-np.inf, np.inf)
    assert np.isnan(found.center[1])
    with pytest.raises(ValueError, match="no key with positive weight"):
        fitted.set_params(empty="raise").fit(X, y).prediction_interval([[9.0]], method=method)
    fitted.set_params(empty="mean").fit(X, y)
    if method == "jackknife+":
        with pytest.warns(InferenceWarning, match="are infinite"):
            found = fitted.prediction_interval([[9.0]], method=method)
    else:
        found = fitted.prediction_interval([[9.0]], method=method)
        assert np.isfinite([found.lower, found.upper]).all()
    assert found.center[0] == pytest.approx(y.mean())
    assert found.lower[0] < found.center[0] < found.upper[0]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["jackknife+", "adaptive", "cqr"])
def test_rows_alone_in_their_window_have_infinite_scores(method, model):
    X, y, _ = rows(30)
    X[:4] = [[10.0], [20.0], [30.0], [40.0]]
    fitted = model(kernel="epanechnikov", bandwidth=0.5, empty="nan").fit(X, y)
    assert np.isfinite(ends(fitted, method, [[0.5]], level=0.8)).all()  # at most 6 of 30 may be outside
    with pytest.warns(InferenceWarning, match="1 of 1 queries .* prediction intervals"):
        assert np.isinf(ends(fitted, method, [[0.5]], level=0.9)).all()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", OF_TRAINING)
def test_too_few_rows_have_infinite_intervals(model, method):
    X, y, _ = rows(8)
    fitted = model(bandwidth=0.3).fit(X, y)
    with pytest.warns(InferenceWarning, match="level 0.9 needs at least 9 rows to calibrate it, got 8"):
        assert np.isinf(ends(fitted, method, [[0.5]])).all()
    assert np.isfinite(ends(fitted, method, [[0.5]], level=0.8)).all()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", OF_TRAINING)
def test_outputs_that_do_not_vary_have_no_width_with_a_word(model, method):
    X, _, _ = rows()
    with pytest.warns(InferenceWarning, match="have no width: the residuals that calibrate them are zero"):
        found = ends(model(bandwidth=0.2).fit(X, np.full(40, 3.0)), method)
    assert_allclose(found, 3.0, rtol=1e-12)


def test_a_row_that_has_most_of_a_window_is_summed_again():
    # The share of the nearest row is 1 - 1e-13: the change of the fit by taking it away has lost all digits of others.
    X, y = np.array([[0.0], [7.75], [7.8], [7.9]] + [[8.0]] * 20), np.arange(24.0)
    fitted = NadarayaWatsonRegressor(bandwidth=1.0).fit(X, y)
    low, high = ends(fitted, "jackknife+", [[0.0]], level=0.5)
    assert 1 - fitted.attention_weights([[0.0]])[0, 0] < 1e-11
    weight = np.exp(-0.5 * X[1:, 0] ** 2 + 30.0)
    without = weight @ y[1:] / weight.sum()
    residual = np.abs(y - fitted.leave_one_out().prediction[:, 0])
    fits = fitted.predict([[0.0]])[0] * np.ones(24)
    fits[0] = without
    k_low, k_up = ranks(0.5, 24)
    assert low[0] == pytest.approx(np.sort(fits - residual)[k_low - 1], abs=1e-9)
    assert high[0] == pytest.approx(np.sort(fits + residual)[k_up - 1], abs=1e-9)
