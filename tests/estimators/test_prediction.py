"""Predictions at rows as objects: the numbers of the model at that time, each computed once."""

import copy
import dataclasses
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Plan,
    Prediction,
    distribution_bandwidth,
)

BOTH = [LocalLinearRegressor, NadarayaWatsonRegressor]
X = np.linspace(0.0, 4.0, 80)[:, None]
Y = np.sin(2.0 * X[:, 0]) + 0.3 * np.cos(77.0 * np.arange(80))
AT = np.array([[0.5], [1.7], [3.2]])
PARTS = ("mean", "standard_error", "observation_std", "slope", "slope_standard_error", "effective_sample_size")


def test_estimators_have_few_methods_and_no_attributes_but_results():
    for kind in (*BOTH, NadarayaWatsonClassifier):
        names = [name for name in dir(kind) if not name.startswith("_") and not name.endswith("_request")]
        own = [name for name in names if name not in dir(BaseEstimator)]
        methods = [name for name in own if inspect.isfunction(getattr(kind, name))]
        assert len(methods) <= 16, methods
        assert all(name.endswith("_") for name in {*own} - {*methods, "gap", "robust"})


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("outputs", [0, 2])
@pytest.mark.parametrize("make", BOTH)
def test_parts_are_what_the_model_answers(make, outputs, columns):
    x = np.column_stack([X[:, 0], np.cos(3 * X[:, 0])])[:, :columns]
    y = np.column_stack([Y, 2 - Y])[:, :outputs] if outputs else Y
    model, at = make(bandwidth=0.4).fit(x, y), x[::30] + 0.01
    prediction = model.get_prediction(at)
    mean, std = model.predict(at, return_std=True)
    np.testing.assert_array_equal(prediction.mean, mean)
    np.testing.assert_array_equal(prediction.observation_std, std)
    for quantity, center, error in (
        ("fit", prediction.mean, prediction.standard_error),
        ("derivative", prediction.slope, prediction.slope_standard_error),
    ):
        naive = prediction.confidence_interval(method="naive", quantity=quantity)
        np.testing.assert_allclose(naive.center, center, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(naive.standard_error, error)
    found, asked = prediction.confidence_interval(level=0.8), model.confidence_interval(at, level=0.8)
    for name in ("center", "lower", "upper", "standard_error", "df"):
        np.testing.assert_array_equal(getattr(found, name), getattr(asked, name))
    np.testing.assert_array_equal(prediction.weights(), model.attention_weights(at))
    np.testing.assert_allclose(prediction.weights() @ y, mean, rtol=1e-10)
    assert prediction.has_support.all()
    assert len(prediction) == len(at)


@pytest.mark.parametrize(("make", "passes"), [(LocalLinearRegressor, 1 + 5), (NadarayaWatsonRegressor, 1 + 5)])
def test_how_many_sums_a_prediction_makes(make, passes, monkeypatch):
    """The mean and the slopes share one; others are rows left out, the fit, noise and norm."""
    made, reduce = [], Plan.reduce
    monkeypatch.setattr(
        Plan, "reduce", lambda plan, problem, **options: made.append(1) or reduce(plan, problem, **options)
    )
    prediction = make(bandwidth=0.4).fit(X, Y).get_prediction(AT)
    assert not made
    first = [getattr(prediction, name) for name in PARTS[:4]]
    assert len(made) == passes
    made.clear()
    assert all(getattr(prediction, name) is part for name, part in zip(PARTS, first, strict=False))
    assert not made
    assert not prediction.mean.flags.writeable


@pytest.mark.parametrize("make", BOTH)
def test_a_prediction_never_changes(make):
    model, at = make(bandwidth=0.4).fit(X, Y), AT.copy()
    expected = {name: np.array(getattr(model.get_prediction(AT), name)) for name in PARTS}
    prediction, clusters = model.get_prediction(at), np.arange(80) // 4
    clustered = model.get_prediction(AT, groups=clusters)
    error = model.get_prediction(AT, groups=clusters).standard_error
    at += 1.0
    clusters[:] = np.arange(80)
    model.set_params(kernel="boxcar").fit(X[:9], Y[:9])
    for name in PARTS:
        np.testing.assert_array_equal(getattr(prediction, name), expected[name])
    np.testing.assert_array_equal(clustered.standard_error, error)
    with pytest.raises(dataclasses.FrozenInstanceError):
        prediction.variance = "nn"
    for other in (pickle.loads(pickle.dumps(prediction)), copy.copy(prediction), copy.deepcopy(prediction)):
        np.testing.assert_array_equal(other.mean, expected["mean"])
        np.testing.assert_array_equal(other.weights(), prediction.weights())
    predicted = model.predict(X[:5])
    predicted += 1.0  # is the caller's


def test_threads_share_a_prediction():
    model = LocalLinearRegressor(bandwidth=0.4).fit(X, Y)
    expected = model.get_prediction(X)
    shared = model.get_prediction(X)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda name: (name, getattr(shared, name)), PARTS * 8))
    for name, part in found:
        np.testing.assert_array_equal(part, getattr(expected, name))


def test_a_prediction_becomes_a_frame():
    pandas = pytest.importorskip("pandas", reason="frames need pandas")
    model = LocalLinearRegressor(bandwidth=0.4).fit(pandas.DataFrame({"dose": X[:, 0]}), Y)
    prediction = model.get_prediction(pandas.DataFrame({"dose": X[::4, 0]}))
    frame, interval = prediction.to_frame(level=0.8), prediction.confidence_interval(level=0.8)
    assert frame.columns.tolist() == ["mean", "se", "center", "lower", "upper", "slope_dose", "n_eff"]
    np.testing.assert_array_equal(frame["lower"], interval.lower)
    np.testing.assert_array_equal(frame["slope_dose"], prediction.slope[:, 0])
    two = NadarayaWatsonRegressor(bandwidth=0.4).fit(X, np.column_stack([Y, -Y])).get_prediction(AT)
    assert "upper_1" in two.to_frame().columns


def test_the_prediction_of_a_classifier():
    model = NadarayaWatsonClassifier(bandwidth=0.4).fit(X, Y > 0)
    prediction = model.get_prediction(AT)
    probability, error = model.predict_proba(AT, return_std=True)
    np.testing.assert_array_equal(prediction.probability, probability)
    np.testing.assert_array_equal(prediction.standard_error, error)
    interval, asked = prediction.confidence_interval(0.9), model.probability_interval(AT, 0.9)
    np.testing.assert_array_equal(interval.lower, asked.lower)
    np.testing.assert_allclose(
        prediction.effective_sample_size, 1 / np.sum(prediction.weights() ** 2, axis=1), rtol=1e-12
    )
    model.fit(X, Y < 0)
    np.testing.assert_array_equal(prediction.probability, probability)


def test_functions_of_models_refuse_what_is_none():
    for function in (distribution_bandwidth,):
        with pytest.raises(TypeError, match=r"model must be a NadarayaWatsonRegressor.*got NadarayaWatsonClassifier"):
            function(NadarayaWatsonClassifier())
    assert isinstance(NadarayaWatsonRegressor(bandwidth=1.0).fit(X, Y).get_prediction(AT), Prediction)
