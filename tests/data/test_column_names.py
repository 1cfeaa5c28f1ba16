"""Labels of columns: functions of two frames compare columns by them, models refuse another order."""

import inspect
import re
from datetime import date

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Problem,
    load_model,
    open_chunks,
    pool,
    pool_state,
    pooling_weights,
    save_model,
)
from kernpool.data import plain_label

pandas = pytest.importorskip("pandas", reason="frames of pandas are half of what this is about")
polars = pytest.importorskip("polars", reason="frames of polars are the other half")

LIBRARIES = [pandas, polars]
OPTIONS = {"bandwidth": [0.5, 3.0, 20.0]}


@pytest.fixture
def table(generator):
    """Queries and keys whose columns have very different scales, and values."""
    scale = np.array([1.0, 10.0, 100.0])
    return scale * generator.normal(size=(8, 3)), scale * generator.normal(size=(60, 3)), generator.normal(size=60)


def frame(library, rows, names="abc", order="abc"):
    columns = {name: rows[:, names.index(name)] for name in order}
    return library.DataFrame(columns)


@pytest.mark.parametrize("theirs", LIBRARIES)
@pytest.mark.parametrize("ours", LIBRARIES)
@pytest.mark.parametrize("order", ["cab", "bca", "abc"])
def test_reordered_columns_are_put_in_the_order_of_the_keys(order, ours, theirs, table):
    query, key, value = table
    shuffled, keys = frame(ours, query, order=order), frame(theirs, key)
    assert_array_equal(pool(shuffled, keys, value, **OPTIONS), pool(query, key, value, **OPTIONS))
    assert_array_equal(pooling_weights(shuffled, keys, **OPTIONS), pooling_weights(query, key, **OPTIONS))
    found, expected = (pool_state(q, k, value, **OPTIONS) for q, k in ((shuffled, keys), (query, key)))
    assert_array_equal(found.numerator, expected.numerator)
    assert_array_equal(Problem.from_arrays(shuffled, keys, value, **OPTIONS).query, query)


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_that_differ_are_refused(library, table):
    query, key, value = table
    keys = frame(library, key)
    for other in (frame(library, query, "abd", "abd"), frame(library, query, order="ab")):
        for function in (pool, pool_state, lambda q, k, _: pooling_weights(q, k)):
            with pytest.raises(ValueError, match=r"columns of query .*missing are \['c'\]"):
                function(other, keys, value)


def test_names_that_occur_twice_are_refused_unless_they_are_the_same(table):
    query, key, value = table
    query, key = (pandas.DataFrame(rows, columns=["a", "a", "b"]) for rows in (query, key))
    assert_array_equal(pool(query, key, value), pool(query.to_numpy(), key.to_numpy(), value))
    with pytest.raises(ValueError, match="columns of query"):
        pool(query, key[["b", "a"]].set_axis(["b", "a", "a"], axis=1), value)


def test_columns_without_names_go_by_position(table):
    query, key, value = table
    expected = pool(query, key, value, **OPTIONS)
    assert_array_equal(pool(query, frame(pandas, key), value, **OPTIONS), expected)
    assert_array_equal(pool(frame(polars, query), key, value, **OPTIONS), expected)
    assert_array_equal(pool(pandas.DataFrame(query), frame(pandas, key), value, **OPTIONS), expected)
    cab = pool(frame(pandas, query), frame(pandas, key, order="cab"), value, bandwidth=[20.0, 0.5, 3.0])
    assert_allclose(cab, expected, rtol=1e-12)  # bandwidths go by the columns of the keys
    wide = pandas.DataFrame(np.zeros((5, 60)))
    with pytest.raises(ValueError, match=r"columns of query .*new are \[2\], missing are \[0\]"):
        pool(pandas.DataFrame(query)[[1, 2]], pandas.DataFrame(key)[[0, 1]], value)
    with pytest.raises(ValueError, match=r"\.\.\.\] \(60 in all\)"):
        NadarayaWatsonRegressor(bandwidth=1.0).fit(wide, np.arange(5)).predict(wide[wide.columns[::-1]])
    numbered = pandas.DataFrame(query)[[2, 0, 1]]  # these are labels all the same
    assert_array_equal(pool(numbered, pandas.DataFrame(key), value, **OPTIONS), expected)


def test_columns_of_chunks_have_names_too(table, tmp_path):
    pytest.importorskip("pyarrow", reason="streams of Arrow need the extra 'arrow'")
    query, key, value = table
    chunks = open_chunks(frame(pandas, key).assign(y=value), target="y")
    expected = pool(query, key, value, **OPTIONS)
    assert_allclose(pool(frame(pandas, query, order="bca"), chunks, **OPTIONS), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"columns of query .*new are \['x'\]"):
        pool(frame(pandas, query, "abx", "abx"), chunks, **OPTIONS)
    np.save(tmp_path / "t.npy", np.column_stack([key, value]))
    matrix = open_chunks(tmp_path / "t.npy", target="3")  # whose columns are called by their places
    assert_allclose(pool(frame(pandas, query), matrix, **OPTIONS), expected, rtol=1e-12)


