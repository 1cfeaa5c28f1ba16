"""The command line on tables in chunks: the numbers of a table in memory, and files that are whole or not there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import load_model, pool
from kernpool.cli import main
from kernpool.cli.options import number_of_bytes
from kernpool.data.chunks.base import FEWEST_ROWS
from kernpool.execution.progress import bar
from tests.support.parquet import write_parquet

pa = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'arrow'")
parquet = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra 'arrow'")

# One in this process, or a real one, in which something happens half-way.
SCRIPT = """
import os, signal, sys
from kernpool.cli import predict as chunked_commands
from kernpool.estimators import persistence
from kernpool.cli.main import main
from kernpool.estimators import stored_rows
{half_way}
sys.exit(main(sys.argv[1:]))
"""
KILLED_IN_FIT = """
from kernpool.data.chunks.base import Chunks
from kernpool.data.chunks.parquet import ParquetChunks
whole = ParquetChunks.__iter__
def some(self):
    for number, chunk in enumerate(whole(self)):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        yield chunk
ParquetChunks.__iter__ = some
"""
KILLED_IN_SAVE = """
persistence.json.dumps = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""
KILLED_IN_PREDICT = """
before = chunked_commands._predicted
def some(*parts):
    for number, block in enumerate(before(*parts)):
        if number == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        yield block
chunked_commands._predicted = some
"""


def run(*arguments, cwd, half_way=""):
    command = [sys.executable, "-c", SCRIPT.format(half_way=half_way), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, check=False)


def visible(folder):
    return sorted(path.name for path in Path(folder).iterdir() if not path.name.startswith("."))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder, generator = tmp_path_factory.mktemp("tables"), np.random.default_rng(0)
    a, b = generator.normal(size=(2, 5000))
    columns = {"b": b, "y": np.sin(a) + b, "a": a, "note": ["text"] * 5000}
    write_parquet(folder / "big.parquet", columns, row_group_size=700)
    queries = generator.normal(size=(5 * FEWEST_ROWS, 2))
    parquet.write_table(
        pa.table({"more": queries[:, 0], "b": queries[:, 1], "a": queries[:, 0]}), folder / "new.parquet"
    )
    expected = pool(queries, np.c_[a, b], columns["y"], bandwidth=0.5)
    return folder, queries, expected


