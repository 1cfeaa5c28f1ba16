"""The engine behind a page against the estimators, every answer."""

import warnings

import numpy as np
import pandas as pd
import pytest

from kernpool import (
    EmptyWindowWarning,
    ExtrapolationWarning,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    RankDeficiencyWarning,
)
from kernpool.explorer.explorer_model import subject_of_model
from kernpool.explorer.server import RequestError, answer, model_at, thinned

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(80, 2))
Y = np.sin(6 * X[:, 0]) + X[:, 1] + 0.1 * RNG.normal(size=80)
WEIGHT = RNG.integers(1, 4, size=80).astype(float)
FRAME = pd.DataFrame({"a": X[:, 0], "town": RNG.choice(["north", "south", "west"], size=80)})


def subject_of(model):
    return subject_of_model(model, truth=None, target="y", title=None, load=None)


def numbers(values):
    return np.array([np.nan if value is None else value for value in values])


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("composition", ["radial", "product"])
def test_curve_is_that_of_an_estimator_fitted_so(kernel, degree, composition):
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    subject = subject_of(NadarayaWatsonRegressor(bandwidth=0.5).fit(X, Y, sample_weight=WEIGHT))
    settings = {"kernel": kernel, "bandwidth": [0.2, 0.4], "composition": composition, "degree": degree}
    places = np.linspace(0.05, 0.95, 31)
    request = {"kind": "curve", "column": 1, "places": places.tolist(), "query": {"numeric": [0.5, 0.0]}}
    found = numbers(answer(subject, request | {"settings": settings})["value"][0])
    own = {"ridge": 0.0} if degree else {}
    fitted = kind(kernel, [0.2, 0.4], composition=composition, **own).fit(X, Y, sample_weight=WEIGHT)
    expected = fitted.predict(np.column_stack([np.full(31, 0.5), places]))
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-14)  # a quotient, and a product with 1 / D


def test_levels_and_classes():
    labels = np.where(np.median(Y) < Y, "high", "low")
    model = NadarayaWatsonClassifier(bandwidth=0.3, smoothing=[0.2], prior_share=0.3).fit(FRAME, labels)
    place = {"numeric": [0.0], "codes": [2]}
    request = {"kind": "curve", "places": [0.2, 0.7], "query": place, "settings": {}}
    found = answer(subject_of(model), request)["value"]
    expected = model.predict_proba(pd.DataFrame({"a": [0.2, 0.7], "town": ["west", "west"]}))
    np.testing.assert_allclose(np.transpose(found), expected, rtol=1e-14)
    found = answer(subject_of(model), {"kind": "query", "query": place, "settings": {}})["value"]
    np.testing.assert_allclose(found, model.predict_proba(pd.DataFrame({"a": [0.0], "town": ["west"]}))[0], rtol=1e-14)


@pytest.mark.parametrize("empty", ["nan", "nearest", "mean", "zero", "raise"])
@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
def test_empty_windows_are_those_of_the_model(kind, empty):
    """Whatever `predict` or `predict_proba` says; None where it is NaN or raises."""
    outputs = kind is NadarayaWatsonClassifier
    more = {"prior_share": 0.3} if outputs else {}
    model = kind("boxcar", [0.1, 0.1], empty=empty, **more).fit(X, Y > 1 if outputs else Y, sample_weight=WEIGHT)
    places = np.array([0.5, 9.0])
    request = {"kind": "curve", "column": 0, "places": places.tolist(), "query": {"numeric": [0.0, 0.5]}}
    found = np.transpose([numbers(one) for one in answer(subject_of(model), request | {"settings": {}})["value"]])
    one = answer(subject_of(model), {"kind": "query", "query": {"numeric": [9.0, 0.5]}, "settings": {}})
    np.testing.assert_array_equal(numbers(one["value"]), found[1])
    queries = np.column_stack([places, [0.5, 0.5]])
    quiet = model if empty != "raise" else model_at(model, {}).set_params(empty="nan")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyWindowWarning)
        warnings.simplefilter("ignore", RankDeficiencyWarning)
        warnings.simplefilter("ignore", ExtrapolationWarning)
        expected = (quiet.predict_proba if outputs else quiet.predict)(queries)
    np.testing.assert_allclose(found, expected.reshape(2, -1), rtol=1e-14)
    assert np.isnan(found[1]).all() == (empty in ("nan", "raise"))


