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

pyarrow = pytest.importorskip("pyarrow", reason="Parquet and Arrow need the extra 'arrow'")

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


@pytest.mark.parametrize("dtype", ["<i8", ">i8", "<u8", ">u8"])
def test_arrays_and_chunks_of_integers(dtype):
    """The remedy, differences of integers, gives the exact answer."""
    numbers, y = np.array([BIG, BIG + 1, BIG + 2], dtype=dtype), [1.0, 2.0, 4.0]
    for call in (
        lambda: pool([0.0], numbers, y),
        lambda: pool([0.0], open_chunks([(numbers, y)])),
        lambda: pool([[0.0, 0.0]], open_chunks(np.c_[numbers * 0, numbers], y)),
    ):
        with pytest.raises(ValueError, match=rf"key.*the integer {BIG + 1}(?s:.*){REMEDY}"):
            call()
    key = numbers - numbers[0]
    assert pool(key[1:2], key, y, bandwidth=0.1) == pytest.approx(2.0, rel=1e-15)


def decimals(n):
    return [Decimal(n), Decimal(0), Decimal(1)]


# Tables with an integer in their first cell. Of integers and floats NumPy makes floats, in which it is rounded already.
TABLES = {
    "list": lambda n: [[n], [0], [1]],
    "array": lambda n: np.array([[n], [0], [1]]),
    "objects": lambda n: np.array([[n], [0], [1]], dtype=object),
    "nullable": lambda n: pandas.DataFrame({"a": pandas.array([n, 0, 1], dtype="Int64"), "b": 0.5}),
    "arrow": lambda n: pandas.DataFrame({"a": pandas.array([n, 0, 1], dtype=pandas.ArrowDtype(pyarrow.int64()))}),
    "decimals": lambda n: np.array(decimals(n))[:, None],
    "decimals of arrow": lambda n: pandas.DataFrame(
        {"a": pandas.Series(decimals(n), dtype=pandas.ArrowDtype(pyarrow.decimal128(20, 0)))}
    ),
    "decimals of polars": lambda n: polars.DataFrame({"a": decimals(n)}, schema={"a": polars.Decimal(20, 0)}),
}
for library in (pandas, polars):
    TABLES |= {
        f"floats, {library.__name__}": lambda n, of=library: of.DataFrame({"a": [n, 0, 1], "b": [0.5, 1.5, 2.5]}),
        f"text, {library.__name__}": lambda n, of=library: of.DataFrame({"a": [n, 0, 1], "c": ["u", "v", "u"]}),
        f"decimals and text, {library.__name__}": lambda n, of=library: of.DataFrame({"a": decimals(n), "c": [*"uvu"]}),
    }


@pytest.mark.parametrize("name", TABLES)
def test_estimators_and_tables(name):
    big, fine = TABLES[name](BIG + 1), TABLES[name](BIG)
    smoothing = 0.1 if "text" in name else None
    for make in (NadarayaWatsonRegressor, NadarayaWatsonClassifier):
        model = make(bandwidth=1.0, smoothing=smoothing)
        for call in (lambda: model.fit(big, [0, 1, 1]), lambda: model.fit(fine, [0, 1, 1]).predict(big)):  # noqa: B023
            with pytest.raises(ValueError, match=f"X.* holds the integer {BIG + 1} .*{REMEDY}"):
                call()
    if "floats" in name:
        for call in (lambda: pool(fine, big, [0, 1, 1]), lambda: pool(fine, open_chunks(big, [0.0, 1.0, 1.0]))):
            with pytest.raises(ValueError, match=f"the integer {BIG + 1}"):
                call()
    for y in ([0, BIG + 1, 1], [0.5, BIG + 1, 1]):
        with pytest.raises(ValueError, match=f"y holds the integer {BIG + 1}"):
            LocalLinearRegressor(bandwidth=1.0).fit([[0], [1], [2]], y)
    exact = [Decimal(2**60), Decimal("6.02214076e23"), Decimal("0.5")]  # the second is a measurement
    assert NadarayaWatsonRegressor(bandwidth=1.0).fit(pandas.DataFrame({"t": exact}), [0, 1, 2]).key_[0, 0] == 2**60


@pytest.fixture
def files(tmp_path):
    """Files whose column `a` holds an integer that is too large, in row 1."""
    columns = {"a": np.array([0, BIG + 1, 2]), "y": np.array([0.5, 1.5, 2.5])}
    np.save(tmp_path / "plain.npy", np.c_[columns["a"], columns["a"]])
    np.save(tmp_path / "named.npy", pandas.DataFrame(columns).to_records(index=False))
    write_parquet(tmp_path / "rows.parquet", columns)
    return {"plain": ("0", "1"), "named": ("a", "y"), "rows": ("a", "y"), "stream": ("a", "y")}, tmp_path, columns


def test_files_and_streams(files):
    names, folder, columns = files
    for name, (key, target) in names.items():
        path = folder / f"{name}.{'parquet' if name == 'rows' else 'npy'}"
        source = pyarrow.table(columns) if name == "stream" else path
        with pytest.raises(TableError, match=f"row 1.*column '{key}'.* the integer {BIG + 1}.*{REMEDY}"):
            pool([0.0], open_chunks(source, target=target, features=[key]))
        for part in open_chunks(source, target=target).parts() if name != "stream" else ():
            with pytest.raises(TableError, match=f"the integer {BIG + 1}"):
                list(part)
        for memory in ((), ("--memory", "1MiB")) if name != "stream" else ():
            said = refused("fit", source, "--target", target, *memory)
            assert [part for part in (f"column '{key}'", f"the integer {BIG + 1}", REMEDY) if part not in said] == []


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
