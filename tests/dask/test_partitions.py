"""Parts of chunks: their concatenation is the whole, they travel by name, and errors still say where."""

import pickle

import numpy as np
import pandas
import pytest

da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")
frames = pytest.importorskip("dask.dataframe", reason="clusters need the extra 'dask'")
pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
import dask
from numpy.testing import assert_allclose, assert_array_equal
from pyarrow import parquet

import kernpool
from kernpool import ExtrapolationWarning, NadarayaWatsonRegressor, open_chunks
from kernpool.data import TableError
from tests.support.partitions import of_partitions

pool = of_partitions(kernpool.pool)

RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(5000, 4))
BYTES_OF_A_REFERENCE = 4000


def rows_of(chunks):
    parts = [np.column_stack([c.key, c.value, np.ones(len(c.key)) if c.weight is None else c.weight]) for c in chunks]
    return np.concatenate(parts)


def parquet_folder(tmp_path, groups=700):
    for i, part in enumerate(np.array_split(TABLE, 3)):
        table = pyarrow.table({name: part[:, j] for j, name in enumerate("abyw")})
        parquet.write_table(table, tmp_path / f"{i}.parquet", row_group_size=groups)
    return tmp_path


def npy_file(tmp_path):
    np.save(tmp_path / "table.npy", TABLE)
    return tmp_path / "table.npy"


def opened(kind, tmp_path, rows):
    if kind == "parquet":
        return open_chunks(parquet_folder(tmp_path), target="y", weight="w", rows=rows)
    if kind == "npy":
        return open_chunks(npy_file(tmp_path), target="2", weight="3", rows=rows)
    if kind == "arrays":
        return open_chunks(TABLE[:, :2], TABLE[:, 2], TABLE[:, 3], rows=rows)
    return open_chunks([(part[:, :2], part[:, 2], part[:, 3]) for part in np.array_split(TABLE, 3)], rows=rows)


@pytest.mark.parametrize("rows", [1, 500, 1500, 10_000])
@pytest.mark.parametrize("kind", ["parquet", "npy", "arrays", "list"])
def test_parts_are_the_whole_cut(kind, rows, tmp_path):
    rows = max(rows, 100) if kind != "npy" else max(rows, 50)
    chunks = opened(kind, tmp_path, rows)
    parts = [pickle.loads(pickle.dumps(part)) for part in chunks.parts()]
    assert_array_equal(np.concatenate([rows_of(part) for part in parts]), TABLE)
    assert_array_equal(rows_of(chunks), TABLE)
    assert [part.rows for part in parts] == [len(rows_of(part)) for part in parts]
    assert {part.flat for part in parts} == {True}
    assert {part.outputs for part in parts} == {1}
    assert max(len(chunk.key) for part in parts for chunk in part) <= rows


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_parts_of_files_hold_no_data(kind, tmp_path):
    parts = opened(kind, tmp_path, 1500).parts()
    assert len(parts) > 2
    assert max(len(pickle.dumps(part)) for part in parts) < BYTES_OF_A_REFERENCE


def test_row_groups_are_joined_up_to_the_rows_of_a_chunk(tmp_path):
    parts = open_chunks(parquet_folder(tmp_path), target="y", rows=1400).parts()
    assert [part.rows for part in parts] == [1400, 267, 1400, 267, 1400, 266]
    parts = open_chunks(tmp_path, target="y", rows=100).parts()
    assert [part.rows for part in parts[:3]] == [700, 700, 267]


def test_relative_names_are_found_from_another_folder(tmp_path, monkeypatch):
    parquet_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    parts = open_chunks("0.parquet", target="y").parts()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(rows_of(parts[0])) == parts[0].rows


def test_parts_name_file_row_group_row_and_column(tmp_path):
    column = np.arange(100.0)
    column[57] = np.nan
    parquet.write_table(pyarrow.table({"x": column, "y": np.ones(100)}), tmp_path / "bad.parquet", row_group_size=10)
    part = open_chunks(tmp_path / "bad.parquet", target="y", rows=20).parts()[2]
    with pytest.raises(TableError, match=r"bad\.parquet: row group 5, row 57, column 'x' is nan"):
        list(part)
    part = open_chunks(column, np.ones(100), rows=20).parts()[2]
    with pytest.raises(TableError, match="row 57 of key is nan"):
        list(part)


