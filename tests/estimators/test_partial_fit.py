"""Adding rows is the same as having had them."""

import copy
import gc
import itertools
import pickle
import weakref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor

ESTIMATORS = [NadarayaWatsonRegressor, LocalLinearRegressor]


def make_rows(n=200, outputs=None):
    generator = np.random.default_rng(1)
    X = generator.normal(size=(n, 2))
    y = X[:, 0] + generator.normal(size=n)
    return X, y if outputs is None else np.column_stack([y] * outputs), generator.integers(1, 4, n) * 1.0


@given(
    cuts=st.lists(st.integers(1, 199), unique=True, max_size=6),
    estimator=st.sampled_from(ESTIMATORS),
    outputs=st.sampled_from([None, 1, 3]),
    weighted=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_same_bits_as_all_rows_at_once(cuts, estimator, outputs, weighted, dtype):
    X, y, weight = make_rows(outputs=outputs)
    X, y = X.astype(dtype), y.astype(dtype)
    whole = estimator(bandwidth=0.7).fit(X, y, weight if weighted else None)
    model, edges = estimator(bandwidth=0.7), [0, *sorted(cuts), 200]
    for start, stop in itertools.pairwise(edges):
        part = slice(start, stop)
        assert model.partial_fit(X[part], y[part], weight[part] if weighted else None) is model
    for name in ("key_", "value_", "key_weight_", "key_code_", "bandwidth_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(whole, name))
        assert getattr(model, name) is None or getattr(model, name).dtype == getattr(whole, name).dtype
    np.testing.assert_array_equal(model.predict(X[:20]), whole.predict(X[:20]))
    assert model.leave_one_out().error == whole.leave_one_out().error


def test_a_bandwidth_by_name_is_found_once():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor().partial_fit(X[:80], y[:80])
    first = NadarayaWatsonRegressor().fit(X[:80], y[:80])
    assert model.loo_error_ == first.loo_error_
    model.partial_fit(X[80:], y[80:])
    np.testing.assert_array_equal(model.bandwidth_, first.bandwidth_)
    expected = NadarayaWatsonRegressor(bandwidth=first.bandwidth_).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))
    assert not hasattr(model, "loo_error_")  # that of rows which are no longer all
    assert model.bandwidth_search_.rows == 80


def test_weights_that_come_later_or_stop():
    X, y, weight = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.5).partial_fit(X[:50], y[:50])
    model.partial_fit(X[50:90], y[50:90], weight[50:90]).partial_fit(X[90:], y[90:])
    all_weights = np.concatenate([np.ones(50), weight[50:90], np.ones(110)])
    np.testing.assert_array_equal(model.key_weight_, all_weights)
    expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(X, y, all_weights)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


@pytest.mark.parametrize("make_copy", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_and_its_original_do_not_see_each_others_rows(make_copy):
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.5).partial_fit(X[:50], y[:50]).partial_fit(X[50:60], y[50:60])
    other = make_copy(model)
    model.partial_fit(X[60:90], y[60:90])
    other.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(model.key_, X[:90])
    np.testing.assert_array_equal(other.key_, np.concatenate([X[:60], X[100:]]))
    np.testing.assert_array_equal(other.value_, np.concatenate([y[:60], y[100:]]))


def test_rows_are_not_copied_every_time():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(X[:1], y[:1])
    moves, place = 0, None
    for i in range(1, 200):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        moves += place != model.key_.ctypes.data
        place = model.key_.ctypes.data
    assert moves <= 3  # 64, 130, 262 rows
    assert len(pickle.dumps(model)) < 2 * (X.nbytes + y.nbytes)


def test_the_callers_arrays_stay_the_callers():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.5).partial_fit(X[:50], y[:50])
    X.flags.writeable = False
    model.partial_fit(X[50:], y[50:])
    expected = model.predict(X[:3])
    X.flags.writeable = True
    X[50:] = 0.0
    np.testing.assert_array_equal(model.predict(np.asarray(make_rows()[0][:3])), expected)


def test_fit_begins_again():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.5).partial_fit(X, y).partial_fit(X, y).fit(X[:10], y[:10])
    np.testing.assert_array_equal(model.partial_fit(X[10:20], y[10:20]).key_, X[:20])


def test_rows_that_do_not_fit():
    X, y, _ = make_rows()
    model = NadarayaWatsonRegressor(bandwidth=0.5).partial_fit(X, y)
    with pytest.raises(ValueError, match="X has 1 features"):
        model.partial_fit(X[:, :1], y)
    with pytest.raises(ValueError, match=r"y must have shape \(rows, \*\(\)\)"):
        model.partial_fit(X, np.c_[y, y])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.full((2, 2), np.nan), y[:2])
    np.testing.assert_array_equal(model.key_, X)
    with pytest.raises(TypeError, match="numeric columns"):
        NadarayaWatsonRegressor(bandwidth=0.5, smoothing=0.1, unordered=[0]).partial_fit(np.round(X), y)
    with pytest.raises(TypeError, match="chunks are none"):
        NadarayaWatsonRegressor(bandwidth=0.5).partial_fit("rows.parquet", "y")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_what_was_made_of_fewer_rows_is_not_kept(estimator):
    X, y, _ = make_rows()
    model = estimator(bandwidth=0.7).partial_fit(X, y)
    model.predict(X[:3])
    before = weakref.ref(model._prepared)
    model.partial_fit(X[:5], y[:5])
    gc.collect()
    assert before() is None
