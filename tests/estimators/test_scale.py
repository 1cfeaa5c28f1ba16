"""Columns compared by ranks: laws, slopes, weights, tables with levels, files, and what is refused."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.base import clone

from kernpool import (
    KernelCurveDisplay,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    load_model,
    open_chunks,
    pool,
    save_model,
)
from kernpool.data.rank_transform import Scale

REGRESSORS = [NadarayaWatsonRegressor, LocalLinearRegressor]
GROW = [np.exp, np.cbrt, lambda x: 3.0 * x - 7.0, lambda x: np.where(x > 0.3, x + 50.0, x)]


@pytest.fixture
def skewed(generator):
    X = generator.exponential(size=(60, 2)) ** 2
    return X, np.log1p(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * generator.normal(size=60)


def column(min_size=1):
    return arrays(np.float64, st.integers(min_size, 20), elements=st.sampled_from([-5.0, 0.0, 0.1, 1.0, 2.5, 1e6]))


@given(column())
def test_ranks_are_mid_ranks_between_zero_and_one(x):
    found = Scale.fit(x[:, None], None, [True]).apply(x[:, None])[:, 0]
    expected = [((x < one).sum() + 0.5 * (x == one).sum()) / len(x) for one in x]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


@given(column(), st.data())
def test_weights_are_repeated_rows(x, data):
    times = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x)).filter(any)))
    weighted = Scale.fit(x[:, None], times.astype(float), [True]).knots[0]
    repeated = Scale.fit(np.repeat(x, times)[:, None], None, [True]).knots[0]
    np.testing.assert_array_equal(weighted, repeated)


@given(column(), arrays(np.float64, 12, elements=st.floats(-1e7, 1e7)))
@example(np.array([-5.0, 0.1, -5.0, -5.0, -5.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), np.array([0.0, -7e-255]))
def test_the_scale_is_monotone_and_continuous(x, places):
    scale = Scale.fit(x[:, None], None, [True])
    rank = scale.apply(np.sort(places)[:, None])[:, 0]
    assert np.all(np.diff(rank) >= 0.0)
    if np.ptp(x):
        mean = np.ptp(scale.knots[0][1]) / np.ptp(x)
        ends = scale.apply(np.array([[x.min() - 2.0], [x.max() + 3.0]]))[:, 0]
        low, high = scale.knots[0][1][[0, -1]]
        np.testing.assert_allclose(ends, [low - 2.0 * mean, high + 3.0 * mean], rtol=1e-9)


@given(column(2))
def test_slopes_are_those_on_both_sides(x):
    scale = Scale.fit(x[:, None], None, [True])
    places, step = np.concatenate([x, x + 0.03, x - 0.03])[:, None], 1e-4
    expected = (scale.apply(places + step) - scale.apply(places - step)) / (2 * step)
    np.testing.assert_allclose(scale.slope(places), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.covering
@pytest.mark.parametrize("grow", GROW)
@pytest.mark.parametrize("make", [*REGRESSORS, NadarayaWatsonClassifier])
def test_an_increasing_function_of_a_column_changes_nothing_at_training_places(make, grow, skewed):
    X, y = skewed
    y = (y > 1.0).astype(int) if make is NadarayaWatsonClassifier else y
    grown = np.column_stack([grow(X[:, 0]), X[:, 1]])
    one, other = make(scale={0: "rank"}).fit(X, y), make(scale=["rank", "raw"]).fit(grown, y)
    np.testing.assert_array_equal(one.bandwidth_, other.bandwidth_)
    np.testing.assert_array_equal(one.predict(X), other.predict(grown))
    np.testing.assert_array_equal(one.leave_one_out().prediction, other.leave_one_out().prediction)


def test_predictions_are_those_of_pooled_ranks(skewed):
    X, y = skewed
    model = NadarayaWatsonRegressor(bandwidth=[0.1, 0.2], scale="rank").fit(X, y)
    ranks = (np.argsort(np.argsort(X, axis=0), axis=0) + 0.5) / len(X)
    np.testing.assert_allclose(model.predict(X), pool(ranks, ranks, y, bandwidth=[0.1, 0.2]), rtol=1e-12)
    np.testing.assert_allclose(model.attention_weights(X) @ y, model.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(model.key_, X)


@pytest.mark.filterwarnings("ignore::kernpool.SerialCorrelationWarning")  # one bandwidth for all misses bends
def test_a_skewed_column_is_fitted_better_by_ranks(generator):
    x = np.exp(3.0 * generator.normal(size=400))
    y = np.sin(2.0 * np.log(x)) + 0.3 * generator.normal(size=400)
    raw, rank = (NadarayaWatsonRegressor(scale=s).fit(x[:300, None], y[:300]) for s in ("raw", "rank"))
    assert rank.score(x[300:, None], y[300:]) > raw.score(x[300:, None], y[300:]) + 0.05


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # beyond all ranks slopes are zero
def test_slopes_are_per_unit_of_the_column(skewed):
    X, y = skewed
    model = NadarayaWatsonRegressor(bandwidth=0.15, scale=["rank", "raw"]).fit(X, y)
    places = 0.5 * (np.sort(X, axis=0)[1:] + np.sort(X, axis=0)[:-1])
    places = np.concatenate([places[::7], [[-1.0, 0.2], [90.0, 1.0]]])
    for a, step in enumerate(1e-7 * np.eye(2)):
        slope = (model.predict(places + step) - model.predict(places - step)) / 2e-7
        np.testing.assert_allclose(model.get_prediction(places).slope[:, a], slope, rtol=1e-4, atol=1e-6)
    line = LocalLinearRegressor(bandwidth=10.0, scale="rank").fit(
        X[:, :1], (np.argsort(np.argsort(X[:, 0])) + 0.5) / len(X)
    )
    scale = Scale.fit(X[:, :1], None, [True])
    np.testing.assert_allclose(line.get_prediction(X[:, :1]).slope, scale.slope(X[:, :1]), rtol=1e-6)


def test_levels_and_names(generator):
    pandas = pytest.importorskip("pandas", reason="frames")
    frame = pandas.DataFrame(
        {"kind": generator.choice(["a", "b"], 50), "income": np.exp(generator.normal(size=50)), "age": np.arange(50.0)}
    )
    y = np.log(frame["income"].to_numpy()) + (frame["kind"] == "a")
    model = NadarayaWatsonRegressor(scale={"income": "rank"}).fit(frame, y)
    listed = NadarayaWatsonRegressor(scale=["raw", "rank", "raw"]).fit(frame, y)
    grown = frame.assign(income=np.cbrt(frame["income"]))
    np.testing.assert_array_equal(model.predict(frame), listed.predict(frame))
    np.testing.assert_array_equal(model.predict(frame), clone(model).fit(grown, y).predict(grown))
    levels = frame[["kind"]]
    assert np.ptp(NadarayaWatsonRegressor(scale="rank").fit(levels, y).predict(levels)) > 0.1
    with pytest.raises(ValueError, match=r"scale must be 'raw' for categorical columns.*\['kind'\]"):
        NadarayaWatsonRegressor(scale={"kind": "rank"}).fit(frame, y)
    with pytest.raises(ValueError, match="'wage', which is not there; columns: "):
        NadarayaWatsonRegressor(scale={"wage": "rank"}).fit(frame, y)


@pytest.mark.parametrize("make", REGRESSORS)
def test_a_constant_column_has_no_say(make, skewed):
    X, y = skewed
    with_constant = np.column_stack([X[:, :1], np.full(len(X), 7.0)])
    model = make(bandwidth=0.2, scale="rank").fit(with_constant, y)
    new = np.column_stack([X[:, :1], np.linspace(-1e3, 1e3, len(X))])
    alone = make(bandwidth=0.2, scale="rank").fit(X[:, :1], y)
    with pytest.warns(match="constant") if make is LocalLinearRegressor else nullcontext():
        np.testing.assert_allclose(model.predict(new), alone.predict(X[:, :1]), rtol=1e-9)
    assert np.all(Scale.fit(with_constant, None, [True, True]).slope(new)[:, 1] == 0.0)


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # of the first rows alone
def test_more_rows_have_the_ranks_of_all(skewed):
    X, y = skewed
    model = NadarayaWatsonRegressor(bandwidth=0.1, scale="rank").partial_fit(X[:30], y[:30])
    before = model.predict(X)
    model.partial_fit(X[30:], y[30:])
    whole = NadarayaWatsonRegressor(bandwidth=0.1, scale="rank").fit(X, y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    assert np.abs(model.predict(X) - before).max() > 1e-3


@pytest.mark.covering
@pytest.mark.parametrize("scale", ["rank", ("raw", "rank"), {1: "rank"}, {np.int64(-1): "rank", 0: "raw"}])
@pytest.mark.parametrize("make", [*REGRESSORS, NadarayaWatsonClassifier])
def test_models_keep_their_scale(make, scale, skewed, tmp_path):
    X, y = skewed
    y = (y > 1.0).astype(int) if make is NadarayaWatsonClassifier else y
    model = make(bandwidth=0.5, scale=scale).fit(X, y)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(0.9 * X), model.predict(0.9 * X))
    assert again.scale == (list(scale) if isinstance(scale, tuple) else scale)


@pytest.mark.parametrize("scale", ["log", {"columns": [[5, "rank"]]}, {"columns": [["a", "rank"]]}, ["rank"], {"a": 1}])
def test_edited_scales_are_found(scale, skewed):
    model = NadarayaWatsonRegressor(bandwidth=0.2, scale="rank").fit(*skewed)
    record = model._to_record()
    record.header["parameters"]["scale"] = scale
    with pytest.raises(ValueError, match=r"scale|model"):
        NadarayaWatsonRegressor._from_record(record)


@pytest.mark.parametrize("scale", ["log", None, 3, ["rank", "log"], {0: "log"}, {1.5: "rank"}, {True: "rank"}])
def test_a_scale_of_no_kind_is_refused(scale, skewed):
    with pytest.raises(ValueError, match=r"scale must be 'raw', 'rank', one of them per column, or a dict.*got "):
        NadarayaWatsonRegressor(scale=scale).fit(*skewed)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (["rank"], "one per column, 2 in all, got 1"),
        ({2: "rank"}, "scale names column 2, and there are 2"),
        ({1: "rank", -1: "raw"}, "scale names a column twice"),
        ({"a": "rank"}, "the columns have no names, so use positions"),
    ],
)
def test_a_scale_for_other_columns_is_refused(scale, message, skewed):
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(*skewed)
    before = model.predict(skewed[0])
    with pytest.raises(ValueError, match=re.escape(message)):
        model.set_params(scale=scale).fit(*skewed)
    np.testing.assert_array_equal(model.set_params(scale="raw").predict(skewed[0]), before)


def test_rows_in_chunks_have_no_ranks(skewed):
    with pytest.raises(ValueError, match=r"scale must be 'raw' for rows that.*got 'rank': .*; fit a sample"):
        NadarayaWatsonRegressor(bandwidth=0.1, scale="rank").fit(open_chunks([skewed]))


def test_curves_are_drawn_over_the_column_itself(skewed):
    pytest.importorskip("matplotlib", reason="pictures")
    x, y = skewed[0][:, :1], skewed[1]
    display = KernelCurveDisplay.from_estimator(NadarayaWatsonRegressor(scale="rank").fit(x, y), x, y)
    assert (display.x[0], display.x[-1]) == (x.min(), x.max())
    assert np.count_nonzero(display.x < np.median(x)) >= 100
