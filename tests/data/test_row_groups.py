"""Row groups of Parquet files that are out of reach of all queries: not read, and without effect on the answer."""

from datetime import date, timedelta

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import NadarayaWatsonRegressor, make_kernel, open_chunks, pool
from kernpool.data import TableError
from kernpool.data.chunks import parquet as chunks_of_parquet
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
    rows, checked = [0], chunks_of_parquet._checked_columns

    def counted(batch, *place):
        rows[0] += batch.num_rows
        return checked(batch, *place)

    monkeypatch.setattr(chunks_of_parquet, "_checked_columns", counted)
    return rows


def table_of(generator, rows=ROWS):
    a, b = np.sort(generator.random(rows)), generator.random(rows)
    y = np.column_stack([np.sin(5 * a) + b, 1e3 * np.cos(9 * a)])
    return {"a": a, "b": b, "y": y[:, 0], "y2": y[:, 1], "w": generator.integers(0, 4, rows) * 1.0}


def assert_as_in_memory(folder, columns, query, options, targets=("y",), weight=None, features=("a", "b"), **near):
    """Compare what is pooled from a file, or a folder that is partitioned by the last column, with rows in memory."""
    path = folder / "t.parquet"
    if "part" in columns:
        parquet.write_to_dataset(pyarrow.table(columns), path, partition_cols=["part"])
    else:
        write_parquet(path, columns, row_group_size=GROUP)
    value = np.column_stack([columns[name] for name in targets])
    target, value = (targets[0], value[:, 0]) if len(targets) == 1 else (list(targets), value)
    found = pool(query, open_chunks(path, target=target, features=features, weight=weight), **options)
    key = np.column_stack([columns[name] for name in features])
    expected = pool(query, key, value, key_weight=columns.get(weight), **options)
    assert_allclose(found, expected, **{"rtol": 1e-12} | near)


@pytest.mark.parametrize(
    ("kernel", "case"),
    thinned(
        ["gaussian", "product logistic", "epanechnikov", RAISED],
        [
            {},
            {"degree": 1},
            {"empty": "nearest"},
            {"tol": 1e-6},
            {"algorithm": "brute"},
        ],
        [("gaussian", {}), ("product logistic", {}), (RAISED, {"degree": 1})],
    ),
)
@pytest.mark.parametrize(("targets", "weight"), [(("y",), None), (("y", "y2"), "w")])
def test_answers_are_those_in_memory(kernel, case, targets, weight, generator, tmp_path, read):
    options = {"kernel": kernel, "bandwidth": [0.004, 0.5], **case}
    near = max(1e-9, options.get("tol", 0) * 2000) / 1e3
    assert_as_in_memory(tmp_path, table_of(generator), QUERY, options, targets, weight, atol=near)
    infinite = kernel in ("gaussian", "product logistic")
    assert (read[0] == ROWS) == (infinite and "degree" in case)
    assert read[0] >= GROUP


def test_two_row_groups_of_twenty_are_read(generator, tmp_path, read):
    """Nothing depends on the rows of the others, not even where they are damaged."""
    columns = {"a": np.sort(generator.random(ROWS)), "y": generator.random(ROWS)}
    query, options = np.linspace(0.5, 0.51, 5), {"kernel": "epanechnikov", "bandwidth": 0.02}
    expected = pool(query, columns["a"], columns["y"], **options)
    columns["y"][:1600:50] = columns["y"][2400::50] = np.nan
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=ROWS // 20)
    assert_allclose(pool(query, open_chunks(path, target="y"), **options), expected, rtol=1e-12)
    assert read[0] <= 2 * 2 * ROWS // 20  # of two passes


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero", "nan"])
@pytest.mark.parametrize(
    ("kernel", "place"), [("gaussian", 0.5), ("epanechnikov", 0.5), ("gaussian", 9.0), ("boxcar", -3)]
)
@pytest.mark.filterwarnings("ignore::kernpool.EmptyWindowWarning")
def test_where_nothing_is_near(kernel, place, empty, generator, tmp_path):
    """A gap in the keys that is many bandwidths wide, and queries beyond them; some queries have neighbours."""
    columns = table_of(generator)
    columns["a"] = np.where(columns["a"] < 0.5, columns["a"] - 0.4, columns["a"] + 0.4)
    query = np.array([[place, 0.5], [place + 0.01, 0.2], [0.05, 0.5]])
    for some in (query, query[:2]):
        options = {"kernel": kernel, "bandwidth": [0.002, 0.5], "empty": empty}
        assert_as_in_memory(tmp_path, columns, some, options, rtol=1e-10)


