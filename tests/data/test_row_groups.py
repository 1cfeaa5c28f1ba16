"""Row groups of Parquet files that are out of reach of all queries: not read, and without effect on the answer."""

from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, make_kernel, open_chunks, pool
from kernpool.data import TableError
from kernpool.data.chunks import parquet as chunks_of_parquet
from kernpool.estimators.fitted_model import recipe_of
from tests.support.parquet import write_parquet
from tests.support.thinning import thinned

pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
from pyarrow import parquet

ROWS, GROUP = 4000, 100
QUERY = np.column_stack([np.linspace(0.5, 0.52, 25), np.linspace(0.1, 0.9, 25)])
RAISED = make_kernel("raised", lambda u: np.where(u < 2, 1 + np.cos(np.pi * u / 2), 0.0), support=2.0)


@pytest.fixture
def read(monkeypatch):
    """Number of rows that have been read from files so far, as a list of one number."""
    rows, add = [0], chunks_of_parquet._Collected.add

    def counted(self, batch, *rest):
        rows[0] += batch.num_rows
        return add(self, batch, *rest)

    monkeypatch.setattr(chunks_of_parquet._Collected, "add", counted)
    return rows


def table_of(generator, rows=ROWS):
    a, b = np.sort(generator.random(rows)), generator.random(rows)
    y = np.column_stack([np.sin(5 * a) + b, 1e3 * np.cos(9 * a)])
    return {"a": a, "b": b, "y": y[:, 0], "y2": y[:, 1], "w": generator.integers(0, 4, rows) * 1.0}


def in_memory(columns, targets=("y",), weight=None, features=("a", "b")):
    value = np.column_stack([columns[name] for name in targets])
    value = value[:, 0] if len(targets) == 1 else value
    return np.column_stack([columns[name] for name in features]), value, columns.get(weight)


@pytest.mark.parametrize(
    ("kernel", "case"),
    thinned(
        ["gaussian", "laplace", "logistic", "epanechnikov", "boxcar", RAISED],
        [
            {},
            {"degree": 1},
            {"composition": "product"},
            {"empty": "nearest"},
            {"tol": 1e-6},
            {"algorithm": "brute"},
        ],
        [("gaussian", {}), ("laplace", {"composition": "product"}), (RAISED, {"degree": 1})],
    ),
)
@pytest.mark.parametrize(("targets", "weight"), [(("y",), None), (("y", "y2"), "w")])
def test_answers_are_those_in_memory(kernel, case, targets, weight, generator, tmp_path, read):
    columns = table_of(generator)
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=GROUP)
    options = {"kernel": kernel, "bandwidth": [0.004, 0.5], **case}
    key, value, weights = in_memory(columns, targets, weight)
    target = targets[0] if len(targets) == 1 else list(targets)
    chunks = open_chunks(path, target=target, features=["a", "b"], weight=weight)
    found = pool(QUERY, chunks, **options)
    expected = pool(QUERY, key, value, key_weight=weights, **options)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=max(1e-9, options.get("tol", 0) * 2000) / 1e3)
    infinite = kernel in ("gaussian", "laplace", "logistic")
    assert (read[0] == ROWS) == (infinite and "degree" in case)
    assert read[0] >= GROUP


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "epanechnikov"])
def test_queries_on_a_line(kernel, generator, tmp_path, read):
    columns = table_of(generator, 60_000)
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=1000)
    query, options = np.linspace(0.3, 0.31, 5), {"kernel": kernel, "bandwidth": 0.001}
    found = pool(query, open_chunks(path, target="y", features=["a"]), **options)
    np.testing.assert_allclose(found, pool(query, columns["a"], columns["y"], **options), rtol=1e-12)
    assert read[0] < 20_000


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero", "nan"])
@pytest.mark.parametrize(
    ("kernel", "place"), [("gaussian", 0.5), ("epanechnikov", 0.5), ("gaussian", 9.0), ("boxcar", -3)]
)
@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")
def test_where_nothing_is_near(kernel, place, empty, generator, tmp_path):
    """A gap in the keys that is many bandwidths wide, and queries beyond them; some queries have neighbours."""
    columns = table_of(generator)
    columns["a"] = np.where(columns["a"] < 0.5, columns["a"] - 0.4, columns["a"] + 0.4)
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=GROUP)
    query = np.array([[place, 0.5], [place + 0.01, 0.2], [0.05, 0.5]])
    for some in (query, query[:2]):
        options = {"kernel": kernel, "bandwidth": [0.002, 0.5], "empty": empty}
        found = pool(some, open_chunks(path, target="y", features=["a", "b"]), **options)
        np.testing.assert_allclose(found, pool(some, *in_memory(columns)[:2], **options), rtol=1e-10)


def test_values_that_are_far_larger_out_of_reach(generator, tmp_path, read):
    """A billionth of a billionth of the weight matters if it is that of values of 1e40."""
    columns = table_of(generator)
    columns["y"] = np.where(np.abs(columns["a"] - 0.33) < 0.03, 1e40, columns["y"])
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=GROUP)
    options = {"bandwidth": [0.01, 0.5], "algorithm": "brute"}
    found = pool(QUERY, open_chunks(path, target="y", features=["a", "b"]), **options)
    np.testing.assert_allclose(found, pool(QUERY, *in_memory(columns)[:2], **options), rtol=1e-12)
    assert read[0] == ROWS


