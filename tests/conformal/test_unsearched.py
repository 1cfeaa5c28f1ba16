"""Rows that the search has not seen: which they are, and what they calibrate."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from kernpool.conformal import METHODS
from kernpool.estimators.limits import smoother_of
from kernpool.estimators.methods import prediction_intervals
from kernpool.smoother import EvaluationPoints
from tests.support.conformal_cases import own_setting

PLACES = np.array([[0.1], [0.5], [0.9]])


def rows(n=120, seed=0, d=1):
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(n, d))
    return X, np.sin(6 * X[:, 0]) + 0.3 * generator.normal(size=n), generator


@pytest.mark.parametrize("d", [1, 2])
def test_the_search_is_on_the_rows_that_it_says(d):
    X, y, _ = rows(d=d)
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 40, "random_state": 3}).fit(X, y)
    searched = model.search_rows_
    assert len(searched) == 40
    assert np.all(np.diff(searched) > 0)
    few = NadarayaWatsonRegressor(bandwidth="loo").fit(X[searched], y[searched])
    assert_allclose(model.bandwidth_search_.bandwidth, few.bandwidth_, rtol=1e-6)
    assert model.bandwidth_search_.rows == 40
    matters = few.relevance_ > 0
    factor = np.where(matters, (40 / 120) ** (1 / (4 + matters.sum())), 1.0)
    assert_allclose(model.bandwidth_, few.bandwidth_ * factor, rtol=1e-6)
    assert "a sample of 40 of 120 rows" in model.bandwidth_note_


def test_outputs_that_were_not_searched_do_not_move_the_bandwidth():
    X, y, generator = rows()
    model = LocalLinearRegressor(search={"rows": 50}).fit(X, y)
    others = np.setdiff1d(np.arange(len(y)), model.search_rows_)
    changed = y.copy()
    changed[others] += generator.normal(size=len(others))
    again = LocalLinearRegressor(search={"rows": 50}).fit(X, changed)
    assert_array_equal(model.search_rows_, again.search_rows_)
    assert_array_equal(model.bandwidth_, again.bandwidth_)


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_copies_of_searched_rows_are_searched():
    X, y, _ = rows(60)
    twice = np.r_[np.arange(60), np.arange(10)]
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 30}).fit(X[twice], y[twice])
    searched = model.search_rows_
    assert_array_equal(np.isin(np.arange(10), searched), np.isin(np.arange(60, 70), searched))
    assert len(searched) > 30
    said = model.prediction_interval(PLACES, method="jackknife+", calibration="unsearched").guarantee
    assert "without a finite-sample guarantee: rows are repeated" in said


def test_rows_of_weight_zero_are_skipped():
    X, y, generator = rows(60)
    weight = np.r_[np.zeros(10), np.ones(50)][generator.permutation(60)]
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 30}).fit(X, y, sample_weight=weight)
    assert np.all(weight[model.search_rows_] > 0)
    found = model.prediction_interval(PLACES, method="jackknife+", calibration="unsearched")
    assert found.n_calibration == 20.0


def test_all_rows_searched_leave_no_attribute():
    X, y, _ = rows(40)
    for model in (
        NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 40}),
        NadarayaWatsonRegressor(bandwidth="loo"),
        NadarayaWatsonRegressor(bandwidth=0.1, search={"rows": 10}),
    ):
        assert not hasattr(model.fit(X, y), "search_rows_")
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 20}).fit(X, y)
    assert not hasattr(model.set_params(search={"rows": None}).fit(X, y), "search_rows_")
    with pytest.raises(ValueError, match="it was searched on all rows; fit with search="):
        model.prediction_interval(PLACES, calibration="unsearched")


@pytest.mark.parametrize("method", ["jackknife+", "cv+", "adaptive"])
def test_the_other_rows_calibrate_a_fit_of_all(method):
    X, y, _ = rows()
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 40}).fit(X, y)
    found = model.prediction_interval(PLACES, method=method, calibration="unsearched", random_state=0)
    others = np.setdiff1d(np.arange(len(y)), model.search_rows_)
    assert found.n_calibration == 80.0
    assert_allclose(found.center, model.predict(PLACES), rtol=1e-14)
    _, lower, upper = METHODS[method].find(own_setting(smoother_of(model), EvaluationPoints(PLACES), which=others))
    if method != "cv+":  # whose folds are drawn
        assert_allclose(found.lower, lower[:, 0], rtol=0, atol=1e-12)
        assert_allclose(found.upper, upper[:, 0], rtol=0, atol=1e-12)
    if METHODS[method].rows == "own":
        assert "the 80 training rows that the search for the bandwidth has not seen" in found.guarantee
        assert "at least" in found.guarantee
    whole = model.prediction_interval(PLACES, method=method, calibration="all").guarantee
    assert "without a finite-sample guarantee" in whole


def test_from_many_rows_on_they_are_taken_unasked(monkeypatch):
    X, y, _ = rows()
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 40}).fit(X, y)
    assert prediction_intervals.MANY_ROWS == 100_000
    assert model.prediction_interval(PLACES, method="jackknife+").n_calibration == 120.0
    monkeypatch.setattr(prediction_intervals, "MANY_ROWS", 120)
    assert model.prediction_interval(PLACES, method="jackknife+").n_calibration == 80.0
    assert model.prediction_interval(PLACES, method="jackknife+", calibration="all").n_calibration == 120.0


def test_levels_and_classes_have_searched_rows_too():
    X, y, generator = rows(80)
    frame = pd.DataFrame({"x": X[:, 0], "kind": pd.Categorical(generator.choice(list("ab"), 80))})
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 40}).fit(frame, y)
    assert len(model.search_rows_) == 40
    assert model.prediction_interval(frame[:3], calibration="unsearched").n_calibration == 40.0
    classes = NadarayaWatsonClassifier(search={"rows": 40}).fit(X, y > 0)
    assert len(classes.search_rows_) == 40


def test_clusters_were_partly_seen():
    X, y, _ = rows()
    group = np.arange(120) // 10
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 60}).fit(X, y, groups=group)
    with pytest.raises(ValueError, match="the search has seen some rows of most clusters"):
        model.prediction_interval(PLACES, calibration="unsearched")
    assert model.prediction_interval(PLACES).n_calibration == 12.0  # clusters


def test_files_keep_them(tmp_path):
    X, y, _ = rows()
    model = NadarayaWatsonRegressor(bandwidth="loo", search={"rows": 40}).fit(X, y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert_array_equal(again.search_rows_, model.search_rows_)
    one, other = (each.prediction_interval(PLACES, calibration="unsearched") for each in (model, again))
    assert_array_equal(one.lower, other.lower)
