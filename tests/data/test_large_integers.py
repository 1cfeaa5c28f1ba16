"""Integers that float64 would round are refused, wherever they come from; those that it holds are taken."""

from decimal import Decimal

import numpy as np
import pandas
import polars
import pytest

from kernpool import (
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    open_chunks,
    pool,
    pooling_weights,
)
from kernpool.data import TableError
from tests.support.commands import kernpool
from tests.support.parquet import write_parquet

BIG = 2**53
INEXACT = (BIG + 1, -BIG - 1, 2**60 + 1, 2**63 - 1, 10**23, 10**30 + 1)
EXACT = (BIG, -BIG, BIG + 2, 2**60, -(2**63), 2**63, 2**70)
REMEDY = "subtract an offset"


@pytest.mark.parametrize("number", INEXACT)
@pytest.mark.parametrize("place", ["query", "key", "value"])
def test_pool_refuses_what_would_be_rounded(number, place):
    arguments = {"query": [0, 1], "key": [0, 1], "value": [0, 1]}
    for numbers in ([0, number], [0.5, number], (number, 0.5), np.array([0, number], dtype=object)):
        with pytest.raises(ValueError, match=rf"{place} holds the integer {number} .*{REMEDY}"):
            pool(**arguments | {place: numbers})
    if place != "value":
        with pytest.raises(ValueError, match=f"{place} holds the integer {number}"):
            pooling_weights([[0.5], [number]] if place == "query" else [[0]], [[number]])