def test_what_goes_by_once_has_no_parts():
    with pytest.raises(TypeError, match=r"can be read only once.*give a list"):
        open_chunks(iter([([0.0], [1.0])])).parts()
    with pytest.raises(TypeError, match=r"StreamChunks cannot be cut into parts.*Parquet or \.npy"):
        open_chunks(pyarrow.table({"x": [0.0], "y": [1.0]}), target="y").parts()


def test_values_and_weights_in_memory_are_read_as_everywhere():
    """Next to keys in a Dask array, where they are cut along them."""

    key, value, weight = da.from_array(TABLE[:60, :1], chunks=25), TABLE[:60, 1], np.arange(60) % 3
    expected = pool([[0.5]], key, da.from_array(value, chunks=25), key_weight=da.from_array(weight, chunks=25))
    assert_array_equal(pool([[0.5]], key, value.tolist(), key_weight=weight.astype(object)), expected)
    hidden = np.ma.array(value, mask=weight == 1)
    for name, pairs in {
        "value": (hidden, weight),
        "key_weight": (value, np.ma.array(weight, mask=hidden.mask)),
    }.items():
        with pytest.raises(TypeError, match=f"{name} is a masked array"):
            pool([[0.5]], key, pairs[0], key_weight=pairs[1])
        with pytest.raises(TypeError, match=f"{name} is a masked array"):
            NadarayaWatsonRegressor(bandwidth=0.5).fit(key, *pairs)
    with pytest.raises(TypeError, match="value must hold real numbers"):
        pool([[0.5]], key, value.astype(str))


def test_queries_of_one_dimension_are_one_column_in_memory_and_in_dask():

    key = da.from_array(TABLE[:60, 0], chunks=25)
    model = NadarayaWatsonRegressor(bandwidth=0.5).fit(key, key**2)
    expected = model.predict(TABLE[:7, :1])
    assert_array_equal(model.predict(TABLE[:7, 0]), expected)
    assert_array_equal(model.predict(da.from_array(TABLE[:7, 0], chunks=4)).compute(), expected)


def frames_of_times():
    """Return columns of dates and durations of all sorts, by what they are called."""
    naive = pandas.Series(pandas.Timestamp("2031-03-01") + pandas.to_timedelta(np.arange(50) * 7 % 50 * 5.0, unit="h"))
    return {
        "naive": naive,
        "other units": naive.astype("datetime64[s]"),
        "a time zone": naive.dt.tz_localize("Asia/Tokyo"),
        "durations": naive - naive.min(),
        "Arrow": naive.astype("timestamp[ms][pyarrow]"),
        "days of Arrow": naive.dt.floor("D").astype("date32[pyarrow]"),
    }


@pytest.mark.parametrize("apart", [False, True], ids=["one frame", "y apart"])
@pytest.mark.parametrize("name", ["naive", "other units", "a time zone", "durations", "Arrow", "days of Arrow"])
def test_dates_of_dask_frames_are_days_as_in_memory(name, apart):

    whole = pandas.DataFrame({"when": frames_of_times()[name], "a": TABLE[:50, 0], "y": TABLE[:50, 1]})
    X, options = whole[["when", "a"]], {"bandwidth": [2.0, 1.5]}
    expected = NadarayaWatsonRegressor(**options).fit(X, whole["y"]).predict(X[:9])
    lazy = [frames.from_pandas(table, npartitions=3) for table in (X, whole["y"])] if apart else None
    given = lazy or [frames.from_pandas(whole, npartitions=3), "y"]
    model = NadarayaWatsonRegressor(**options).fit(*given)
    close = {"rtol": 1e-10, "atol": 1e-12}
    assert_allclose(model.predict(X[:9]), expected, **close)
    assert_allclose(model.predict(frames.from_pandas(X[:9], npartitions=2)).compute(), expected, **close)
    for other in (
        X.assign(when=X["a"]),
        X.assign(when=frames_of_times()["durations" if name != "durations" else "naive"]),
    ):
        with pytest.raises(ValueError, match="when the model was fitted"):
            model.predict(other[:9])
        with pytest.raises(ValueError, match="when the model was fitted"):
            model.predict(frames.from_pandas(other[:9], npartitions=1)).compute()
    with pytest.raises(ValueError, match="column 0 of X holds numbers, and it held"):
        model.predict(frames.from_pandas(X.assign(when=X["a"]), npartitions=1).to_dask_array())


