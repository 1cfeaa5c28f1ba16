"""Local linear regression as an estimator, its slopes, and what scikit-learn does with estimators."""

import numpy as np
import pytest
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor

REGRESSORS = (NadarayaWatsonRegressor, LocalLinearRegressor)


@pytest.fixture
def table(generator):
    X = generator.uniform(-1, 1, size=(80, 3))
    return X, np.sin(3 * X[:, 0]) + X[:, 1] + 0.1 * generator.normal(size=80)


def test_a_plane_comes_back_whatever_the_bandwidth(generator):
    X = generator.normal(size=(50, 2))
    y = 3.0 + X @ [2.0, -1.0]
    for kernel in ("gaussian", "biweight"):
        model = LocalLinearRegressor(kernel, bandwidth=3.0, empty="nearest").fit(X, y)
        np.testing.assert_allclose(model.predict(X), y, atol=1e-10)
        np.testing.assert_allclose(model.get_prediction(X).slope, np.tile([2.0, -1.0], (50, 1)), atol=1e-9)


def test_local_slopes_are_those_of_weighted_least_squares(table):
    X, y = table
    model = LocalLinearRegressor(bandwidth=0.8).fit(X, y)
    slopes = model.get_prediction(X[:5]).slope
    for i in range(5):
        root = np.exp(-0.25 * np.sum(((X - X[i]) / 0.8) ** 2, axis=1))
        design = np.column_stack([np.ones(80), X - X[i]]) * root[:, None]
        expected = np.linalg.lstsq(design, y * root, rcond=None)[0]
        np.testing.assert_allclose(slopes[i], expected[1:], rtol=1e-9)
        assert model.predict(X[i : i + 1])[0] == pytest.approx(expected[0], rel=1e-9)
    shares = model.attention_weights(X)
    np.testing.assert_allclose(shares @ y, model.predict(X), rtol=1e-9)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)


def test_empty_windows_have_no_slope():
    for make in REGRESSORS:
        model = make("epanechnikov", bandwidth=1.5, empty="nan").fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 4.0])
        with pytest.warns(EmptyWindowWarning, match="1 of 1 queries .* have no key"):
            assert np.isnan(model.get_prediction([[50.0]]).slope).all()
    flat = NadarayaWatsonRegressor("epanechnikov", bandwidth=1.5, empty="nearest").fit([[0.0], [1.0]], [0.0, 1.0])
    with pytest.warns(EmptyWindowWarning, match="nearest"):
        np.testing.assert_array_equal(flat.get_prediction([[50.0]]).slope, 0.0)


@pytest.mark.parametrize("make", [*REGRESSORS, NadarayaWatsonClassifier])
def test_inspection_works(make, table):
    X, y = table
    y = y if make is not NadarayaWatsonClassifier else (y > 0).astype(int)
    model = make().fit(X, y)
    importance = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert importance[0] > importance[2]
    curve = partial_dependence(model, X, [0], kind="average", grid_resolution=5)["average"]
    assert np.ptp(curve) > 0.3


def test_sample_weight_is_routed(table):
    import sklearn

    X, y = table
    with sklearn.config_context(enable_metadata_routing=True):
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        model = LocalLinearRegressor(bandwidth=0.7).set_fit_request(sample_weight=True)
        weight = np.random.default_rng(0).integers(1, 4, len(X)).astype(float)
        pipeline = make_pipeline(scaler, model).fit(X, y, sample_weight=weight)
    alone = LocalLinearRegressor(bandwidth=0.7).fit(StandardScaler().fit_transform(X), y, sample_weight=weight)
    np.testing.assert_allclose(pipeline.predict(X), alone.predict(pipeline[0].transform(X)))
