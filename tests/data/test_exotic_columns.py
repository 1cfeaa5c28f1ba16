"""Columns of Parquet files that are no numbers, or not quite: each is read right, or one line says what it is."""

import datetime
import decimal

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor
from kernpool.cli import main
from tests.support.parquet import write_parquet

pa = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")

X, Y = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0, 5.0])
DAY = datetime.date(2020, 1, 1)
REFUSED = {
    "categories (dictionary<values=string, indices=int32, ordered=0>)": pa.array(list("abab")).dictionary_encode(),
    "string": pa.array(["1", "2", "3", "4"]),
    "large_string": pa.array(list("abcd"), pa.large_string()),
    "binary": pa.array([b"1", b"2", b"3", b"4"]),
    "list<": pa.array([[1.0], [2.0], [3.0], [4.0]]),
    "struct<a: int64>": pa.array([{"a": 1}] * 4),
    "date32[day]": pa.array([DAY] * 4),
    "timestamp[ns]": pa.array([1700000000123456789] * 4, pa.timestamp("ns")),
    "time64[us]": pa.array([datetime.time(1)] * 4),
    "duration[ns]": pa.array([86400 * 10**9 * days for days in (1, 2, 3, 4)], pa.duration("ns")),
    "null": pa.nulls(4),
}
READ = {
    "bool": (pa.array([True, False, True, True]), [1.0, 0.0, 1.0, 1.0]),
    "halffloat": (pa.array(X.astype(np.float16)), X),
    "float": (pa.array(X.astype(np.float32)), X),
    "uint8": (pa.array(X.astype(np.uint8)), X),
    "int64": (pa.array(X.astype(np.int64)), X),
    "uint64": (pa.array(X.astype(np.uint64)), X),
    "dictionary": (pa.array(X).dictionary_encode(), X),  # of numbers, which Parquet stores as numbers
    "decimal": (pa.array([decimal.Decimal(f"{x:.2f}") for x in X]), X),
    "chunked": (pa.chunked_array([X[:1], X[1:]]), X),
}
DAYS = {  # since 1970, or of a duration
    "date32[day]": [float((DAY - datetime.date(1970, 1, 1)).days)] * 4,
    "timestamp[ns]": [1700000000123456789 / 86400e9] * 4,
    "duration[ns]": [1.0, 2.0, 3.0, 4.0],
}
FIT = ["fit", "t.parquet", "--target", "y", "--degree", "0", "--bandwidth", "1", "--quiet", "--model", "model"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def one_line(capsys):
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


def assert_predicts(model, column, capsys):
    """Compare what the command predicts with what a model of the same two columns does."""
    assert main(["predict", "model", "t.parquet"]) == 0
    found = [float(line.rpartition(",")[2]) for line in capsys.readouterr().out.splitlines()[1:]]
    frame = pa.table({"a": X, "b": column}).to_pandas()
    np.testing.assert_allclose(found, model.fit(frame, Y).predict(frame), rtol=1e-9)


@pytest.mark.parametrize("kind", REFUSED)
def test_columns_of_chunks_that_are_no_numbers(kind, capsys):
    memory = ("--memory", "1MiB")
    write_parquet("t.parquet", {"a": X, "b": REFUSED[kind], "y": Y})
    assert main([*FIT, *memory]) == 1
    error = one_line(capsys)
    assert "column 'b' holds" in error
    if kind in DAYS:
        assert "say --dates b" in error
        assert main([*FIT, *memory, "--dates"]) == 0
        assert_predicts(NadarayaWatsonRegressor(bandwidth=1), DAYS[kind], capsys)
        return
    assert kind in error or ("categories" in kind and "dictionary<" in error)
    assert "features" in error
    # what the message advises
    assert main([*FIT, *memory, "--features", "a"]) == 0
    # and as a target or a query
    assert main([*FIT[:3], "b", *FIT[4:], "--features", "a", "--force", *memory]) == 1
    error = one_line(capsys)
    assert "column 'b' holds" in error
    assert "features" not in error
    write_parquet("new.parquet", {"a": REFUSED[kind]})
    assert main(["predict", "model", "new.parquet", *memory]) == 1
    error = one_line(capsys)
    assert "column 'a' holds" in error
    assert "features" not in error


@pytest.mark.parametrize("kind", READ)
def test_columns_that_are_numbers(kind, capsys):
    column, numbers = READ[kind]
    write_parquet("t.parquet", {"a": X, "b": column, "y": Y})
    for memory in ((),) if kind == "halffloat" else ((), ("--memory", "1MiB")):  # whose statistics Arrow cannot read
        assert main([*FIT, "--force", *memory]) == 0
        assert_predicts(NadarayaWatsonRegressor(bandwidth=1), numbers, capsys)


def test_what_is_not_used_may_be_anything(capsys):
    write_parquet("t.parquet", {"a": X, "y": Y} | {str(i): c for i, c in enumerate(REFUSED.values())})
    assert main([*FIT, "--features", "a"]) == 0
    assert main(["predict", "model", "t.parquet"]) == 0
    assert len(capsys.readouterr().out.split()) == 5
