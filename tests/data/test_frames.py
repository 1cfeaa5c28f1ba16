"""Frames and arrays with categorical columns: what is read of them, what an encoding keeps, and what it refuses."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pandas
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from kernpool.data import Encoding
from kernpool.kernels import get_categorical_kernel

SIZES = ["small", "medium", "large"]


def pandas_frame():
    return pandas.DataFrame(
        {
            "height": [1.5, 2.5, 3.5],
            "city": ["Rome", "Oslo", "Rome"],
            "size": pandas.Categorical(["large", "small", "large"], categories=SIZES, ordered=True),
            "shape": pandas.Categorical(["round", "flat", "flat"], categories=["round", "flat", "long"]),
            "open": [True, False, True],
            "count": pandas.array([1, 2, 3], dtype="Int64"),
        }
    )


def polars_frame():
    return polars.DataFrame(
        {
            "height": [1.5, 2.5, 3.5],
            "city": ["Rome", "Oslo", "Rome"],
            "size": polars.Series(["large", "small", "large"], dtype=polars.Enum(SIZES)),
            "shape": polars.Series(["round", "flat", "flat"], dtype=polars.Categorical),
            "open": [True, False, True],
            "count": polars.Series([1, 2, 3], dtype=polars.UInt8),
        }
    )


def changed(frame, **columns):
    """Return a frame of either library with other cells in some columns."""
    return frame.assign(**columns) if isinstance(frame, pandas.DataFrame) else frame.with_columns(**columns)


FRAMES = pytest.mark.parametrize("make", [pandas_frame, polars_frame])


@FRAMES
def test_what_frames_say_of_their_columns(make):
    encoding = Encoding.fit(make())
    assert encoding.names == ("height", "city", "size", "shape", "open", "count")
    assert encoding.kinds == ("numeric", "unordered", "ordered", "unordered", "numeric", "numeric")
    assert encoding.numeric == (0, 4, 5)
    assert encoding.categorical == (1, 2, 3)
    assert encoding.levels[:2] == (("Oslo", "Rome"), tuple(SIZES))
    # a pandas category declares a level that no row has; the categories of polars belong to no column
    assert encoding.levels[2] == (("round", "flat", "long") if make is pandas_frame else ("flat", "round"))
    assert encoding.places == (None, (0.0, 1.0, 2.0), None)
    numeric, code = encoding.encode(make())
    assert_array_equal(numeric, [[1.5, 1, 1], [2.5, 0, 2], [3.5, 1, 3]])
    assert_array_equal(code[:, :2], [[1, 2], [0, 0], [1, 2]])
    assert numeric.dtype == np.float64
    assert code.dtype == np.int64
    assert [encoding.levels[2][i] for i in code[:, 2]] == ["round", "flat", "flat"]


@FRAMES
def test_columns_can_be_overruled_by_name_and_by_position(make):
    encoding = Encoding.fit(make(), unordered=["open", 2], ordered=["count"])
    assert encoding.kinds == ("numeric", "unordered", "unordered", "unordered", "unordered", "ordered")
    assert encoding.levels[1] == tuple(SIZES)  # all that are declared
    assert encoding.levels[3] == (False, True)
    assert encoding.places == (None, None, None, None, (1.0, 2.0, 3.0))
    assert_array_equal(encoding.encode(make())[1][:, 3], [1, 0, 1])


@FRAMES
def test_what_kernels_want_to_know(make):
    encoding = Encoding.fit(make())
    count, places, declared = encoding.table_levels
    assert count == 2
    assert_array_equal(places, [0, 1, 2])
    assert declared == len(encoding.levels[2])
    assert get_categorical_kernel("wang_van_ryzin").table(places, 0.5)[0, 2] == 0.25 * 0.25
    assert get_categorical_kernel("aitchison_aitken").table(count, 0.5)[0, 1] == 0.5


def test_pandas_and_polars_and_arrays_are_the_same_table():
    """Fitted on one, asked with another."""
    frame, other = pandas_frame(), polars_frame()
    encoding = Encoding.fit(frame)
    rows = [list(row) for row in other.iter_rows()]
    for same in (other, rows):
        with nullcontext() if same is other else pytest.warns(UserWarning, match="feature names"):
            encoded = encoding.encode(same)
        for expected, found in zip(encoding.encode(frame), encoded, strict=True):
            assert_array_equal(found, expected)
    unnamed = Encoding.fit(rows, unordered=[1, 3, 2])
    assert unnamed.names is None
    with pytest.warns(UserWarning, match="feature names"):
        assert_array_equal(unnamed.encode(frame)[0], encoding.encode(frame)[0])


def test_arrays_declare_nothing():
    X = np.array([[2.0, 1.0], [5.0, 0.0], [2.0, 1.0]])
    assert Encoding.fit(X).kinds == ("numeric", "numeric")
    encoding = Encoding.fit(X.astype(np.float32), ordered=[0], unordered=[np.int64(1)])
    assert encoding.levels == ((2.0, 5.0), (0.0, 1.0))
    assert encoding.places == ((2.0, 5.0), None)
    numeric, code = encoding.encode(X.astype(int))  # 2 is 2.0
    assert_array_equal(numeric, np.zeros((3, 1)))  # one column at least
    assert_array_equal(code, [[0, 1], [1, 0], [0, 1]])
    text = np.array([["a", "1.5"], ["b", "2.5"]])
    with pytest.raises(ValueError, match=r"column 1 of X holds text such as '1.5' .* name it in unordered="):
        Encoding.fit(text, unordered=[0]).encode(text)
    assert Encoding.fit(text, unordered=[0, 1]).levels == (("a", "b"), ("1.5", "2.5"))


def test_places_of_ordered_levels():

    def places(values, categories=None, **options):
        column = pandas.Categorical(values, categories=categories, ordered=True) if categories else values
        return Encoding.fit(pandas.DataFrame({"x": column}), ordered=["x"], **options).places[0]

    assert places([1960, 1970, 1965]) == (1960, 1965, 1970)
    assert places([1960, 1970], [1960, 1965, 1970]) == (1960, 1965, 1970)
    assert places([3, 1], [3, 2, 1]) == (3, 2, 1)
    assert places([3, 1], [3, 1, 2]) == (0, 1, 2)  # the order that is declared is not that of the numbers
    assert places(["b", "a"], ["b", "a"]) == (0, 1)
    cut = pandas.cut(pandas.Series([0.5, 2.5, 1.5]), [0, 1, 2, 3])
    encoding = Encoding.fit(pandas.DataFrame({"x": cut}))
    assert encoding.levels == (("(0, 1]", "(1, 2]", "(2, 3]"),)
    assert_array_equal(encoding.encode(pandas.DataFrame({"x": cut}))[1][:, 0], [0, 2, 1])
    plain = pandas.DataFrame({"x": pandas.Categorical([10, 9, 10], categories=[10, 9])})
    assert Encoding.fit(plain, ordered=["x"]).places == ((9.0, 10.0),)  # no declared order


@FRAMES
def test_rows_that_an_encoding_refuses(make):
    frame, of = make(), (lambda cells: cells) if make is pandas_frame else polars.Series
    encoding = Encoding.fit(frame[:2], unordered=["count"])
    assert_array_equal(encoding.encode(frame, unseen="unlike")[1][:, -1], [0, 1, -1])
    names = list(encoding.names)
    renamed = frame.rename(columns={"city": "town"}) if make is pandas_frame else frame.rename({"city": "town"})
    for other, words in (
        (frame, r"'count' of X has the level 3 in row 2 .* known levels are 1, 2\. .*'unlike'"),
        (changed(frame, height=of([1.0, None, 2.0])), r"'height' of X is missing .* in row 1 \(counted from"),
        (changed(frame, city=of(["Oslo", None, "Rome"])), "'city' of X is missing in row 1"),
        (changed(frame, height=of(["1.5", "2.5", "3.5"])), "column 'height' of X holds text such as '1.5'"),
        (frame[names[::-1]], r"another order than in fit: .*; use X\[model.feature_names_in_\]"),
        (frame[names[:5]], "X lacks columns of fit: missing are"),
        (renamed, r"new are \['town'\], missing are \['city'\]"),
    ):
        with pytest.raises(ValueError, match=words):
            encoding.encode(other)


def test_objects_without_text_are_numbers_and_dates_are_days():
    frame = pandas.DataFrame({"a": np.array([1, 2.5], dtype=object), "b": np.array([1, "x"], dtype=object)})
    encoding = Encoding.fit(frame)
    assert encoding.kinds == ("numeric", "unordered")
    assert encoding.levels == ((1, "x"),)  # numbers come before text
    dates = pandas.DataFrame({"when": pandas.to_datetime(["2020-01-01", "2020-01-02"])})
    assert Encoding.fit(dates).encode(dates)[0].tolist() == [[18262.0], [18263.0]]
    assert Encoding.fit(dates, unordered=["when"]).levels[0][0].startswith("2020-01-01")


def test_what_is_refused():
    X, text = [[1.0, 2.0]], pandas.DataFrame({"size": ["s", "l"], "kind": pandas.Categorical(["s", "l"])})
    assert Encoding.fit(pandas.DataFrame(np.eye(2)), unordered=[1]).names is None  # numbers are no names
    for rows, options, message in (
        (X, {"unordered": "ab"}, "unordered must be None or a collection of names or positions of columns, got 'ab'"),
        (X, {"unordered": [True]}, "names or positions"),
        (X, {"ordered": [2]}, "ordered names column 2, and there are 2; positions begin at zero"),
        (X, {"unordered": ["a"]}, "unordered names column 'a', which is not there; the columns have no names"),
        (X, {"unordered": [0], "ordered": [0]}, "column 0 of X is named twice"),
        (X, {"unordered": [0, 0]}, "column 0 of X is named twice"),
        ([[np.inf], [1.0]], {"ordered": [0]}, "infinite levels"),
        (text, {"ordered": ["size"]}, "'size' of X is to be ordered .* order is not declared"),
        (text, {"ordered": ["kind"]}, "'kind' of X is to be ordered .* order is not declared"),
        (text.set_axis(["a", 1], axis=1), {}, "names of columns must be all strings or none"),
        (text.set_axis(["a", "a"], axis=1), {}, "two columns of X have the same name"),
        *((rows, {}, r"X must have shape|X is empty") for rows in ([], np.empty((0, 2)), "abc", None)),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            Encoding.fit(rows, **options)
    many = Encoding.fit(np.arange(100)[:, None], unordered=[0])
    for options, message in (
        ({}, r"levels are 0, 1, .*, 19, \.\.\.\. To pool"),
        ({"unseen": "ignore"}, "unseen must be"),
    ):
        with pytest.raises(ValueError, match=message):
            many.encode([[100]], **options)


@given(st.lists(st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans()), min_size=1))
def test_any_levels_come_back(items):
    """Every cell has the number of its own level."""
    X = np.array([*items, None], dtype=object)[:-1, None]
    encoding = Encoding.fit(X, unordered=[0])
    assert [encoding.levels[0][i] for i in encoding.encode(X)[1][:, 0]] == items


def test_reading_an_array_imports_no_frames():
    code = (
        "import sys\nfrom kernpool.data.encoding import Encoding\nEncoding.fit([['a', 1.0]], unordered=[0])\n"
        "assert not {'pandas', 'polars', 'sklearn', 'scipy', 'numba'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
