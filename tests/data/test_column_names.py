"""Functions that take two frames: columns are compared by name, whatever their order."""

import numpy as np
import pytest

from kernpool import Problem, open_chunks, pool, pool_state, pooling_weights

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
    np.testing.assert_array_equal(pool(shuffled, keys, value, **OPTIONS), pool(query, key, value, **OPTIONS))
    np.testing.assert_array_equal(pooling_weights(shuffled, keys, **OPTIONS), pooling_weights(query, key, **OPTIONS))
    found, expected = (pool_state(q, k, value, **OPTIONS) for q, k in ((shuffled, keys), (query, key)))
    np.testing.assert_array_equal(found.numerator, expected.numerator)
    np.testing.assert_array_equal(Problem.from_arrays(shuffled, keys, value, **OPTIONS).query, query)


def test_bandwidths_go_by_the_columns_of_the_keys(table):
    query, key, value = table
    expected = pool(query[:, [2, 0, 1]], key[:, [2, 0, 1]], value, bandwidth=[20.0, 0.5, 3.0])
    found = pool(frame(pandas, query), frame(pandas, key, order="cab"), value, bandwidth=[20.0, 0.5, 3.0])
    np.testing.assert_array_equal(found, expected)


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
    np.testing.assert_array_equal(pool(query, key, value), pool(query.to_numpy(), key.to_numpy(), value))
    with pytest.raises(ValueError, match="columns of query"):
        pool(query, key[["b", "a"]].set_axis(["b", "a", "a"], axis=1), value)


def test_columns_without_names_go_by_position(table):
    query, key, value = table
    expected = pool(query, key, value, **OPTIONS)
    np.testing.assert_array_equal(pool(query, frame(pandas, key), value, **OPTIONS), expected)
    np.testing.assert_array_equal(pool(frame(polars, query), key, value, **OPTIONS), expected)
    np.testing.assert_array_equal(pool(pandas.DataFrame(query), frame(pandas, key), value, **OPTIONS), expected)
    numbered = pandas.DataFrame(query)[[2, 0, 1]]  # these are labels all the same
    np.testing.assert_array_equal(pool(numbered, pandas.DataFrame(key), value, **OPTIONS), expected)


def test_columns_of_chunks_have_names_too(table, tmp_path):
    pytest.importorskip("pyarrow", reason="streams of Arrow need the extra 'arrow'")
    query, key, value = table
    chunks = open_chunks(frame(pandas, key).assign(y=value), target="y")
    expected = pool(query, key, value, **OPTIONS)
    np.testing.assert_allclose(pool(frame(pandas, query, order="bca"), chunks, **OPTIONS), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"columns of query .*new are \['x'\]"):
        pool(frame(pandas, query, "abx", "abx"), chunks, **OPTIONS)
    np.save(tmp_path / "t.npy", np.column_stack([key, value]))
    matrix = open_chunks(tmp_path / "t.npy", target="3")  # whose columns are called by their places
    np.testing.assert_allclose(pool(frame(pandas, query), matrix, **OPTIONS), expected, rtol=1e-12)