def test_values_that_are_far_larger_out_of_reach(generator, tmp_path, read):
    """A billionth of a billionth of the weight matters if it is that of values of 1e40."""
    columns = table_of(generator)
    columns["y"] = np.where(np.abs(columns["a"] - 0.33) < 0.03, 1e40, columns["y"])
    assert_as_in_memory(tmp_path, columns, QUERY, {"bandwidth": [0.01, 0.5], "algorithm": "brute"})
    assert read[0] == ROWS


def test_a_partitioned_folder(generator, tmp_path, read):
    columns = table_of(generator) | {"part": np.arange(ROWS) % 4 * 1.0}
    query, options = (
        np.column_stack([QUERY[:, 0], np.full(25, 2.0)]),
        {"kernel": "epanechnikov", "bandwidth": [0.05, 0.5]},
    )
    assert_as_in_memory(tmp_path, columns, query, options, features=["a", "part"])
    assert read[0] == ROWS // 4


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_rows_without_weight(weight, generator, tmp_path, read):
    """Where all rows in reach, or all others, have no weight."""
    columns = table_of(generator)
    inside = np.abs(columns["a"] - 0.5) < 0.2
    columns["w"] = np.where(inside, weight, 1.0 - weight)
    for kernel in ("gaussian", "epanechnikov"):
        options = {"kernel": kernel, "bandwidth": [0.004, 0.5], "empty": "zero"}
        assert_as_in_memory(tmp_path, columns, QUERY, options, weight="w", rtol=1e-9)


DAY = date(2024, 1, 1)
DAYS = [DAY + timedelta(days=i) for i in range(1000)]
TYPES = {
    "int8": np.arange(1000) // 8 - 62,
    "uint64": np.arange(1000).astype(np.uint64),
    "float32": np.arange(1000, dtype=np.float32),
    "duration": pyarrow.array(np.arange(1000), pyarrow.duration("s")),
    "date32": DAYS,
    "timestamp": pyarrow.array(DAYS).cast(pyarrow.timestamp("ms")),
    "with a time zone": pyarrow.array(DAYS).cast(pyarrow.timestamp("us", "Asia/Tokyo")),
}


@pytest.mark.parametrize("kind", TYPES)
def test_ranges_are_those_of_the_columns_as_they_are_read(kind, generator, tmp_path, read):
    path = write_parquet(tmp_path / "t.parquet", {"a": TYPES[kind], "y": generator.random(1000)}, row_group_size=50)
    key = np.concatenate([chunk.key for chunk in open_chunks(path, target="y")])
    h = 0.06 * np.ptp(key)
    query = key[-3:]
    model = NadarayaWatsonRegressor(kernel="epanechnikov", bandwidth=h).fit(open_chunks(path, target="y"))
    read[0] = 0
    found = model.source_.reduce(model.smoother_.recipe, query)
    value = parquet.read_table(path)["y"].to_numpy()
    assert_allclose(
        found.state.finalize()[:, 0], pool(query, key, value, kernel="epanechnikov", bandwidth=h), rtol=1e-12
    )
    assert read[0] == 100


def test_half_floats_whose_statistics_arrow_cannot_read(generator, tmp_path):
    columns = table_of(generator) | {"a": np.arange(ROWS).astype(np.float16)}
    assert_as_in_memory(tmp_path, columns, [[3.0, 0.5]], {"bandwidth": [0.3, 2.0], "kernel": "boxcar"})


def test_errors_name_the_row_of_the_file(generator, tmp_path):
    columns = table_of(generator)
    place = int(np.searchsorted(columns["a"], 0.51))
    columns["y"][place] = np.nan
    path = write_parquet(tmp_path / "t.parquet", columns, row_group_size=GROUP)
    with pytest.raises(TableError, match=f"row group {place // GROUP}, row {place}, column 'y'"):
        pool(QUERY, open_chunks(path, target="y", features=["a", "b"]), bandwidth=[0.004, 0.5])
