"""Estimators whose windows follow the rows: pools of the same windows, refits without a row, and searches by all k."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import kernpool
from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, Nearest
from kernpool.estimators.bandwidth import minimise_over_whole_numbers
from kernpool.pooling.widths import with_widths

RNG = np.random.default_rng(5)
X = RNG.exponential(size=(60, 1))
Y = np.sin(3.0 * X[:, 0]) + 0.2 * RNG.normal(size=60)
NEW = RNG.exponential(1.5, size=(20, 1))
TWO, NEW_TWO, RATIOS = RNG.exponential(size=(60, 2)), RNG.exponential(size=(20, 2)), [1.0, 3.0]
STORED = json.loads((Path(__file__).parents[1] / "pooling" / "peer_numbers.json").read_text(encoding="utf-8"))
WAVE = np.array(STORED["data"]["wave"]["x"])[:, None], np.array(STORED["data"]["wave"]["y"])
KINDS = NadarayaWatsonRegressor, LocalLinearRegressor


def made(kind, k, **options):
    options = {"kernel": "tricube", "bandwidth": RATIOS if options.pop("two", False) else 1.0} | options
    return kind(window=Nearest(k), **options)


def pooled(query, rows, k, degree, **options):
    options = {"kernel": "tricube", "bandwidth": RATIOS if np.shape(query)[1] == 2 else 1.0} | options
    return kernpool.pool(query, *rows, window=Nearest(k), degree=degree, **options)


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_pools_of_the_same_windows(kind):
    for x, new in ((X, NEW), (TWO, NEW_TWO)):
        model = made(kind, 17, two=x is TWO).fit(x, Y)
        np.testing.assert_allclose(model.predict(new), pooled(new, (x, Y), 17, kind._degree), rtol=1e-12)
    model = made(kind, 17).fit(X, Y)
    prediction = model.get_prediction(NEW)
    reach = np.sort(np.abs(NEW - X.T), axis=1)[:, 16]
    np.testing.assert_allclose(prediction.widening, reach)
    np.testing.assert_allclose(prediction.weights() @ Y, model.predict(NEW))
    share = made(kind, 17.0 / 60.0).fit(X, Y)
    assert share.window_.k == model.window_.k == 17
    assert "17 nearest rows" in str(model.summary())


@pytest.mark.parametrize("kind", KINDS)
def test_leave_one_out_is_a_fit_without_the_row(kind):
    found = made(kind, 15, two=True).fit(TWO, Y).leave_one_out()
    for i in range(0, 60, 7):
        rest = np.arange(60) != i
        one = made(kind, 15, two=True).fit(TWO[rest], Y[rest])
        np.testing.assert_allclose(found.prediction[i, 0], one.predict(TWO[[i]])[0], rtol=1e-9)
    group = np.arange(60) % 9
    found = made(kind, 15).fit(X, Y, groups=group).leave_one_out().prediction[:, 0]
    for g in (0, 4):
        rest = group != g
        np.testing.assert_allclose(
            found[~rest], made(kind, 15).fit(X[rest], Y[rest]).predict(X[~rest]), rtol=1e-9
        )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_search_finds_the_best_of_all_numbers(kind):
    model = kind("tricube", "loo", window=Nearest()).fit(X, Y)
    least = 2 + 2 * kind._degree
    errors = {k: made(kind, k).fit(X, Y).leave_one_out().error for k in range(least, 60)}
    best = min(errors, key=errors.__getitem__)
    assert model.window_.k == best
    np.testing.assert_allclose(model.loo_error_, errors[best])
    assert model.expected_error() > 0.0


@pytest.mark.parametrize("name", ["np_nn_search_wave", "np_nn_aic_wave"])
def test_search_finds_the_numbers_of_np(name):
    for entry in STORED["numbers"]:
        if entry["name"] == name:
            kind, criterion = KINDS[entry["args"]["reg"] == "ll"], "loo" if "search" in name else "aicc"
            model = kind("gaussian", criterion, window=Nearest()).fit(*WAVE)
            own = criterion == "aicc"  # np does not count the row itself, in-sample
            assert model.window_.k == int(entry["values"][0]) + own
            if criterion == "loo":
                np.testing.assert_allclose(model.loo_error_, entry["values"][1], rtol=1e-9)


def test_ratios_of_columns_are_searched_for_fixed_widths():
    fixed = LocalLinearRegressor("tricube", "loo").fit(TWO, Y)
    model = LocalLinearRegressor("tricube", "loo", window=Nearest()).fit(TWO, Y)
    np.testing.assert_array_equal(model.bandwidth_, fixed.bandwidth_)
    errors = [
        made(LocalLinearRegressor, k, bandwidth=model.bandwidth_.tolist(), ridge=0.0).fit(TWO, Y).leave_one_out().error
        for k in range(5, 60)
    ]
    np.testing.assert_allclose(model.loo_error_, min(errors))


def test_frequencies_and_categories():
    weight, level = RNG.integers(1, 4, size=60), RNG.choice(list("ab"), size=60)
    frame = pd.DataFrame({"x": X[:, 0], "level": pd.Categorical(level)})
    model = made(LocalLinearRegressor, 30, smoothing=[0.3]).fit(frame, Y, sample_weight=weight)
    copies = np.repeat(np.arange(60), weight)
    with pytest.warns(kernpool.RepeatedRowsWarning):
        again = made(LocalLinearRegressor, 30, smoothing=[0.3]).fit(frame.iloc[copies], Y[copies])
    np.testing.assert_allclose(model.predict(frame), again.predict(frame), rtol=1e-10)
    np.testing.assert_allclose(model.get_prediction(frame).widening, again.get_prediction(frame).widening)


def with_bandwidths(model, x, y, query, width, degree):
    """The fit in windows of the given widths, at each query."""
    problem = with_widths(kernpool.Problem.from_arrays(query, x, y, kernel="tricube", degree=degree), width)
    fitted = kernpool.core.solve(kernpool.choose(problem).reduce(problem.without_center()), problem.layout)
    return fitted.intercept[:, 0] + problem.value_center[0]


@pytest.mark.filterwarnings("ignore::kernpool.InferenceWarning")
def test_intervals_are_of_the_same_windows():
    model = made(LocalLinearRegressor, 20).fit(X, Y)
    found, prediction = model.confidence_interval(NEW, method="robust"), model.get_prediction(NEW)
    wide = with_bandwidths(model, X, Y, NEW, np.sqrt(2.0) * prediction.widening, 1)
    np.testing.assert_allclose(found.center, 2.0 * model.predict(NEW) - wide, rtol=1e-9)
    naive = model.confidence_interval(NEW, method="naive")
    squared = (Y - model.leave_one_out().prediction[:, 0]) ** 2
    noise = with_bandwidths(model, X, squared, NEW, 2.0 * prediction.widening, 0)
    norm = np.sum(prediction.weights() ** 2, axis=1)
    np.testing.assert_allclose(naive.standard_error, np.sqrt(noise * norm), rtol=1e-9)


def test_quantiles_are_of_the_same_windows():
    model = made(NadarayaWatsonRegressor, 20).fit(X, Y)
    found = model.quantile(NEW, [0.1, 0.5, 0.9])
    right = kernpool.pool_quantile(NEW, X, Y, [0.1, 0.5, 0.9], kernel="tricube", window=Nearest(20))
    np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("method", ["adaptive", "split", "jackknife+", "cv+"])
def test_conformal_intervals(method):
    model = made(LocalLinearRegressor, 20).fit(X, Y)
    options = {"X_calibration": X[:30] + 0.01, "y_calibration": Y[:30]} if method == "split" else {}
    found = model.prediction_interval(NEW, level=0.8, method=method, **options)
    assert np.all(found.lower <= found.upper)
    if method == "jackknife+":
        assert "window" in str(found)


def test_cv_plus_refits_in_windows_of_the_rows_left():
    model = made(NadarayaWatsonRegressor, 12).fit(X, Y)
    group = np.arange(60) % 6
    found = model.prediction_interval(NEW, level=0.5, method="jackknife+", groups=group)
    without = np.stack(
        [made(NadarayaWatsonRegressor, 12).fit(X[group != g], Y[group != g]).predict(NEW) for g in range(6)]
    )
    assert found.lower.shape == without[0].shape
    assert np.all(found.lower <= without.max(axis=0))


def test_classes():
    label = np.where(Y > 0.0, "up", "down")
    model = made(NadarayaWatsonClassifier, 15, prior_share=0.0).fit(X, label)
    np.testing.assert_allclose(model.predict_proba(NEW)[:, 1], pooled(NEW, (X, 1.0 * (Y > 0)), 15, 0), atol=1e-12)
    searched = NadarayaWatsonClassifier("tricube", window=Nearest()).fit(X, label)
    assert searched.window_.k >= 2


def test_answers_about_rows():
    model = made(LocalLinearRegressor, 20, two=True).fit(TWO, Y)
    assert model.get_prediction(NEW_TWO).slope.shape == (20, 2)
    explained = model.get_prediction(NEW_TWO).explain(60)
    weights = model.attention_weights(NEW_TWO)
    for i in range(20):
        (some,) = np.nonzero(explained.row[i] >= 0)
        np.testing.assert_allclose(explained.weight[i, some], weights[i, explained.row[i, some]], atol=1e-12)
    assert np.isfinite(model.residuals().residual).all()


@pytest.mark.parametrize("weight", [[1.0], [0.0, 1.0]])
def test_a_row_without_others_is_told_in_words_of_rows(weight):
    """Errors of rows left out are NaN; the message is of rows, and not of arguments of pool."""
    x, y = np.arange(len(weight))[:, None] + 1.0, np.full(len(weight), 2.0)
    model = NadarayaWatsonRegressor(bandwidth=1.0, window=Nearest())
    with pytest.warns(kernpool.EmptyWindowWarning) as said:
        left_out = model.fit(x, y, weight).leave_one_out()
    assert np.isnan([left_out.prediction[-1, 0], left_out.error, model.loo_error_]).all()
    for each in said:
        assert "rows have no other row to be predicted from, and their leave-one-out predictions" in str(each.message)
    assert model.predict([[1.0]]) == [2.0]


def test_a_stopped_search_says_so():
    with pytest.warns(UserWarning, match="search for k was stopped"):
        found = minimise_over_whole_numbers(lambda k: float(k), 3, 100, seconds=1e-9)
    assert found == 3


def test_a_share_of_weights_that_is_no_whole_number_of_rows_is_refused():
    weight = np.full(50, 0.5)
    x = np.linspace(0.0, 1.0, 50)[:, None]
    whole = np.random.default_rng(0).uniform(0.5, 2.0, 50)
    assert made(NadarayaWatsonRegressor, 0.3).fit(x, x[:, 0], whole * (50 / whole.sum())).window_.k == 15
    with pytest.raises(ValueError, match=r"is 7\.5 rows, and windows reach to a whole number; give k as"):
        made(NadarayaWatsonRegressor, 0.3).fit(x, x[:, 0], weight)