def test_what_is_missing_in_settings_stays():
    """A model at no other settings is the model, with its ridge and share of the priors."""
    for model in (
        NadarayaWatsonRegressor().fit(X, Y),
        LocalLinearRegressor(ridge=2.0, bandwidth=0.3).fit(X, Y),
        NadarayaWatsonRegressor(smoothing=[0.2], bandwidth=0.3).fit(FRAME, Y),
    ):
        rows = FRAME if model.encoding_ is not None else X
        np.testing.assert_array_equal(model_at(model, {}).predict(rows), model.predict(rows))
        np.testing.assert_array_equal(model_at(model, {"ridge": None, "degree": 0}).bandwidth_, model.bandwidth_)
    model = NadarayaWatsonClassifier(prior_share=0.4, bandwidth=0.3).fit(X, Y > 1)
    np.testing.assert_array_equal(model_at(model, {}).predict_proba(X), model.predict_proba(X))


def test_levels_that_no_row_has():
    model = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.2], unseen="unlike").fit(FRAME, Y)
    found = answer(subject_of(model), {"kind": "query", "query": {"numeric": [0.5], "codes": [-1]}, "settings": {}})
    expected = model.predict(pd.DataFrame({"a": [0.5], "town": ["east"]}))
    np.testing.assert_allclose(found["value"], expected, rtol=1e-14)
    strict = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.2]).fit(FRAME, Y)
    with pytest.raises(RequestError, match="codes"):
        answer(subject_of(strict), {"kind": "query", "query": {"numeric": [0.5], "codes": [-1]}, "settings": {}})


def test_nearest_row_is_one_of_the_data_that_counts():
    keys = np.sort(RNG.uniform(size=6000))
    weight = np.ones(6000)
    weight[5999] = 0.0
    model = NadarayaWatsonRegressor("epanechnikov", 0.001, empty="nan").fit(keys[:, None], keys, sample_weight=weight)
    subject = subject_of(model)
    found = answer(subject, {"kind": "query", "query": {"numeric": [7.0]}, "settings": {}})
    assert found["nearest"] == {"row": 5998, "key": [keys[5998]]}
    assert (found["reach"], found["value"], found["effectiveSize"], found["rows"]) == (0, [None], 0.0, [])
    found = answer(subject, {"kind": "query", "query": {"numeric": [float(keys[3000])]}, "settings": {}})
    assert found["nearest"] == {"row": 3000, "key": [keys[3000]]}


def test_a_query_has_its_weights_in_order():
    model = NadarayaWatsonRegressor(bandwidth=[0.1, 0.1]).fit(X, Y, sample_weight=WEIGHT)
    place = [[0.4, 0.6]]
    found = answer(subject_of(model), {"kind": "query", "query": {"numeric": place[0]}, "settings": {}})
    weight = model.attention_weights(place)[0]
    assert found["reach"] == np.count_nonzero(weight)
    assert found["effectiveSize"] == pytest.approx(model.get_prediction(place).effective_sample_size[0], rel=1e-14)
    np.testing.assert_array_equal(found["weight"], np.sort(weight)[::-1][: len(found["rows"])])
    np.testing.assert_array_equal(weight[found["rows"]], found["weight"])
    np.testing.assert_array_equal(found["key"], X[found["rows"]])
    np.testing.assert_array_equal(np.ravel(found["target"]), Y[found["rows"]])
    assert found["value"] == [pytest.approx(model.predict(place)[0], rel=1e-14)]


