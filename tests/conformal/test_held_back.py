"""Models on chunks: intervals are those of the rows that are not held back, calibrated by those that are."""

from importlib.util import find_spec

import numpy as np
import pytest

from kernpool import (
    EmptyWindowWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    density_ratio,
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
SAME = {"rtol": 0, "atol": 1e-12}


def rows(n=N, seed=0, d=1):
    generator = np.random.default_rng(seed)
    X = generator.uniform(size=(n, d))
    return X, np.sin(6 * X[:, 0]) + (0.1 + 0.5 * X[:, 0]) * generator.normal(size=n), generator


def in_chunks(X, y, weight=None, size=300):
    cuts = [slice(i, i + size) for i in range(0, len(y), size)]
    return open_chunks([(X[s], y[s]) if weight is None else (X[s], y[s], weight[s]) for s in cuts])


def order_of(n, weight=None, random_state=0):
    """Rows of positive weight in the order of their numbers."""
    lots = np.random.Generator(np.random.PCG64(seed_of(random_state))).random(n)
    order = np.argsort(lots)
    return order if weight is None else order[weight[order] > 0]


def ends(found):
    return np.stack([found.center, found.lower, found.upper])


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("size", [1 << 20, 300, 37])
def test_split_is_that_of_the_other_rows_in_memory(model, size):
    X, y, _ = rows()
    found = model(bandwidth=0.1).fit(in_chunks(X, y, size=size)).prediction_interval(PLACES, method="split")
    held, rest = np.split(order_of(N), [N // 4])
    rest = np.sort(rest)
    local = model(bandwidth=0.1).fit(X[rest], y[rest])
    expected = local.prediction_interval(PLACES, method="split", X_calibration=X[held], y_calibration=y[held])
    np.testing.assert_allclose(ends(found), ends(expected), **SAME)
    assert (found.n_calibration, found.method, found.level) == (N // 4, "split", 0.9)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("others", [False, True])
def test_adaptive_has_the_scale_of_rows_that_are_held_back(model, others):
    X, y, generator = rows()
    there = generator.uniform(size=(60, 1))
    value = np.sin(6 * there[:, 0]) + generator.normal(size=60)
    given = {"X_calibration": there, "y_calibration": value} if others else {}
    found = model(bandwidth=0.1).fit(in_chunks(X, y)).prediction_interval(PLACES, **given)
    held, rest = np.split(order_of(N), [N // 4])
    scale = held if others else held[N // 8 :]
    if not others:
        there, value = X[held[: N // 8]], y[held[: N // 8]]
    local = model(bandwidth=0.1).fit(X[np.sort(rest)], y[np.sort(rest)])
    wide = 3 * 0.1 * (N / len(scale)) ** 0.2
    noise = NadarayaWatsonRegressor(bandwidth=wide).fit(X[scale], np.abs(y[scale] - local.predict(X[scale])))
    score = np.sort(np.abs(value - local.predict(there)) / noise.predict(there))
    rank = -(-9 * (len(score) + 1) // 10)
    center, width = local.predict(PLACES), noise.predict(PLACES) * score[rank - 1]
    np.testing.assert_allclose(ends(found), [center, center - width, center + width], **SAME)


@pytest.mark.parametrize("model", MODELS)
def test_split_with_calibration_rows_is_that_of_all_rows_in_memory(model):
    X, y, generator = rows()
    both = np.column_stack([y, generator.normal(size=N)])
    weight = generator.integers(0, 3, N) * 1.0
    given = {"method": "split", "X_calibration": X[:50] + 0.01, "y_calibration": both[:50] + 1.0}
    given["groups"] = np.arange(50) // 2
    found = model(bandwidth=0.1).fit(in_chunks(X, both, weight)).prediction_interval(PLACES, **given)
    expected = model(bandwidth=0.1).fit(X, both, weight).prediction_interval(PLACES, **given)
    np.testing.assert_allclose(ends(found), ends(expected), **SAME)
    assert found.guarantee == expected.guarantee
    assert found.center.shape == (3, 2)


def test_weights_are_of_rows_and_rows_of_no_weight_are_never_drawn():
    X, y, generator = rows()
    weight = generator.integers(0, 3, N) * 1.0
    held, _ = np.split(order_of(N, weight), [np.count_nonzero(weight) // 4])
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y, weight))
    found = model.prediction_interval(PLACES, method="split")
    assert found.n_calibration == weight[held].sum()
    assert "without a finite-sample guarantee: rows stand for several" in found.guarantee
    left = weight.copy()
    left[held] = 0.0
    again = np.repeat(held, weight[held].astype(int))
    local = NadarayaWatsonRegressor(bandwidth=0.1).fit(X, y, left)
    expected = local.prediction_interval(PLACES, method="split", X_calibration=X[again], y_calibration=y[again])
    np.testing.assert_allclose(ends(found), ends(expected), **SAME)
    alone = NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y, np.minimum(weight, 1.0)))
    assert "at least 0.9" in alone.prediction_interval(PLACES).guarantee


def test_likelihood_ratios_are_a_function():
    X, y, _ = rows()
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y))
    found = model.prediction_interval(PLACES, method="split", weights=lambda table: table[:, 0])
    held, rest = np.split(order_of(N), [N // 4])
    local = NadarayaWatsonRegressor(bandwidth=0.1).fit(X[np.sort(rest)], y[np.sort(rest)])
    expected = local.prediction_interval(
        PLACES, method="split", X_calibration=X[held], y_calibration=y[held], weights=(X[held, 0], PLACES[:, 0])
    )
    np.testing.assert_allclose(ends(found), ends(expected), **SAME)
    assert "if new rows differ from the 200 rows that calibrate by the likelihood ratios" in found.guarantee
    with pytest.raises(TypeError, match="weights must be a function of X for rows that are held back"):
        model.prediction_interval(PLACES, weights=(np.ones(N), np.ones(3)))
    ratio = density_ratio(X, X[::2])
    estimated = model.prediction_interval(PLACES, method="split", weights=ratio)
    assert "about 0.9" in estimated.guarantee
    assert "estimates of density_ratio" in estimated.guarantee


@pytest.mark.parametrize("method", ["split", "adaptive"])
def test_rows_that_were_searched_do_not_calibrate(method):
    X, y, generator = rows()
    model = NadarayaWatsonRegressor(max_search_rows=200).fit(in_chunks(X, y))
    found = model.prediction_interval(PLACES, method=method)
    assert "at least 0.9" in found.guarantee
    assert "training rows that were held back from the fit" in found.guarantee
    held = order_of(N)[200:400]
    assert not np.isin(y[held], draw_sample(in_chunks(X, y), 200, seed_of(0)).value).any()
    changed = y.copy()
    changed[held] += generator.normal(size=200)
    other = NadarayaWatsonRegressor(max_search_rows=200).fit(in_chunks(X, changed))
    np.testing.assert_array_equal(model.bandwidth_, other.bandwidth_)
    np.testing.assert_array_equal(found.center, other.prediction_interval(PLACES, method=method).center)
    # There are no others left, or they are asked for.
    for options, asked in (
        ({}, {}),
        ({"max_search_rows": 700}, {}),
        ({"max_search_rows": 200}, {"calibration": "all"}),
    ):
        seen = (
            NadarayaWatsonRegressor(**options).fit(in_chunks(X, y)).prediction_interval(PLACES, method=method, **asked)
        )
        assert seen.n_calibration == (200 if method == "split" else 100)
        assert "without a finite-sample guarantee: the bandwidth was found on the rows that calibrate" in seen.guarantee
    few = NadarayaWatsonRegressor(max_search_rows=700).fit(in_chunks(X, y))
    few = few.prediction_interval(PLACES, method=method, calibration="unsearched")
    assert few.n_calibration == (100 if method == "split" else 50)
    assert "at least 0.9" in few.guarantee


def test_unsearched_rows_that_nobody_knows_are_refused(tmp_path):
    X, y, _ = rows()
    with pytest.raises(ValueError, match="it was given, and not searched; leave calibration out"):
        NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y)).prediction_interval(
            PLACES, calibration="unsearched"
        )
    with pytest.raises(ValueError, match="of 800 there are 0; fit with max_search_rows"):
        NadarayaWatsonRegressor().fit(in_chunks(X, y)).prediction_interval(PLACES, calibration="unsearched")
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
    model.set_params(bandwidth=0.1).fit(in_chunks(X, y))
    found = model.prediction_interval(PLACES, method="split")
    fresh = NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y)).prediction_interval(PLACES, method="split")
    np.testing.assert_array_equal(ends(found), ends(fresh))


@pytest.mark.skipif(not find_spec("pyarrow"), reason="Parquet needs the extra 'arrow'")
def test_a_parquet_file(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, y, _ = rows(d=2)
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": y}), path, row_group_size=130)
    places = np.array([[0.2, 0.3], [0.8, 0.5]])
    for method in ("split", "adaptive"):
        model = LocalLinearRegressor(bandwidth=0.3).fit(path, "y")
        with pytest.warns(UserWarning, match="feature names"):
            found = model.prediction_interval(places, method=method)
        expected = LocalLinearRegressor(bandwidth=0.3).fit(in_chunks(X, y)).prediction_interval(places, method=method)
        np.testing.assert_allclose(ends(found), ends(expected), **SAME)


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
    for empty, expected in (("zero", 0.0), ("mean", y[np.sort(order_of(N)[N // 4 :])].mean())):
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
    assert np.isinf(found.lower).all()
    assert np.isinf(found.upper).all()
    for n in (1, 2):
        few = NadarayaWatsonRegressor(bandwidth=0.5).fit(in_chunks(X[:n], y[:n]))
        with pytest.raises(ValueError, match=f"hold some rows back, and there are {n}; fit the rows in memory"):
            few.prediction_interval(PLACES)
    with pytest.warns(InferenceWarning, match="got 1"):
        NadarayaWatsonRegressor(bandwidth=0.5).fit(in_chunks(X[:3], y[:3])).prediction_interval(PLACES)


def test_what_is_refused():
    X, y, _ = rows()
    model = NadarayaWatsonRegressor(bandwidth=0.1).fit(in_chunks(X, y))
    for method in ("full", "jackknife+", "cv+", "cqr", "localized"):
        with pytest.raises(TypeError, match=r"use method='adaptive' or 'split'.*bandwidth=model\.bandwidth_"):
            model.prediction_interval(PLACES, method=method)
    with pytest.raises(ValueError, match="method must be one of 'adaptive'"):
        model.prediction_interval(PLACES, method="naive")
    with pytest.raises(TypeError, match="groups must be None"):
        model.prediction_interval(PLACES, groups=np.arange(N))
    with pytest.raises(ValueError, match="X_calibration: X has 2 features"):
        model.prediction_interval(PLACES, X_calibration=np.ones((9, 2)), y_calibration=np.ones(9))
    with pytest.raises(ValueError, match=r"y_calibration must have shape \(9,\)"):
        model.prediction_interval(PLACES, X_calibration=np.ones((9, 1)), y_calibration=np.ones((9, 2)))
    with pytest.raises(ValueError, match="y_calibration is None"):
        model.prediction_interval(PLACES, X_calibration=np.ones((9, 1)))
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.prediction_interval(PLACES, level=90)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["split", "adaptive"])
def test_new_rows_are_covered_as_often_as_is_promised(method):
    shares = []
    for run in range(130):  # with 400 new rows each, which err as 200 samples with 100
        X, y, _ = rows(400, seed=2 * run)
        new, value, _ = rows(400, seed=2 * run + 1)
        found = (
            NadarayaWatsonRegressor(max_search_rows=100).fit(in_chunks(X, y)).prediction_interval(new, method=method)
        )
        shares.append(np.mean((found.lower <= value) & (value <= found.upper)))
    error = np.std(shares) / np.sqrt(len(shares))
    count = 100 if method == "split" else 50
    assert 0.9 - 4 * error <= np.mean(shares) <= 0.9 + 1 / (count + 1) + 4 * error