LABELS = {
    "integers": [7, 3],
    "positions": [0, 1],
    "floats": [0.5, 0.25],
    "tuples": pandas.MultiIndex.from_tuples([("depth", "mean"), ("depth", "max")]),
    "dates": pandas.to_datetime(["2021-03-01", "2020-11-15"]),
    "periods": pandas.period_range("2020Q4", periods=2, freq="Q"),
    "days": [date(2021, 3, 1), date(2020, 11, 15)],
    "names": ["depth", "width"],
}
MODELS = [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier]


def labelled(rows, labels):
    return pandas.DataFrame(rows, columns=LABELS[labels])


def fitted(Model, labels, rows, **parameters):
    y = (rows[:, 0] > 0) * 1.0
    return Model(bandwidth=[0.5, 2.0], **parameters).fit(labelled(rows, labels), y.astype(int)), y


@pytest.fixture
def rows(generator):
    return generator.normal(size=(40, 2))


def methods_of_rows(model):
    """Return the names of the methods that take X of several columns, but for `fit`."""
    kind = type(model)
    names = [name for name in dir(kind) if not name.startswith("_") and name != "fit"]
    methods = [name for name in names if callable(inspect.getattr_static(kind, name))]
    found = [name for name in methods if "X" in inspect.signature(getattr(kind, name)).parameters]
    assert len(found) > 6
    return found


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("Model", MODELS)
def test_every_method_refuses_columns_in_another_order(Model, labels, rows):
    model, y = fitted(Model, labels, rows)
    frame = labelled(rows, labels)
    other = frame[frame.columns[::-1]]
    fixed = {"y": y}
    for name in methods_of_rows(model):
        method = getattr(model, name)
        needed = [
            fixed[parameter.name]
            for parameter in inspect.signature(method).parameters.values()
            if parameter.name != "X" and (parameter.default is parameter.empty or parameter.name == "y")
        ]
        with pytest.raises(
            ValueError, match=r"another order than in fit: X has .*, fit had .*; use X\[model\."
        ) as caught:
            method(other, *needed)
        assert all(repr(label) in str(caught.value) for label in map(plain_label, frame.columns)), name
    for name in ("prediction_interval", "predict_set"):
        if hasattr(model, name):
            with pytest.raises(ValueError, match="another order than in fit"):
                getattr(model, name)(frame, X_calibration=other, y_calibration=y)


@pytest.mark.parametrize("labels", LABELS)
def test_the_remedy_of_the_message_selects_the_columns(labels, rows, tmp_path):
    model, _ = fitted(LocalLinearRegressor, labels, rows)
    frame = labelled(rows, labels)
    expected = model.predict(frame)
    more = frame[frame.columns[::-1]].copy()
    more[("more", "") if labels == "tuples" else "more"] = 1.0
    save_model(model, tmp_path / "m")
    for one in (model, load_model(tmp_path / "m")):
        assert_array_equal(one.predict(frame), expected)  # without a warning about names
        with pytest.raises(ValueError, match=r"X lacks columns of fit: .*missing are"):
            one.predict(more.iloc[:, 1:])
        with pytest.raises(ValueError, match="another order"):
            one.predict(frame[frame.columns[::-1]])
        with pytest.raises(
            ValueError, match=r"X has columns that fit did not have: new are \[.*'more'.*; use "
        ) as caught:
            one.predict(more)
        (remedy,) = re.findall(r"use (X.*\])$", str(caught.value))
        assert_array_equal(one.predict(eval(remedy, {"X": more, "model": one})), expected)


def test_positions_agree_with_arrays_and_names(rows):
    """A frame made of an array has the labels 0 to k - 1, which say no more than positions do."""
    model, _ = fitted(NadarayaWatsonRegressor, "positions", rows)
    array = NadarayaWatsonRegressor(bandwidth=[0.5, 2.0]).fit(rows, model.value_)
    expected = array.predict(rows)
    for one in (model, array):
        assert_array_equal(one.predict(rows), expected)
        assert_array_equal(one.predict(pandas.DataFrame(rows)), expected)
        with pytest.raises(ValueError, match="another order"):
            one.predict(pandas.DataFrame(rows)[[1, 0]])
    with pytest.warns(UserWarning, match="feature names"):
        assert_array_equal(model.predict(labelled(rows, "names")), expected)


def test_labels_of_an_earlier_fit_are_forgotten(rows):
    model, y = fitted(NadarayaWatsonRegressor, "tuples", rows)
    model.fit(labelled(rows, "names"), y)
    assert not hasattr(model, "column_labels_")
    assert model.feature_names_in_.tolist() == LABELS["names"]
    model.fit(labelled(rows, "dates"), y)
    assert not hasattr(model, "feature_names_in_")
    assert model.column_labels_ == list(LABELS["dates"])
