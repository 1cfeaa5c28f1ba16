"""The engine behind a page against the estimators, every answer."""

import numpy as np
import pandas as pd
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from kernpool.pages.explorer.engine import RequestError, answer, model_at, thinned
from kernpool.pages.explorer.subject import subject_of_model

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
    model = NadarayaWatsonClassifier(bandwidth=0.3, smoothing=[0.2]).fit(FRAME, labels)
    request = {"kind": "curve", "places": [0.2, 0.7], "query": {"numeric": [0.0], "codes": [2]}, "settings": {}}
    found = answer(subject_of(model), request)["value"]
    pooled = model._pool(pd.DataFrame({"a": [0.2, 0.7], "town": ["west", "west"]}))
    np.testing.assert_allclose(np.transpose(found), pooled, rtol=1e-14)


def test_a_query_has_its_weights_in_order():
    model = NadarayaWatsonRegressor(bandwidth=[0.1, 0.1]).fit(X, Y, sample_weight=WEIGHT)
    place = [[0.4, 0.6]]
    found = answer(subject_of(model), {"kind": "query", "query": {"numeric": place[0]}, "settings": {}})
    weight = model.attention_weights(place)[0]
    assert found["reach"] == np.count_nonzero(weight)
    assert found["effectiveSize"] == pytest.approx(model.effective_sample_size(place)[0], rel=1e-14)
    np.testing.assert_array_equal(found["weight"], np.sort(weight)[::-1][: len(found["rows"])])
    np.testing.assert_array_equal(weight[found["rows"]], found["weight"])
    np.testing.assert_array_equal(found["key"], X[found["rows"]])
    np.testing.assert_array_equal(np.ravel(found["target"]), Y[found["rows"]])
    assert found["value"] == [pytest.approx(model.predict(place)[0], rel=1e-14)]


def test_local_planes_have_a_slope():
    model = LocalLinearRegressor(bandwidth=[0.3, 0.3], ridge=0.0).fit(X, X @ [2.0, -3.0])
    found = answer(subject_of(model), {"kind": "query", "query": {"numeric": [0.4, 0.6]}, "settings": {}})
    np.testing.assert_allclose(np.ravel(found["slope"]) / 0.3, [2.0, -3.0], rtol=1e-10)


def test_no_key_in_reach_is_none():
    model = NadarayaWatsonRegressor("boxcar", bandwidth=[0.01, 0.01]).fit(X, Y)
    far = {"numeric": [9.0, 9.0]}
    found = answer(subject_of(model), {"kind": "query", "query": far, "settings": {}})
    assert (found["value"], found["reach"], found["effectiveSize"], found["rows"]) == ([None], 0, 0.0, [])


@pytest.mark.parametrize("degree", [0, 1])
def test_path_is_the_leave_one_out_error(degree):
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    model = kind(bandwidth=0.2).fit(X, Y)
    found = answer(subject_of(model), {"kind": "path", "factors": [0.5, 1.0, 2.0], "settings": {}})
    ridge = {"ridge": model.ridge_} if degree else {}
    errors = [kind(bandwidth=0.2 * factor, **ridge).fit(X, Y).leave_one_out().error for factor in (0.5, 1.0, 2.0)]
    assert found["error"] == errors


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
        ({"kind": "curve", "settings": {}, "places": [1.0] * 5000, "query": {"numeric": [0, 0]}}, "up to 4096"),
        ({"kind": "curve", "settings": {}, "places": [1.0], "query": {"numeric": [0]}}, "query must be 2 numbers"),
        ({"kind": "curve", "settings": {}, "places": [1.0], "query": {"numeric": [0, 0], "codes": [1]}}, "codes"),
        ({"kind": "curve", "settings": {}, "places": [1.0], "query": {"numeric": [0, 0]}, "column": 2}, "column"),
        ({"kind": "path", "settings": {}, "factors": [-1.0]}, "positive"),
        ({"kind": "query", "settings": {}, "query": {"numeric": [float("nan"), 0.0]}}, "finite"),
        ({"kind": "query", "settings": {}, "query": 7}, "query"),
        ({"kind": "query", "settings": {}, "query": {"numeric": [0, 0], "codes": "x"}}, "codes"),
    ],
)
def test_requests_that_no_page_makes(request_, words):
    with pytest.raises(RequestError, match=words):
        answer(subject_of(NadarayaWatsonRegressor(bandwidth=0.2).fit(X, Y)), request_)


def test_classes_have_no_planes():
    model = NadarayaWatsonClassifier(bandwidth=0.3).fit(X, Y > 0)
    with pytest.raises(RequestError, match="degree"):
        model_at(model, {"degree": 1})


def test_thinning_keeps_both_ends():
    assert thinned(5000) is None
    kept = thinned(1_000_001)
    assert (kept[0], kept[-1], len(kept)) == (0, 1_000_000, 2000)
    assert set(np.diff(kept)) == {500, 501}
