"""Parquet files sorted by a column, and predictions of a model of such a file, which read a part of it."""

import json
from datetime import date, timedelta

import numpy as np
import pytest

from kernpool import pool
from kernpool.data.chunks.base import FEWEST_ROWS
from tests.support.commands import kernpool
from tests.support.parquet import write_parquet

pyarrow = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
from pyarrow import parquet

GROUP = 100


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr("kernpool.cli.sort.BATCH_ROWS", GROUP)


def columns_of(generator, rows=5000):
    return {
        "a": generator.random(rows),
        "b": generator.integers(0, 40, rows),
        "day": pyarrow.array([date(2024, 1, 1) + timedelta(days=int(i)) for i in generator.integers(0, 900, rows)]),
        "note": [f"row {i}" for i in range(rows)],
        "y": generator.random(rows),
    }


def rows_of(table):
    return sorted(zip(*(column.to_pylist() for column in table.itercolumns()), strict=True))


@pytest.mark.parametrize("memory", [(), ("--memory", "1MiB")])
@pytest.mark.parametrize("by", ["a", "b", "day"])
def test_the_rows_are_the_same_and_sorted(by, memory, generator, tmp_path, monkeypatch):
    monkeypatch.setattr("kernpool.cli.sort.rows_per_chunk", lambda *_: FEWEST_ROWS)
    before = write_parquet(tmp_path / "t.parquet", columns_of(generator))
    done = kernpool("sort", before, "--by", by, "--out", tmp_path / "s.parquet", *memory, "--json")
    assert done.returncode == 0, done.stderr
    table, file = parquet.read_table(tmp_path / "s.parquet"), parquet.ParquetFile(tmp_path / "s.parquet")
    assert table.schema == parquet.read_schema(before)
    assert rows_of(table) == rows_of(parquet.read_table(before))
    assert table[by].to_pylist() == sorted(table[by].to_pylist())
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert max(sizes) == GROUP
    assert json.loads(done.stdout) == {"out": str(tmp_path / "s.parquet"), "rows": 5000, "row_groups": len(sizes)}


def test_a_partitioned_folder(generator, tmp_path):
    columns = columns_of(generator) | {"part": np.arange(5000) % 3}
    parquet.write_to_dataset(pyarrow.table(columns), tmp_path / "t", partition_cols=["part"])
    done = kernpool("sort", tmp_path / "t", "--by", "a", "--out", tmp_path / "s.parquet")
    assert done.stderr == b"5000 rows in 50 row groups, sorted by 'a'\n"
    assert rows_of(parquet.read_table(tmp_path / "s.parquet")) == rows_of(pyarrow.table(columns))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("t.parquet", "--by", "c", "--out", "s.parquet"), 1, "no column 'c'; columns are a, b, gaps, nan"),
        (("t.parquet", "--by", "gaps", "--out", "s.parquet"), 1, "column 'gaps' has missing cells"),
        (("t.parquet", "--by", "nan", "--out", "s.parquet"), 1, "column 'nan' has missing cells"),
        (("t.parquet", "--by", "b", "--out", "s.parquet"), 1, "cannot be sorted by 'b'"),
        (("t.parquet", "--by", "a", "--out", "s.csv"), 2, "--out must name a Parquet file"),
        (("t.parquet", "--by", "a", "--out", "t.parquet", "--force"), 2, "would replace what DATA"),
        (("t.parquet", "--by", "a", "--out", "there.parquet"), 1, "there.parquet exists"),
        (("t.csv", "--by", "a", "--out", "s.parquet"), 2, "sort takes a Parquet file"),
        (("no.parquet", "--by", "a", "--out", "s.parquet"), 1, "no.parquet does not exist"),
        (("bad.parquet", "--by", "a", "--out", "s.parquet"), 1, "bad.parquet cannot be sorted by 'a'"),
    ],
)
def test_what_cannot_be_sorted(arguments, code, said, tmp_path):
    columns = {"a": [2.0, 1.0], "b": [[1], [2]], "gaps": [None, 1.0], "nan": [np.nan, 1.0]}
    write_parquet(tmp_path / "t.parquet", columns)
    for name in ("there.parquet", "bad.parquet", "t.csv"):
        (tmp_path / name).write_text("no table")
    done = kernpool("sort", *arguments, cwd=tmp_path)
    assert (done.returncode, said in done.stderr.decode()) == (code, True), done.stderr
    assert not (tmp_path / "s.parquet").exists()


def test_predictions_say_how_many_rows_were_read(generator, tmp_path, monkeypatch):
    monkeypatch.setattr("kernpool.data.chunks.parquet.rows_per_chunk", lambda *_: FEWEST_ROWS)
    columns = columns_of(generator)
    write_parquet(tmp_path / "t.parquet", columns)
    assert kernpool("sort", "t.parquet", "--by", "a", "--out", "s.parquet", cwd=tmp_path).returncode == 0
    options = ("--target", "y", "--features", "a,b", "--bandwidth", "0.002,5", "--memory", "1MiB", "--model", "m")
    assert kernpool("fit", "s.parquet", *options, cwd=tmp_path).returncode == 0
    key = np.column_stack([columns["a"], columns["b"]])
    for rows, width, passes in ((50, 0.02, ""), (FEWEST_ROWS + 9, 0.02, " in 2 passes over them"), (50, 1.0, None)):
        query = np.column_stack([generator.uniform(0.5, 0.5 + width, rows) % 1, generator.integers(0, 40, rows)])
        write_parquet(tmp_path / "q.parquet", {"a": query[:, 0], "b": query[:, 1]})
        asked = ("predict", "m", "q.parquet", "--memory", "1MiB", "--out", "p.parquet", "--force")
        done, as_json = kernpool(*asked, cwd=tmp_path), kernpool(*asked, "--json", cwd=tmp_path)
        found = parquet.read_table(tmp_path / "p.parquet")["y"].to_numpy()
        np.testing.assert_allclose(found, pool(query, key, columns["y"], bandwidth=[0.002, 5.0]), rtol=1e-12)
        notes = json.loads(as_json.stdout)["notes"]
        assert done.stderr.decode() == "".join(f"note       {note}\n" for note in notes)
        if passes is None:
            assert notes == []
        else:
            (note,) = notes
            read, of = (int(word) for word in note.split() if word.isdecimal() and int(word) > 2)
            assert (read < of / 5, of % 5000, note.endswith(f"training rows were read{passes}")) == (True, 0, True)
