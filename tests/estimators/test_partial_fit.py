"""Adding rows is the same as having had them."""

import copy
import gc
import itertools
import pickle
import weakref
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from tests.support.together import often, together

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
    with pytest.raises(TypeError, match="needs the earlier rows in memory, not in chunks"):
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


def test_a_model_keeps_its_expected_error_until_rows_are_added(monkeypatch):
    X, y, _ = make_rows(40)
    model = NadarayaWatsonRegressor().fit(X, y)
    first = model.expected_error()
    monkeypatch.setattr("kernpool.estimators.kernel_smoother.expected_error", lambda model: -float(len(model.key_)))
    assert model.expected_error() == first
    assert model.partial_fit(X, y).expected_error() == -80.0


def pieces(numbers, size=300):
    """Return blocks of rows, each of one number, which is its output as well."""
    return [(np.full((size, 1), float(number)), np.full(size, float(number))) for number in numbers]


def parts(model, size=300):
    """Return the numbers of the blocks of a model, each of which has to be whole and to have its outputs."""
    key, value = model.key_[:, 0], model.value_
    np.testing.assert_array_equal(key, value)
    blocks = key.reshape(-1, size)
    assert np.all(blocks == blocks[:, :1])
    return blocks[:, 0].tolist()


@pytest.mark.parametrize("weighted", [False, True])
def test_threads_that_add_to_one_model_lose_and_mix_no_rows(weighted):
    sample_weight = np.full(300, 2.0) if weighted else None
    with often():
        for _ in range(10):
            model, taken = NadarayaWatsonRegressor(bandwidth=0.1), []  # the first call is a fit
            copied = []

            def add(numbers):
                for X, y in pieces(numbers):
                    model.partial_fit(X, y, sample_weight)  # noqa: B023  # of this turn
                    taken.append(copy.copy(model))  # noqa: B023  # of this turn

            def follow():
                for X, y in pieces(range(50, 60)):
                    if taken:  # noqa: B023  # of this turn
                        copied.append(copy.copy(taken[-1]).partial_fit(X, y, sample_weight))  # noqa: B023  # of this turn

            together(lambda: add(range(10)), lambda: add(range(10, 20)), follow)  # of this turn
            assert sorted(parts(model)) == list(range(20))
            assert [part for part in parts(model) if part < 10] == list(range(10))
            for other in (*taken, *copied):
                numbers = parts(other)
                assert len(set(numbers)) == len(numbers)
                assert other in taken or numbers[-1] >= 50
            if weighted:
                np.testing.assert_array_equal(model.key_weight_, np.full(6000, 2.0))


ASKED = {
    "predict": lambda model, X: model.predict(X),
    "derivative": lambda model, X: 0.0 * model.get_prediction(X).slope[:, 0],
    "weights": lambda model, X: 0.0 * model.attention_weights(X).sum(axis=1),
    "quantile": lambda model, X: 0.0 * model.quantile(X),
    "standard error": lambda model, X: 0.0 * model.get_prediction(X).standard_error,
    "residuals": lambda model, _: 0.0 * model.residuals().fitted[:2],
    "leave one out": lambda model, _: 0.0 * model.leave_one_out().prediction[:2, 0],
    "saved": lambda model, _: np.ptp([len(rows) for rows in itemgetter("key_", "value_")(model._to_record().arrays)]),
}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_answers_while_rows_are_added_are_of_whole_calls(estimator, asked):
    """Each call adds rows that balance, so that predictions of halves of a call would not be 0."""
    X, y = np.repeat([[-1.0], [1.0], [-1.0], [1.0]], 5, axis=0), np.outer([1.0, -1.0, -1.0, 1.0], range(1, 6)).ravel()
    query = np.array([[-1.0], [1.0]])
    with often():
        for _ in range(4):
            model, found = estimator(bandwidth=0.5).fit(X, y), []
            together(
                lambda: [model.partial_fit(X, y) for _ in range(50)],  # noqa: B023  # of this turn
                lambda: found.extend(asked(model, query) for _ in range(15)),  # noqa: B023  # of this turn
            )
            assert np.abs(found).max() < 1e-12
            assert len(model.key_) == 51 * 20