@pytest.mark.parametrize("number", EXACT)
def test_pool_takes_what_is_exact(number):
    for numbers in ([number, 0], [number, 0.5], np.array([number, 0], dtype=object)):
        assert pool([0.0], [0.0, 1e9], numbers, bandwidth=1.0) == [float(number)]


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(np.int64, BIG + 1), (np.int64, -BIG - 1), (np.int64, 2**63 - 1), (np.uint64, 2**63 + 1), (np.uint64, 2**64 - 1)],
)
@pytest.mark.parametrize("order", ["<", ">"])
def test_arrays_of_integers(dtype, number, order):
    numbers = np.array([0, number, 7], dtype=np.dtype(dtype).newbyteorder(order))
    y = [1.0, 2.0, 3.0]
    for ask, message in (
        (lambda: pool([0.0], numbers, y), rf"key holds the integer {number} at index \(1,\)"),
        (lambda: pool([0.0], open_chunks([(numbers, y)])), f"row 1 of key.* the integer {number}"),
        (
            lambda: pool([[0.0, 0.0]], open_chunks(np.c_[numbers * 0, numbers], y)),
            f"column 1 of key .*the integer {number}|row 1 of key, column 1.*{number}",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            ask()


def test_differences_of_integers_are_the_remedy():
    """What the message advises gives the exact answer."""
    query, key, value = np.array([BIG + 1]), np.array([BIG, BIG + 1, BIG + 2]), [1.0, 2.0, 4.0]
    with pytest.raises(ValueError, match=REMEDY):
        pool(query, key, value, bandwidth=0.1)
    assert pool(query - key[0], key - key[0], value, bandwidth=0.1) == pytest.approx(2.0, rel=1e-15)


def frame_of(library, **columns):
    return pytest.importorskip(library, reason=f"reads what {library} makes").DataFrame(columns)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    """A frame of integers and floats is an array of floats, in which the integers are rounded already."""
    X, y = frame_of(library, a=[BIG + 1, 0, 1], b=[0.5, 1.5, 2.5]), [1.0, 2.0, 3.0]
    fine, text = frame_of(library, a=[BIG, 0, 1], b=[0.5, 1.5, 2.5]), ["u", "v", "u"]
    model, mixed = NadarayaWatsonRegressor(bandwidth=1.0), NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.1)
    big, small = (frame_of(library, a=[number, 0, 1], c=text) for number in (BIG + 1, BIG))
    for ask, words in (
        (lambda: pool(X, fine, y), "query.* holds"),
        (lambda: pool([[0.0, 0.0]], open_chunks(X, y)), ""),
        (lambda: model.fit(X, y), "X.* holds"),
        (lambda: model.fit(fine, y).predict(X), "X.* holds"),
        (lambda: mixed.fit(big, y), "column 'a' of X holds"),
        (lambda: mixed.fit(small, y).predict(big), "column 'a' of X holds"),
    ):
        with pytest.raises(ValueError, match=f"{words} .*integer {BIG + 1}"):
            ask()


def test_nullable_and_arrow_columns():
    pa = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    for dtype in ("Int64", "UInt64", pandas.ArrowDtype(pa.int64())):
        column = pandas.Series([BIG + 1, 0, 1], dtype=dtype)
        for X in (column.to_frame("a"), column.to_frame("a").assign(b=0.5)):
            with pytest.raises(ValueError, match=f"the integer {BIG + 1}"):
                NadarayaWatsonRegressor(bandwidth=1.0).fit(X, [0.0, 1.0, 2.0])
        X = column.to_frame("a").assign(c=["u", "v", "u"])
        with pytest.raises(ValueError, match=f"column 'a' of X holds the integer {BIG + 1}"):
            NadarayaWatsonRegressor(bandwidth=1.0, smoothing=0.1).fit(X, [0.0, 1.0, 2.0])


@pytest.mark.parametrize("make", [NadarayaWatsonRegressor, LocalLinearRegressor, NadarayaWatsonClassifier])
@pytest.mark.parametrize("kind", [list, np.array, lambda rows: np.array(rows, dtype=object)])
def test_estimators(make, kind):
    big, fine = kind([[BIG + 1], [0], [1]]), [[0], [1], [2]]
    with pytest.raises(ValueError, match=f"X holds the integer {BIG + 1} .*{REMEDY}"):
        make(bandwidth=1.0).fit(big, [0, 1, 1])
    model = make(bandwidth=1.0).fit(fine, [0, 1, 1])
    with pytest.raises(ValueError, match=f"X holds the integer {BIG + 1}"):
        model.predict(big)
    if make is not NadarayaWatsonClassifier:
        for y in ([0, BIG + 1, 1], [0.5, BIG + 1, 1]):
            with pytest.raises(ValueError, match=f"y holds the integer {BIG + 1}"):
                make(bandwidth=1.0).fit(fine, y)


def test_decimals_that_are_integers():
    pyarrow = pytest.importorskip("pyarrow", reason="types of Arrow need the extra 'arrow'")
    cells, other = [Decimal(0), Decimal(BIG + 1)], ["a", "b"]
    arrow = pandas.Series(cells, dtype=pandas.ArrowDtype(pyarrow.decimal128(20, 0)))
    for table in (
        pandas.DataFrame({"t": cells}), pandas.DataFrame({"t": cells, "s": other}), pandas.DataFrame({"t": arrow}),
        polars.DataFrame({"t": cells}, schema={"t": polars.Decimal(20, 0)}), np.array(cells)[:, None],
    ):  # fmt: skip
        with pytest.raises(ValueError, match=f"X holds the integer {BIG + 1}"):
            NadarayaWatsonRegressor(bandwidth=1.0).fit(table, [0.0, 1.0])
    exact = [Decimal(2**60), Decimal("6.02214076e23"), Decimal("0.5")]  # the second is a measurement
    assert NadarayaWatsonRegressor(bandwidth=1.0).fit(pandas.DataFrame({"t": exact}), [0, 1, 2]).key_[0, 0] == 2**60


def test_files_and_streams(tmp_path):
    a, y = np.array([0, BIG + 1, 2]), np.array([0.5, 1.5, 2.5])
    np.save(tmp_path / "plain.npy", np.c_[a, a])
    table = np.zeros(3, dtype=[("a", np.int64), ("y", float)])
    table["a"], table["y"] = a, y
    np.save(tmp_path / "named.npy", table)
    pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
    columns = pyarrow.table({"a": a, "y": y})
    write_parquet(tmp_path / "rows.parquet", {"a": a, "y": y})
    for source, key, target in (
        (tmp_path / "plain.npy", "0", "1"),
        (tmp_path / "named.npy", "a", "y"),
        (tmp_path / "rows.parquet", "a", "y"),
        (columns, "a", "y"),
    ):
        chunks = open_chunks(source, target=target, features=[key])
        with pytest.raises(TableError, match=f"row 1.*column '{key}'.* the integer {BIG + 1}.*{REMEDY}"):
            pool([0.0], chunks)
        for part in open_chunks(source, target=target).parts() if source is not columns else ():
            with pytest.raises(TableError, match=f"the integer {BIG + 1}"):
                list(part)


def refused(*command, stdin=""):
    """Return what a command says that fails."""
    done = kernpool(*command, stdin=stdin.encode())
    assert done.returncode == 1
    return done.stderr.decode()


STAMP = 1_700_000_000_123_456_789


@pytest.mark.parametrize("cell", [str(STAMP), f" {STAMP} ", f"+{STAMP}", f"-{STAMP}", "9" * 400])
def test_cells_of_csv(cell):
    error = refused("fit", "-", "--target", "y", stdin=f"t,y\n1,1\n{cell},2\n3,4\n")
    assert "column 't'" in error
    assert "row 1" in error or "index (1,)" in error
    assert len(cell) == 400 or (f"the integer {int(cell)}" in error and REMEDY in error)


def test_cells_that_are_exact_or_no_integers(tmp_path):
    table = f"t,y\n{2**60},1\n1.7e18,2\n1700000000123456789.5,3\n{BIG + 2},4\n"
    options = ("--target", "y", "--bandwidth", "1", "--model", tmp_path / "m")
    assert kernpool("fit", "-", *options, stdin=table.encode()).returncode == 0
    done = kernpool("predict", tmp_path / "m", "-", stdin=f"t\n{2**60}\n".encode())
    assert (done.returncode, done.stdout) == (0, b"y\n1.0\n")
    assert f"the integer {2**60 + 1}" in refused("predict", tmp_path / "m", "-", stdin=f"t\n{2**60 + 1}\n")


@pytest.mark.parametrize("memory", [(), ("--memory", "1MiB")])
@pytest.mark.parametrize("suffix", ["parquet", "npy"])
def test_tables_of_other_formats(suffix, memory, tmp_path):
    t, y = np.array([0, STAMP, STAMP + 1]), np.array([0, 1, 2])
    if suffix == "npy":
        table = np.zeros(3, dtype=[("t", np.int64), ("y", np.int64)])
        table["t"], table["y"] = t, y
        np.save(tmp_path / "t.npy", table)
    else:
        write_parquet(tmp_path / "t.parquet", {"t": t, "y": y})
    error = refused("fit", tmp_path / f"t.{suffix}", "--target", "y", *memory)
    assert f"the integer {STAMP}" in error
    assert "column 't'" in error
    assert REMEDY in error