@pytest.fixture
def folder(tables, tmp_path):
    for name in ("big.parquet", "new.parquet"):
        os.link(tables[0] / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def few_rows(monkeypatch):
    """The least memory makes chunks of few rows."""
    monkeypatch.setattr("kernpool.data.chunks.base.rows_per_chunk", lambda *_: FEWEST_ROWS)
    monkeypatch.setattr("kernpool.data.chunks.parquet.rows_per_chunk", lambda *_: FEWEST_ROWS)


FIT = (
    "fit",
    "big.parquet",
    "--target",
    "y",
    "--degree",
    "0",
    "--features",
    "a,b",
    "--bandwidth",
    "0.5",
    "--memory",
    "1MiB",
)


@pytest.fixture
def fitted(folder, monkeypatch, few_rows):
    monkeypatch.chdir(folder)
    assert main([*FIT, "--model", "model", "--quiet"]) == 0
    return folder


def read(path):
    if path.suffix == ".parquet":
        table = parquet.read_table(path)
        assert table.column_names == ["y"]
        return table["y"].to_numpy()
    return np.loadtxt(path, skiprows=1)


@pytest.mark.parametrize("suffix", ["parquet", "csv", "tsv"])
def test_predictions_are_those_of_the_rows_in_memory(suffix, fitted, tables, capsys):
    *_, expected = tables
    command = ["predict", "model", "new.parquet", "--memory", "1MiB", "--quiet", "--out", f"out.{suffix}"]
    assert main(command) == 0
    assert_allclose(read(fitted / f"out.{suffix}"), expected, rtol=1e-11, atol=1e-13)
    assert main(command) == 1  # it is there already
    assert main([*command, "--force"]) == 0
    assert visible(fitted) == ["big.parquet", "model", "new.parquet", f"out.{suffix}"]
    assert main(["predict", "model", "new.parquet", "--quiet", "--out", f"whole.{suffix}"]) == 0  # queries at once
    assert_allclose(read(fitted / f"whole.{suffix}"), expected, rtol=1e-11, atol=1e-13)
    if suffix == "csv":
        capsys.readouterr()
        assert main(["predict", "model", "new.parquet", "--memory", "1MiB"]) == 0
        assert capsys.readouterr().out == (fitted / "out.csv").read_text()


def test_fit_says_what_it_searched_on(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("kernpool.estimators.stored_rows.DEFAULT_SEARCH_ROWS", 100)
    (folder / "many").mkdir()
    os.link("big.parquet", "many/0.parquet")
    (folder / "many" / ".1.x.parquet").write_bytes(b"half")  # of a file that is being written
    command = ["fit", "many", "--target", "y", "--features", "a,b", "--memory", "2GiB", "--model", "model"]
    assert main(command) == 0
    report = capsys.readouterr().err
    assert "rows       5000, read in chunks" in report
    assert "'regularised' on a sample of 100 of 5000 rows (random_state=0), then times " in report
    assert "(of the rows searched on)" in report
    model = load_model("model")
    assert f"bandwidth  a {model.bandwidth_[0]:.6g}, b {model.bandwidth_[1]:.6g}" in report
    assert main(["info", "model"]) == 0
    shown = capsys.readouterr().out
    assert '"rows": 5000' in shown
    assert str((folder / "many").resolve()) in shown
    assert "on a sample of 100" in shown


def test_the_bar_shows_rows_and_starts_again(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("kernpool.execution.progress.time.monotonic", lambda: now[0])
    listener = bar("fitting", unit="rows")
    for now[0], done in ((100.0, 1000), (200.0, 4000), (201.0, 1000), (203.0, 2000)):
        listener(done, 4000)
    first, _, last = capsys.readouterr().err.split("\r\033[K")[1:]
    assert first == f"fitting [{'#' * 8}{'.' * 22}]  25%, 1,000 of 4,000 rows, 5 min 0 s left"
    assert last.endswith("50%, 2,000 of 4,000 rows, 2 s left")


def test_rows_are_reported(fitted, monkeypatch):
    from kernpool.execution import report_progress

    seen = []
    with report_progress(lambda done, total: seen.append((done, total))):
        assert main(["predict", "model", "new.parquet", "--memory", "1MiB", "--quiet", "--out", "o.csv"]) == 0
    sizes = {"512MiB": 512 << 20, "1.5GB": 1_500_000_000, "3000000": 3_000_000, "2 gib": 2 << 30}
    assert {text: number_of_bytes(text) for text in sizes} == sizes
    total = 5 * FEWEST_ROWS
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert {all_rows for _, all_rows in seen} == {total}


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # of one of 4096 rows
def test_a_process_killed_half_way(folder):
    small = f"from kernpool.data.chunks import parquet\nparquet.rows_per_chunk = lambda *_: {FEWEST_ROWS}\n"
    fit = [*FIT[:-4], "--bandwidth", "scott", *FIT[-2:], "--quiet"]
    predict = ["--memory", "1MiB", "--quiet"]
    for code in (KILLED_IN_FIT, KILLED_IN_SAVE):
        done = run(*fit, "--model", "model", cwd=folder, half_way=small + code)
        assert done.returncode == -signal.SIGKILL
        assert visible(folder) == ["big.parquet", "new.parquet"]
    for model in ("model", "other"):
        assert main_in(folder, *fit, "--model", model) == 0
    done = run(
        "predict",
        "model",
        "new.parquet",
        "--out",
        "out.parquet",
        *predict,
        cwd=folder,
        half_way=small + KILLED_IN_PREDICT,
    )
    assert done.returncode == -signal.SIGKILL
    assert visible(folder) == ["big.parquet", "model", "new.parquet", "other"]
    for name in ("out.parquet", "again.parquet"):
        assert main_in(folder, "predict", "model", "new.parquet", "--out", name, *predict) == 0
    assert (folder / "out.parquet").read_bytes() == (folder / "again.parquet").read_bytes()


def main_in(folder, *arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return main([str(argument) for argument in arguments])


def test_a_disk_that_gets_full_leaves_what_was_there(fitted, monkeypatch, capsys):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    command = ["predict", "model", "new.parquet", "--memory", "1MiB", "--out", "out.parquet", "--quiet"]
    assert main(command) == 0
    before = Path("out.parquet").read_bytes()
    monkeypatch.setattr(parquet.ParquetWriter, "write_table", full)
    assert main([*command, "--force"]) == 1
    assert "out.parquet: No space left on device; nothing was written" in capsys.readouterr().err
    assert Path("out.parquet").read_bytes() == before
    assert sorted(path.name for path in fitted.iterdir()) == ["big.parquet", "model", "new.parquet", "out.parquet"]