@pytest.mark.parametrize("lacking", [["a", "b"], ["y"], ["w"]])
def test_statistics_that_are_missing(lacking, generator, tmp_path, read):
    columns = table_of(generator)
    kept = [name for name in columns if name not in lacking]
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=GROUP, write_statistics=kept)
    found = pool(QUERY, open_chunks(path, target="y", features=["a", "b"], weight="w"), bandwidth=[0.004, 0.5])
    key, value, weight = in_memory(columns, weight="w")
    np.testing.assert_allclose(found, pool(QUERY, key, value, key_weight=weight, bandwidth=[0.004, 0.5]), rtol=1e-12)
    assert read[0] == ROWS


def test_an_unsorted_file_is_read_as_a_whole(generator, tmp_path, read):
    columns = table_of(generator)
    mixed = generator.permutation(ROWS)
    path = write_parquet(
        tmp_path / "t.parquet", {name: column[mixed] for name, column in columns.items()}, row_group_size=GROUP
    )
    found = pool(QUERY, open_chunks(path, target="y", features=["a", "b"]), bandwidth=[0.004, 0.5])
    np.testing.assert_allclose(found, pool(QUERY, *in_memory(columns)[:2], bandwidth=[0.004, 0.5]), rtol=1e-12)
    assert read[0] == ROWS


def test_a_partitioned_folder(generator, tmp_path, read):
    columns = table_of(generator) | {"part": np.arange(ROWS) % 4 * 1.0}
    parquet.write_to_dataset(pyarrow.table(columns), tmp_path / "t", partition_cols=["part"])
    query, features = np.column_stack([QUERY[:, 0], np.full(25, 2.0)]), ["a", "part"]
    options = {"kernel": "epanechnikov", "bandwidth": [0.05, 0.5]}
    found = pool(query, open_chunks(tmp_path / "t", target="y", features=features), **options)
    np.testing.assert_allclose(found, pool(query, *in_memory(columns, features=features)[:2], **options), rtol=1e-12)
    assert read[0] == ROWS // 4


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_rows_without_weight(weight, generator, tmp_path, read):
    """Where all rows in reach, or all others, have no weight."""
    columns = table_of(generator)
    inside = np.abs(columns["a"] - 0.5) < 0.2
    columns["w"] = np.where(inside, weight, 1.0 - weight)
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=GROUP)
    key, value, weights = in_memory(columns, weight="w")
    for kernel in ("gaussian", "epanechnikov"):
        options = {"kernel": kernel, "bandwidth": [0.004, 0.5], "empty": "zero"}
        found = pool(QUERY, open_chunks(path, target="y", features=["a", "b"], weight="w"), **options)
        np.testing.assert_allclose(found, pool(QUERY, key, value, key_weight=weights, **options), rtol=1e-9)


DAY = date(2024, 1, 1)
DAYS = [DAY + timedelta(days=i) for i in range(1000)]
TYPES = {
    "int8": np.arange(1000) // 8 - 62,
    "uint64": np.arange(1000).astype(np.uint64),
    "float32": np.arange(1000, dtype=np.float32),
    "bool": np.arange(1000) >= 900,
    "decimal": [Decimal(i) / 4 for i in range(1000)],
    "date32": DAYS,
    "timestamp": pyarrow.array(DAYS).cast(pyarrow.timestamp("ms")),
    "with a time zone": pyarrow.array(DAYS).cast(pyarrow.timestamp("us", "Asia/Tokyo")),
    "duration": pyarrow.array(range(1000), pyarrow.int64()).cast(pyarrow.duration("s")),
}


@pytest.mark.parametrize("kind", TYPES)
def test_ranges_are_those_of_the_columns_as_they_are_read(kind, generator, tmp_path, read):
    path = write_parquet(tmp_path / "t.parquet", {"a": TYPES[kind], "y": generator.random(1000)}, row_group_size=50)
    key = np.concatenate([chunk.key for chunk in open_chunks(path, target="y")])
    h = 0.06 * np.ptp(key)
    query = key[-3:]
    model = NadarayaWatsonRegressor(kernel="epanechnikov", bandwidth=h).fit(open_chunks(path, target="y"))
    read[0] = 0
    found = model.source_.reduce(recipe_of(model), query)
    value = parquet.read_table(path)["y"].to_numpy()
    np.testing.assert_allclose(
        found.state.finalize()[:, 0], pool(query, key, value, kernel="epanechnikov", bandwidth=h), rtol=1e-12
    )
    assert read[0] == 100


def test_a_group_with_missing_cells_is_read(generator, tmp_path):
    columns = table_of(generator)
    cells = [None if i == 7 else cell for i, cell in enumerate(columns["a"])]
    path = write_parquet(tmp_path / "t.parquet", columns | {"a": cells}, row_group_size=GROUP)
    with pytest.raises(TableError, match="row group 0, row 7, column 'a'"):
        pool(QUERY, open_chunks(path, target="y", features=["a", "b"]), bandwidth=[0.004, 0.5])


def test_errors_name_the_row_of_the_file(generator, tmp_path):
    columns = table_of(generator)
    place = int(np.searchsorted(columns["a"], 0.51))
    columns["y"][place] = np.nan
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=GROUP)
    with pytest.raises(TableError, match=f"row group {place // GROUP}, row {place}, column 'y'"):
        pool(QUERY, open_chunks(path, target="y", features=["a", "b"]), bandwidth=[0.004, 0.5])


@pytest.mark.parametrize("query", [QUERY[:, :1], np.column_stack([QUERY, QUERY])])
def test_queries_of_other_columns_are_refused_as_ever(query, generator, tmp_path):
    path = write_parquet(tmp_path / "t.parquet", table_of(generator), row_group_size=GROUP)
    with pytest.raises(ValueError, match=r"query has . column\(s\) and key has 2"):
        pool(query, open_chunks(path, target="y", features=["a", "b"]), bandwidth=0.004)
