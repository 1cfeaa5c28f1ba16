"""The command line as a user meets it: a process, its output, its exit code, its files."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, load_model, save_model
from kernpool.cli import main
from kernpool.estimators.persistence import ModelFileError
from kernpool.execution.progress import bar, progress_bar
from kernpool.execution.text_table import frame_of
from tests.support.commands import kernpool, process
from tests.support.thinning import slow

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
needs_matplotlib = pytest.mark.skipif(not find_spec("matplotlib"), reason="pictures need the extra 'plot'")
needs_pyarrow = pytest.mark.skipif(not find_spec("pyarrow"), reason="Parquet needs the extra 'arrow'")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("engel") / "model"
    done = process("fit", DATA / "engel.csv", "--target", "foodexp", "--model", folder)
    assert done.returncode == 0, done.stderr
    return folder, done


def test_fit_reports_what_it_did(fitted):
    _, done = fitted
    assert done.stdout == b""  # data on standard output, and there is none
    report = done.stderr.decode()
    income, food = np.loadtxt(DATA / "engel.csv", delimiter=",", skiprows=1).T
    model = LocalLinearRegressor().fit(income[:, None], food)
    for line in (
        f"bandwidth  income {model.bandwidth_[0]:.6g}",
        f"leave-one-out mean squared error  {model.loo_error_:.6g}",
        f"leave-one-out R^2                 {1 - model.loo_error_ / food.var():.6g}",
    ):
        assert line in report


def test_fit_says_that_it_searched_on_some_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("kernpool.bandwidth.search.setup.FEWEST_ROWS", 120)
    monkeypatch.setattr("kernpool.bandwidth.search.setup.AFFORDABLE_SUMS", 1.0)
    X = np.random.default_rng(0).random((600, 2))
    np.savetxt(tmp_path / "t.csv", np.c_[X, np.sin(6 * X[:, 0])], delimiter=",", header="a,b,y", comments="")
    done = kernpool("fit", tmp_path / "t.csv", "--target", "y", "--json")
    report = json.loads(done.stdout)
    assert "on a sample of 120 of 600 rows (random_state=0), then times" in report["note"]
    model = LocalLinearRegressor().fit(X, np.sin(6 * X[:, 0]))
    assert report["loo_error"] == pytest.approx(model.loo_error_, rel=1e-6)
    said = kernpool("fit", tmp_path / "t.csv", "--target", "y").stderr.decode()
    assert "on a sample of 120 of 600 rows" in said
    assert "(of the rows held out)" in said
    assert "read in chunks" not in said


@pytest.mark.parametrize("run", [kernpool, *slow(process)])
def test_predict_to_standard_output_and_to_files(run, fitted, tmp_path):
    folder, _ = fitted
    (tmp_path / "new.csv").write_text("name,income\na,500\nb,1000\n")
    done = run("predict", folder, tmp_path / "new.csv")
    assert done.returncode == 0, done.stderr
    income, food = np.loadtxt(DATA / "engel.csv", delimiter=",", skiprows=1).T
    expected = LocalLinearRegressor().fit(income[:, None], food).predict([[500.0], [1000.0]])
    # another process may choose another algorithm, whose last digits move the minimum of the search a little
    printed = np.loadtxt(io.BytesIO(done.stdout), skiprows=1)
    np.testing.assert_allclose(printed, expected, rtol=1e-8)
    assert done.stdout.startswith(b"foodexp\n")
    piped = kernpool("predict", folder, "-", stdin=b"income\n500\n1000\n")
    assert piped.stdout == done.stdout
    for name in ("out.csv", "out.tsv"):
        assert kernpool("predict", folder, tmp_path / "new.csv", "--out", tmp_path / name).returncode == 0
    assert (tmp_path / "out.csv").read_bytes() == done.stdout
    again = kernpool("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    assert (again.returncode, b"--force" in again.stderr) == (1, True)
    assert kernpool("predict", folder, tmp_path / "new.csv", "--out", tmp_path / "out.csv", "--force").returncode == 0


def test_json_shows_infinite_bandwidths(tmp_path):
    (tmp_path / "rows.csv").write_text("dose,effect\n" + "".join(f"{i / 7},{i % 5}\n" for i in range(24)))
    fit = kernpool(
        "fit", tmp_path / "rows.csv", "--target", "effect", "--bandwidth", "inf", "--model", tmp_path / "m", "--json"
    )
    for output in (fit, kernpool("info", tmp_path / "m")):
        assert json.loads(output.stdout)["bandwidth"] == {"dose": "inf"}


@needs_matplotlib
@pytest.mark.filterwarnings("default")  # as in a process of its own
@pytest.mark.parametrize("options", [("--bandwidth", "0.5,2"), ("--bandwidth", "2", "--smoothing", "0.1")])
def test_pictures_of_several_features_and_of_levels(options, tmp_path):
    second = "lr" if "--smoothing" in options else "0123456"
    lines = [f"{i / 7},{second[i % len(second)]},{i % 5}\n" for i in range(60)]
    (tmp_path / "t.csv").write_text('"a, b", c ,y\n' + "".join(lines))
    asked = ("--target", "y", "--features", '"a, b", c', *options, "--model", "m", "--plot", "t.png")
    done = kernpool("fit", "t.csv", *asked, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"columns    a, b, c" in done.stderr
    assert (tmp_path / "t.png").read_bytes().startswith(b"\x89PNG")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "t.csv", "t.png"]


@pytest.mark.slow  # processes of their own
def test_the_way_out_of_a_closed_pipe(fitted):
    folder, _ = fitted
    command = f"{sys.executable} -m kernpool predict {folder} {DATA / 'engel.csv'} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, check=False)
    assert done.stdout == b"foodexp\n"
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


@pytest.mark.slow
def test_an_interrupt_writes_nothing_and_exits_130(tmp_path):
    np.save(tmp_path / "big.npy", np.random.default_rng(0).normal(size=(300_000, 3)))
    command = [sys.executable, "-X", "importtime", "-m", "kernpool", "fit", "big.npy", "--target", "2", "--model", "m"]
    process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE)
    while b"kernpool.cli.tables" not in (line := process.stderr.readline()):  # the last import; the search is long
        assert line
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == 130
    assert error.endswith(b"interrupted; nothing was written\n")
    assert [path.name for path in tmp_path.iterdir()] == ["big.npy"]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no pseudo-terminals")
def test_a_bar_on_a_terminal_and_none_elsewhere(tmp_path):
    generator = np.random.default_rng(0)
    np.save(tmp_path / "data.npy", generator.normal(size=(4000, 2)))
    # Without patience: on a fast machine the fit is over before a bar would show.
    program = "from kernpool.execution import progress as n; n.PATIENCE = n.INTERVAL = 0.0"
    program += "; from kernpool.cli import main; main()"
    command = [sys.executable, "-c", program, "fit", "data.npy", "--target", "1"]
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


def test_a_bar_shows_before_any_work_is_done(capsys, monkeypatch):
    """The first of 25 fits takes seconds, and a library may read a file in one go."""
    monkeypatch.setattr("kernpool.execution.progress.is_terminal", lambda: True)
    monkeypatch.setattr("kernpool.execution.progress.PATIENCE", 0.05)
    with progress_bar("working", quiet=False):
        time.sleep(0.3)
    assert capsys.readouterr().err == f"\r\033[Kworking [{'.' * 30}]   0%\r\033[K"
    with progress_bar("working", quiet=True):
        time.sleep(0.1)
    bar("working", patience=60.0)(5, 10)
    assert capsys.readouterr().err == ""


def test_missing_extras_are_named(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "t.parquet").write_bytes(b"")
    assert main(["fit", str(DATA / "engel.csv"), "--target", "foodexp", "--plot", str(tmp_path / "p.png")]) == 1
    assert 'pip install "kernpool[plot]"' in capsys.readouterr().err
    assert main(["fit", str(tmp_path / "t.parquet"), "--target", "y"]) == 1
    assert 'pip install "kernpool[arrow]"' in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert main(["fit", str(DATA / "engel.csv"), "--target", "foodexp"]) == 1
    assert 'pip install "kernpool[cli]"' in capsys.readouterr().err
    with pytest.raises(ImportError, match="pip install pandas"):
        frame_of({})


def test_npy_files_that_are_no_matrix_of_numbers(tmp_path):
    arrays = {
        "complex": np.array([[1, 2j]]),
        "dates": np.array([["2020", "2021"]], "M8[Y]"),
        "nested": np.zeros(3, dtype=[("a", float, (2,)), ("1", float)]),
        "cube": np.zeros((2, 2, 2)),
        "whole": np.zeros((9, 2)),
    }
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    np.savez(tmp_path / "t.npz", a=np.zeros(3))
    whole = (tmp_path / "whole.npy").read_bytes()
    for name, content in (
        ("archive", (tmp_path / "t.npz").read_bytes()),
        ("header", whole[:20] + b"((((" + whole[24:]),
        ("short", whole[:-9]),
    ):
        (tmp_path / f"{name}.npy").write_bytes(content)
    for name, message in {
        "complex": b"column '0' must hold real numbers, got dtype complex128",
        "dates": b"say --dates 0",
        "nested": b"cannot be read as npy",
        "cube": b"Must pass 2-d input",
        "archive": b"archive of arrays",
        "header": b"cannot be read as npy",
        "short": b"cannot be read as npy",
    }.items():
        done = kernpool("fit", tmp_path / f"{name}.npy", "--target", "1")
        assert (done.returncode, message in done.stderr, done.stderr.count(b"\n")) == (1, True, 1), done.stderr


def test_force_through_a_symbolic_link(fitted, tmp_path):
    folder, _ = fitted
    shutil.copy(folder, tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    arguments = ["fit", DATA / "engel.csv", "--target", "foodexp", "--bandwidth", "50", "--model", tmp_path / "link"]
    assert kernpool(*arguments).stderr.endswith(b"choose another name, or overwrite it with --force\n")
    with pytest.raises(FileExistsError, match=r"overwrite it with force=True$"):
        save_model(load_model(folder), tmp_path / "link")
    with pytest.raises(ModelFileError, match=r"is no file; kernpool.save_model writes one$"):
        load_model(tmp_path)
    assert kernpool(*arguments, "--force").returncode == 0
    assert (tmp_path / "link").is_symlink()
    assert json.loads(kernpool("info", tmp_path / "real").stdout)["bandwidth"] == {"income": 50.0}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
