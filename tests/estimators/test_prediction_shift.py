"""Prediction intervals of a model at places from elsewhere, and by the methods that weigh rows around a place."""

import numpy as np
import pytest

from kernpool import InferenceWarning, LocalLinearRegressor, NadarayaWatsonRegressor, density_ratio


def rows(n, at, seed):
    g = np.random.default_rng(seed)
    X = g.normal(at, 1.0, size=(n, 1))
    return X, np.sin(X[:, 0]) + 0.3 * np.exp(0.3 * X[:, 0]) * g.normal(size=n)


@pytest.fixture
def situation():
    (X, y), (other, z), (new, _) = rows(150, 0.0, 0), rows(140, 0.0, 1), rows(30, 0.5, 2)
    return X, y, other, z, new


def shape(X):
    return np.exp(0.5 * np.asarray(X)[:, 0])


@pytest.mark.parametrize("method", ["split", "adaptive", "cqr", "full"])
def test_a_function_and_its_values_are_the_same_weights(situation, method):
    X, y, other, z, new = situation
    model = LocalLinearRegressor(bandwidth=0.4).fit(X, y)
    given = {"X_calibration": other, "y_calibration": z} if method in ("split", "adaptive", "cqr") else {}
    at = other if given else X
    one = model.prediction_interval(new, method=method, weights=shape, **given)
    two = model.prediction_interval(new, method=method, weights=(shape(at), shape(new)), **given)
    np.testing.assert_array_equal(one.lower, two.lower)
    np.testing.assert_array_equal(one.upper, two.upper)
    assert one.lower.shape == (30,)
    plain = model.prediction_interval(new, method=method, **given)
    assert not np.array_equal(one.upper, plain.upper)
    assert "weights=" in one.guarantee or "without a finite-sample guarantee" in one.guarantee


def test_an_estimated_ratio_leaves_training_rows_out_of_their_own_density(situation):
    X, y, _, _, new = situation
    model = NadarayaWatsonRegressor(bandwidth=0.3).fit(X, y)
    ratio = density_ratio(X, new, bandwidth=0.3, largest=3.0)
    with pytest.warns(InferenceWarning, match="clipped to that"):
        found = model.prediction_interval(new, weights=ratio)
    with pytest.warns(InferenceWarning, match="clipped to that"):
        same = model.prediction_interval(new, weights=(ratio.at_training, ratio.at_new))
    np.testing.assert_array_equal(found.upper, same.upper)


def test_a_frame_with_levels_takes_a_function_of_calibration_rows_alone():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    g = np.random.default_rng(0)

    def frame(n):
        return pandas.DataFrame({"x": g.uniform(size=n), "k": pandas.Categorical(g.choice(["a", "b"], n))})

    X, other, new = frame(80), frame(60), frame(5)
    y, z = g.normal(size=80), g.normal(size=60)
    model = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.2]).fit(X, y)

    def weights(table):
        return 1.0 + (table["k"] == "a").to_numpy()

    found = model.prediction_interval(new, method="split", weights=weights, X_calibration=other, y_calibration=z)
    pair = weights(other), weights(new)
    same = model.prediction_interval(new, method="split", weights=pair, X_calibration=other, y_calibration=z)
    np.testing.assert_array_equal(found.upper, same.upper)
    with pytest.raises(ValueError, match=r"cannot be a function for training rows with categorical columns.*pair"):
        model.prediction_interval(new, weights=weights)
    assert np.isfinite(model.prediction_interval(new, weights=(weights(X), weights(new))).upper).all()
