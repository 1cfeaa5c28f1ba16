"""Models on chunks: intervals are those of the rows that are not held back, calibrated by those that are."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool import (
    EmptyWindowWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    load_model,
    open_chunks,
    save_model,
)
from kernpool.data.chunks.sampling import draw_sample
from kernpool.estimators.bandwidth import seed_of
from kernpool.estimators.methods import prediction_intervals
from kernpool.inference import InferenceWarning

MODELS = [NadarayaWatsonRegressor, LocalLinearRegressor]
PLACES = np.array([[0.05], [0.4], [0.93]])
N = 800


def rows(n=N, seed=0, d=1):
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(n, d))
    return X, np.sin(6 * X[:, 0]) + (0.1 + 0.5 * X[:, 0]) * generator.normal(size=n), generator


def in_chunks(X, y, weight=None, size=300):
    cuts = [slice(i, i + size) for i in range(0, len(y), size)]
    return open_chunks([(X[s], y[s]) if weight is None else (X[s], y[s], weight[s]) for s in cuts])


def split_rows(weight=None):
    """Rows of positive weight: a quarter in the order of their numbers, which is held back, and the others sorted."""
    order = np.argsort(np.random.Generator(np.random.PCG64(seed_of(0))).random(N))
    order = order if weight is None else order[weight[order] > 0]
    return order, order[: len(order) // 4], np.sort(order[len(order) // 4 :])


def same(found, expected):
    ends = [np.stack([one.center, one.lower, one.upper]) for one in (found, expected)]
    np.testing.assert_allclose(*ends, rtol=0, atol=1e-12)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [1 << 20, 300, 37])
def test_split_is_that_of_the_other_rows_in_memory(model, size):
    X, y, _ = rows()
    found = model(bandwidth=0.1).fit(in_chunks(X, y, size=size)).prediction_interval(PLACES, method="split")
    _, held, rest = split_rows()
    local = model(bandwidth=0.1).fit(X[rest], y[rest])
    same(found, local.prediction_interval(PLACES, method="split", X_calibration=X[held], y_calibration=y[held]))
    assert (found.n_calibration, found.method, found.level) == (N // 4, "split", 0.9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("others", [False, True])
def test_adaptive_has_the_scale_of_rows_that_are_held_back(model, others):
    X, y, generator = rows()
    there = generator.uniform(size=(60, 1))
    value = np.sin(6 * there[:, 0]) + generator.normal(size=60)
    given = {"X_calibration": there, "y_calibration": value} if others else {}
    found = model(bandwidth=0.1).fit(in_chunks(X, y)).prediction_interval(PLACES, **given)
    _, scale, rest = split_rows()
    if not others:
        there, value, scale = X[scale[: N // 8]], y[scale[: N // 8]], scale[N // 8 :]
    local = model(bandwidth=0.1).fit(X[rest], y[rest])
    wide = 3 * 0.1 * (N / len(scale)) ** 0.2
    noise = NadarayaWatsonRegressor(bandwidth=wide).fit(X[scale], np.abs(y[scale] - local.predict(X[scale])))
    score = np.sort(np.abs(value - local.predict(there)) / noise.predict(there))
    rank = -(-9 * (len(score) + 1) // 10)
    center, width = local.predict(PLACES), noise.predict(PLACES) * score[rank - 1]
    same(found, replace(found, center=center, lower=center - width, upper=center + width))


@pytest.mark.parametrize("model", MODELS)
def test_split_with_calibration_rows_is_that_of_all_rows_in_memory(model):
    X, y, generator = rows()
    both = np.column_stack([y, generator.normal(size=N)])
    weight = generator.integers(0, 3, N) * 1.0
    given = {"method": "split", "X_calibration": X[:50] + 0.01, "y_calibration": both[:50] + 1.0}
    given["groups"] = np.arange(50) // 2
    found, expected = (
        model(bandwidth=0.1).fit(*data).prediction_interval(PLACES, **given)
        for data in ((in_chunks(X, both, weight),), (X, both, weight))
    )
    same(found, expected)
    assert found.guarantee == expected.guarantee
    assert found.center.shape == (3, 2)


def test_weights_are_of_rows_and_rows_of_no_weight_are_never_drawn():
    X, y, generator = rows()
    weight = generator.integers(0, 3, N) * 1.0
    _, held, _ = split_rows(weight)
    model = NadarayaWatsonRegressor(bandwidth=0.1)
    found = model.fit(in_chunks(X, y, weight)).prediction_interval(PLACES, method="split")
    assert found.n_calibration == weight[held].sum()
    assert "without a finite-sample guarantee: rows stand for several" in found.guarantee
    left, again = weight.copy(), np.repeat(held, weight[held].astype(int))
    left[held] = 0.0
    model.fit(X, y, left)
    same(found, model.prediction_interval(PLACES, method="split", X_calibration=X[again], y_calibration=y[again]))
    model.fit(in_chunks(X, y, np.minimum(weight, 1.0)))
    assert "at least 0.9" in model.prediction_interval(PLACES).guarantee


@pytest.mark.parametrize("method", ["split", "adaptive"])
def test_rows_that_were_searched_do_not_calibrate(method):
    X, y, generator = rows()

    def ask(y, asked=None, **options):
        model = NadarayaWatsonRegressor(**options).fit(in_chunks(X, y))
        return model.bandwidth_, model.prediction_interval(PLACES, method=method, calibration=asked)

    bandwidth, found = ask(y, max_search_rows=200)
    assert "at least 0.9" in found.guarantee
    assert "training rows that were held back from the fit" in found.guarantee
    held = split_rows()[0][200:400]
    assert not np.isin(y[held], draw_sample(in_chunks(X, y), 200, seed_of(0)).value).any()
    changed = y.copy()
    changed[held] += generator.normal(size=200)
    again, other = ask(changed, max_search_rows=200)
    np.testing.assert_array_equal(bandwidth, again)
    np.testing.assert_array_equal(found.center, other.center)
    share = 1 if method == "split" else 2  # of adaptive half of the rows are for the scale
    # There are no others left, or they are asked for.
    for options in ({}, {"max_search_rows": 700}, {"max_search_rows": 200, "asked": "all"}):
        _, seen = ask(y, **options)
        assert seen.n_calibration == 200 // share
        assert "without a finite-sample guarantee: the bandwidth was found on the rows that calibrate" in seen.guarantee
    _, few = ask(y, "unsearched", max_search_rows=700)
    assert few.n_calibration == 100 // share
    assert "at least 0.9" in few.guarantee


def test_unsearched_rows_that_nobody_knows_are_refused(tmp_path):
    X, y, _ = rows()
    for model, message in (
        (NadarayaWatsonRegressor(bandwidth=0.1), "it was given, and not searched; leave calibration out"),
        (NadarayaWatsonRegressor(), "of 800 there are 0; fit with max_search_rows"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(in_chunks(X, y)).prediction_interval(PLACES, calibration="unsearched")
    np.save(tmp_path / "rows.npy", np.column_stack([X, y]))
    model = NadarayaWatsonRegressor(max_search_rows=200).fit(str(tmp_path / "rows.npy"), "1")
    assert "at least 0.9" in model.prediction_interval(PLACES).guarantee
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")  # files do not say which rows were drawn
    assert "the bandwidth was found on the rows that calibrate" in again.prediction_interval(PLACES).guarantee
    with pytest.raises(ValueError, match="the model does not know which these are"):
        again.prediction_interval(PLACES, calibration="unsearched")


def test_another_fit_forgets_what_was_searched():
    X, y, _ = rows()
    model = NadarayaWatsonRegressor(max_search_rows=200).fit(in_chunks(X, y))
    fresh = NadarayaWatsonRegressor(bandwidth=0.1)
    same(*(
        each.fit(in_chunks(X, y)).prediction_interval(PLACES, method="split")
        for each in (model.set_params(bandwidth=0.1), fresh)
    ))  # fmt: skip


def test_no_more_than_some_thousand_rows_are_held(monkeypatch):
    assert prediction_intervals.MOST_HELD == 4000
    monkeypatch.setattr(prediction_intervals, "MOST_HELD", 40)
    X, y, _ = rows()
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y))
    assert [model.prediction_interval(PLACES, method=m).n_calibration for m in ("split", "adaptive")] == [40, 40]


@pytest.mark.parametrize("model", MODELS)
def test_empty_windows_are_infinite_or_what_the_policy_says(model):
    X, y, _ = rows()
    fitted = model("epanechnikov", bandwidth=0.2, empty="nan").fit(in_chunks(X, y))
    far = [[0.5], [9.0]]
    for method in ("split", "adaptive"):
        with pytest.warns(EmptyWindowWarning, match="1 of 2 queries"):
            found = fitted.prediction_interval(far, method=method)
        assert np.isfinite([found.lower[0], found.upper[0]]).all()
        assert (found.lower[1], found.upper[1]) == (-np.inf, np.inf)
        assert np.isnan(found.center[1])
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries .* nearest") as caught:
        assert np.isfinite(fitted.set_params(empty="nearest").prediction_interval(far).center).all()
    assert len(caught) == 1
    for empty, expected in (("zero", 0.0), ("mean", y[split_rows()[2]].mean())):
        found = fitted.set_params(empty=empty).prediction_interval(far)
        assert found.center[1] == pytest.approx(expected, abs=1e-12)
        assert np.isfinite(found.upper[1])
    with pytest.raises(ValueError, match="no key with positive weight"):
        fitted.set_params(empty="raise").prediction_interval(far)


def test_too_few_rows():
    X, y, _ = rows(12)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(in_chunks(X, y))
    with pytest.warns(InferenceWarning, match="level 0.9 needs at least 9 rows to calibrate it, got 3"):
        found = model.prediction_interval(PLACES, method="split")
    assert np.isinf([found.lower, found.upper]).all()
    for n in (1, 2):
        few = NadarayaWatsonRegressor(bandwidth=0.5).fit(in_chunks(X[:n], y[:n]))
        with pytest.raises(ValueError, match=f"hold some rows back, and there are {n}; fit the rows in memory"):
            few.prediction_interval(PLACES)
    with pytest.warns(InferenceWarning, match="got 1"):
        NadarayaWatsonRegressor(bandwidth=0.5).fit(in_chunks(X[:3], y[:3])).prediction_interval(PLACES)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *(({"method": name}, TypeError, r"use method='adaptive' or 'split'.*bandwidth=model\.bandwidth_")
          for name in ("full", "jackknife+", "cv+", "cqr", "localized")),
        ({"method": "naive"}, ValueError, "method must be one of 'auto', 'adaptive'"),
        ({"groups": np.arange(N)}, TypeError, "groups must be None"),
        ({"X_calibration": np.ones((9, 2)), "y_calibration": np.ones(9)}, ValueError, "X_calibration: X has 2 feature"),
        ({"X_calibration": np.ones((9, 1)), "y_calibration": np.ones((9, 2))}, ValueError, r"have shape \(9,\)"),
        ({"X_calibration": np.ones((9, 1))}, ValueError, "y_calibration is None"),
        ({"level": 90}, ValueError, "level must lie between 0 and 1"),
    ],
)  # fmt: skip
def test_what_is_refused(options, error, message):
    X, y, _ = rows()
    with pytest.raises(error, match=message):
        NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y)).prediction_interval(PLACES, **options)
