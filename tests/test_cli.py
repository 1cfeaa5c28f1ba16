"""The command line as a user meets it: a process, its output, its exit code, its files."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor
from kernpool.terminal import bar

DATA = Path(__file__).resolve().parent.parent / "examples" / "data"
needs_matplotlib = pytest.mark.skipif(not find_spec("matplotlib"), reason="pictures need the extra 'plot'")
needs_pyarrow = pytest.mark.skipif(not find_spec("pyarrow"), reason="Parquet needs the extra 'arrow'")


def kernpool(*arguments, stdin=None, cwd=None):
    command = [sys.executable, "-m", "kernpool", *map(str, arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=cwd, check=False)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engel") / "model"
    done = kernpool("fit", DATA / "engel.csv", "--target", "foodexp", "--model", folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_fit_reports_what_it_did(fitted):
    _, done = fitted
    assert done.stdout == b""  # data on standard output, and there is none
    report = done.stderr.decode()
    income, food = np.loadtxt(DATA / "engel.csv", delimiter=",", skiprows=1).T
    model = NadarayaWatsonRegressor().fit(income[:, None], food)
    for line in (
        "rows       235",
        "columns    income",
        f"bandwidth  income {model.bandwidth_[0]:.6g}",
        f"leave-one-out mean squared error  {model.loo_error_:.6g}",
        f"leave-one-out R^2                 {1 - model.loo_error_ / food.var():.6g}",
        "algorithm  reference (dense NumPy",
    ):
        assert line in report


def test_predict_to_standard_output_and_to_files(fitted, tmp_path):
    folder, _ = fitted
    (tmp_path / "new.csv").write_text("name,income\na,500\nb,1000\n")
    done = kernpool("predict", folder, tmp_path / "new.csv")
    assert done.returncode == 0, done.stderr
    income, food = np.loadtxt(DATA / "engel.csv", delimiter=",", skiprows=1).T
    expected = NadarayaWatsonRegressor().fit(income[:, None], food).predict([[500.0], [1000.0]])
    np.testing.assert_array_equal(np.loadtxt(io.BytesIO(done.stdout), skiprows=1), expected)
    assert done.stdout.startswith(b"foodexp\n")
    piped = kernpool("predict", folder, "-", stdin=b"income\n500\n1000\n")
    assert piped.stdout == done.stdout
    for name in ("out.csv", "out.tsv", "out.npy"):
        assert kernpool("predict", folder, tmp_path / "new.csv", "--out", tmp_path / name).returncode == 0
    assert (tmp_path / "out.csv").read_bytes() == done.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy")[:, 0], expected)
    again = kernpool("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert (again.returncode, b"--force" in again.stderr) == (1, True)
    assert kernpool("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--force").returncode == 0


def test_info(fitted):
    folder, _ = fitted
    description = json.loads(kernpool("info", folder).stdout)
    assert description["estimator"] == "NadarayaWatsonRegressor"
    assert description["target"] == "foodexp"
    assert description["rows"] == 235
    assert description["bandwidth"]["income"] == pytest.approx(134.378, rel=1e-5)


@pytest.mark.parametrize("suffix", ["tsv", "npy", pytest.param("parquet", marks=needs_pyarrow)])
def test_other_formats_give_the_same_fit(suffix, tmp_path, fitted):
    income, food = np.loadtxt(DATA / "engel.csv", delimiter=",", skiprows=1).T
    path, target = tmp_path / f"engel.{suffix}", "foodexp"
    if suffix == "tsv":
        np.savetxt(path, np.c_[income, food], delimiter="\t", header="income\tfoodexp", comments="", fmt="%.17g")
    elif suffix == "npy":
        np.save(path, np.c_[income, food])
        target = "1"
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"income": income, "foodexp": food}), path)
    done = kernpool("fit", path, "--target", target)
    assert b"134.378" in done.stderr


@needs_pyarrow
def test_parquet_predictions(fitted, tmp_path):
    import pyarrow.parquet as pq

    folder, _ = fitted
    done = kernpool("predict", folder, "-", "--out", tmp_path / "out.parquet", stdin=b"income\n500\n")
    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "out.parquet").column_names == ["foodexp"]


@needs_matplotlib
def test_a_picture_of_several_features(tmp_path):
    generator = np.random.default_rng(0)
    table = np.c_[generator.normal(size=(60, 2)), generator.normal(size=60)]
    np.savetxt(tmp_path / "t.csv", table, delimiter=",", header="a,b,y", comments="")
    done = kernpool("fit", tmp_path / "t.csv", "--target", "y", "--bandwidth", "0.5,2", "--plot", tmp_path / "t.png")
    assert done.returncode == 0, done.stderr
    assert b"bandwidth  a 0.5, b 2" in done.stderr
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("a,y\n1,2\n3,x\n", "row 3, column 'y' holds 'x', not a finite number"),
        ("a,y\n1,2\n,4\n", "row 3, column 'a' is empty"),
        ("a,y\n1,nan\n2,3\n", "row 2, column 'y' holds 'nan'"),
        ("a,y\n1,2\n3\n", "row 3 has 1 cells, the header has 2"),
        ("a,a\n1,2\n", "two columns have the same name"),
        ("b,c\n1,2\n", "no column 'y'; columns are 'b', 'c'"),
        ("", "is empty; the first line must name the columns"),
        ("a,y\n", "has a header and no rows"),
        ('a,y\n"1,2\n', "after row"),
        ("y\n1\n", "--features must name at least one column"),
    ],
)
def test_malformed_tables(table, message, tmp_path):
    (tmp_path / "t.csv").write_text(table)
    done = kernpool("fit", "t.csv", "--target", "y", "--model", "m", cwd=tmp_path)
    assert done.returncode in (1, 2)
    assert message in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["fit", "missing.csv", "--target", "y"], 1, "missing.csv: No such file or directory"),
        (["fit", "t.xls", "--target", "y"], 1, "unknown format 'xls'"),
        (["fit", "t.csv"], 2, "required: --target"),
        (["fit", "t.csv", "--target", "y", "--features", "a,y"], 2, "cannot predict itself"),
        (["fit", "t.csv", "--target", "y", "--features", "z"], 1, "no column 'z'"),
        (["fit", "t.csv", "--target", "y", "--kernel", "gausian"], 1, "did you mean 'gaussian'"),
        (["fit", "t.csv", "--target", "y", "--bandwidth", "wide"], 2, "--bandwidth must be loo"),
        (["fit", "t.csv", "--target", "y", "--bandwidth", "-1"], 1, "bandwidth must be positive"),
        (["fit", "t.csv", "--target", "y", "--model", "no/where"], 1, "does not exist; make it first"),
        (["fit", "t.csv", "--target", "y", "--jobs", "0"], 1, "n_jobs must be"),
        (["predict", "nothing", "t.csv"], 1, "is no kernpool model"),
        (["info", "."], 1, "has no model.json"),
        ([], 2, "a command is needed"),
        (["dance"], 2, "invalid choice"),
    ],
)
def test_wrong_usage(arguments, code, message, tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n2,3\n3,5\n")
    done = kernpool(*arguments, cwd=tmp_path)
    assert done.returncode == code
    assert message in done.stderr.decode()
    assert "Traceback" not in done.stderr.decode()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv"]


def test_the_way_out_of_a_closed_pipe(fitted):
    folder, _ = fitted
    command = f"{sys.executable} -m kernpool predict {folder} {DATA / 'engel.csv'} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stdout == b"foodexp\n"
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


def test_an_interrupt_writes_nothing_and_exits_130(tmp_path):
    generator = np.random.default_rng(0)
    np.save(tmp_path / "big.npy", generator.normal(size=(60_000, 3)))
    command = [sys.executable, "-m", "kernpool", "fit", "big.npy", "--target", "2", "--model", "m"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    time.sleep(4)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert error.endswith(b"interrupted; nothing was written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["big.npy"]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_a_bar_on_a_terminal_and_none_elsewhere(tmp_path):
    generator = np.random.default_rng(0)
    np.save(tmp_path / "data.npy", generator.normal(size=(4000, 2)))
    command = [sys.executable, "-m", "kernpool", "fit", "data.npy", "--target", "1"]
    terminal, side = os.openpty()
    process = subprocess.Popen(command, cwd=tmp_path, stderr=side)
    os.close(side)
    shown = b""
    while True:
        try:
            part = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not part:
            break
        shown += part
    assert process.wait() == 0
    assert b"fitting [" in shown
    assert b"s left" in shown
    assert b"fitting [" not in subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stderr


def test_the_bar_waits_before_it_shows(capsys):
    listener = bar("working", patience=0.0)
    time.sleep(0.11)
    listener(5, 10)
    assert "working [###############...............]  50%" in capsys.readouterr().err
    patient = bar("working", patience=60.0)
    patient(5, 10)
    assert capsys.readouterr().err == ""


def test_missing_extras_are_named(tmp_path, monkeypatch, capsys):
    from kernpool.cli import main

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "t.parquet").write_bytes(b"")
    assert main(["fit", str(DATA / "engel.csv"), "--target", "foodexp", "--plot", str(tmp_path / "p.png")]) == 1
    assert "pip install 'kernpool[plot]'" in capsys.readouterr().err
    assert main(["fit", str(tmp_path / "t.parquet"), "--target", "y"]) == 1
    assert "pip install 'kernpool[arrow]'" in capsys.readouterr().err


def test_version():
    import kernpool as package

    assert kernpool("--version").stdout.decode().strip() == package.__version__