@pytest.mark.parametrize("unit", ["D", "s", "ns"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
@pytest.mark.parametrize("shape", [(50,), (50, 1), (25, 2)])
def test_dates_of_dask_arrays_are_days_as_in_memory(shape, kind, unit):

    days = (np.arange(50) * 7 % 50).astype(f"{kind}[D]").reshape(shape)
    cells, y = days.astype(f"{kind}[{unit}]"), TABLE[: shape[0], 1]
    expected = NadarayaWatsonRegressor(bandwidth=4.0).fit(days.astype(float), y).predict(days[:9].astype(float))
    chunks = (7, *shape[1:])
    model = NadarayaWatsonRegressor(bandwidth=4.0).fit(da.from_array(cells, chunks=chunks), y)
    for asked in (cells[:9], da.from_array(cells[:9], chunks=(4, *shape[1:])), days[:9].astype(f"{kind}[s]")):
        assert_allclose(np.asarray(model.predict(asked)), expected, rtol=1e-10)
    other = {"M8": "m8", "m8": "M8"}[kind]
    for wrong in (days.astype(float), days.astype(f"{other}[D]" if kind == "m8" else float)):
        with pytest.raises(ValueError, match="when the model was fitted"):
            model.predict(da.from_array(wrong, chunks=chunks))
    numbers = NadarayaWatsonRegressor(bandwidth=4.0).fit(da.from_array(days.astype(float), chunks=chunks), y)
    with pytest.raises(ValueError, match=r"column 0 of X holds .*, and it held numbers"):
        numbers.predict(da.from_array(cells, chunks=chunks))


def test_dates_are_refused_where_no_model_keeps_their_kind():

    table = pandas.DataFrame({"when": frames_of_times()["naive"], "y": TABLE[:50, 1]})
    lazy = frames.from_pandas(table, npartitions=2)
    for call in (
        lambda: pool([[1.0]], lazy, target="y"),
        lambda: NadarayaWatsonRegressor(bandwidth=1.0).fit(lazy, "when"),
        lambda: NadarayaWatsonRegressor(bandwidth=1.0).fit(lazy.assign(a=1.0)[["a"]], lazy["when"]),
    ):
        with pytest.raises((TypeError, TableError), match="convert dates to days"):
            call()
    missing = frames.from_pandas(table.assign(when=table["when"].where(table.index != 3)), npartitions=2)
    model = NadarayaWatsonRegressor(bandwidth=1.0)
    with pytest.raises(ValueError, match="column 'when' of X is missing"):
        model.fit(missing, "y").predict(table[["when"]])


def test_decimals_of_arrow_are_numbers():

    numbers = np.arange(40) / 4
    table = pandas.DataFrame({"a": numbers, "y": TABLE[:40, 1]})
    decimals = table.assign(a=table["a"].astype(pandas.ArrowDtype(pyarrow.decimal128(8, 2))))
    expected = pool([[1.5]], frames.from_pandas(table, npartitions=2), target="y")
    assert_array_equal(pool([[1.5]], frames.from_pandas(decimals, npartitions=2), target="y"), expected)


@pytest.mark.parametrize("bandwidth", [0.25, "scott"])
def test_lazy_queries_warn_of_extrapolation_when_they_are_computed(bandwidth):

    key = da.from_array(TABLE[:90, :1], chunks=40)
    model = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(key, key[:, 0] ** 2)
    far = model.predict(da.from_array(np.array([[0.0], [50.0]]), chunks=1))  # nothing is computed
    inside = model.predict(key[:5])
    with dask.config.set(scheduler="synchronous"):
        inside.compute()
        with pytest.warns(ExtrapolationWarning, match="column 0 is 50"):
            far.compute()
    with pytest.warns(ExtrapolationWarning, match="column 0 is 50"):
        model.predict([[0.0], [50.0]])