def test_local_planes_have_a_slope():
    model = LocalLinearRegressor(bandwidth=[0.3, 0.3], ridge=0.0).fit(X, X @ [2.0, -3.0])
    found = answer(subject_of(model), {"kind": "query", "query": {"numeric": [0.4, 0.6]}, "settings": {}})
    np.testing.assert_allclose(np.ravel(found["slope"]), [2.0, -3.0], rtol=1e-10)


def test_other_settings_leave_the_model_as_it_was():
    model = NadarayaWatsonRegressor().fit(X, Y)
    before = model.predict(X)
    other = model_at(model, {"bandwidth": [0.1, 0.1], "degree": 1, "kernel": "tricube"})
    assert isinstance(other, LocalLinearRegressor)
    assert np.shares_memory(other.key_, model.key_)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (None, "of kind"),
        ({"kind": "evil"}, "of kind"),
        ({"kind": "curve", "settings": [], "places": [1.0]}, "settings"),
        ({"kind": "curve", "settings": {"bandwidth": [1.0]}, "places": [1.0]}, "bandwidth must be 2 numbers"),
        ({"kind": "curve", "settings": {"bandwidth": [1.0, 0.0]}, "places": [1.0]}, "positive"),
        ({"kind": "curve", "settings": {"bandwidth": ["a", 1.0]}, "places": [1.0]}, "must be numbers"),
        ({"kind": "curve", "settings": {"kernel": "x"}, "places": [1.0]}, "kernel"),
        ({"kind": "curve", "settings": {"composition": "x"}, "places": [1.0]}, "composition"),
        ({"kind": "curve", "settings": {"degree": 7}, "places": [1.0]}, "degree"),
        ({"kind": "curve", "settings": {}, "places": [1.0] * 5000, "query": {"numeric": [0, 0]}}, "1 to 4096"),
        ({"kind": "curve", "settings": {}, "places": [1.0], "query": {"numeric": [0]}}, "query must be 2 numbers"),
        ({"kind": "curve", "settings": {}, "places": [1.0], "query": {"numeric": [0, 0], "codes": [1]}}, "codes"),
        ({"kind": "curve", "settings": {}, "places": [1.0], "query": {"numeric": [0, 0]}, "column": 2}, "column"),
        ({"kind": "query", "settings": {"degree": 1, "ridge": "abc"}}, "ridge must be"),
        ({"kind": "query", "settings": {"degree": 1, "ridge": -1.0}}, "ridge must not be negative"),
        ({"kind": "query", "settings": {"smoothing": [0.1]}}, "smoothing must be 0 numbers"),
        ({"kind": "query", "settings": {}, "query": {"numeric": [float("nan"), 0.0]}}, "finite"),
        ({"kind": "query", "settings": {}, "query": 7}, "query"),
        ({"kind": "query", "settings": {}, "query": {"numeric": [0, 0], "codes": "x"}}, "codes"),
    ],
)
def test_requests_that_no_page_makes(request_, words):
    with pytest.raises(RequestError, match=words):
        answer(subject_of(NadarayaWatsonRegressor(bandwidth=0.2).fit(X, Y)), request_)


@pytest.mark.parametrize("bandwidth", [0.3, "log_loss"])
def test_classes_have_no_planes(bandwidth):
    model = NadarayaWatsonClassifier(bandwidth=bandwidth).fit(X, Y > 1)
    with pytest.raises(RequestError, match="degree"):
        model_at(model, {"degree": 1})


def test_smoothing_has_ends():
    model = NadarayaWatsonRegressor(bandwidth=0.3, smoothing=[0.2]).fit(FRAME, Y)
    for smoothing in ([-0.1], [0.7]):  # of three levels 2 / 3 is the largest
        with pytest.raises(RequestError, match=r"smoothing must be from 0 to \[0.66"):
            model_at(model, {"smoothing": smoothing})


def test_thinning_keeps_both_ends():
    assert thinned(5000) is None
    kept = thinned(1_000_001)
    assert (kept[0], kept[-1], len(kept)) == (0, 1_000_000, 2000)
    assert set(np.diff(kept)) == {500, 501}
