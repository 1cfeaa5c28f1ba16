"""The command line at its edges: closed and named streams, long cells, advice that can be followed, quiet drawings."""

import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from kernpool import NadarayaWatsonClassifier, NadarayaWatsonRegressor, load_model, save_model
from kernpool.cli import main
from kernpool.cli.options import build_parser
from tests.support.commands import kernpool
from tests.support.parquet import write_parquet

needs_sh = pytest.mark.skipif(os.name != "posix", reason="closes streams with a shell")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b,y\n0,1,1\n1,3,2\n2,0,3\n")
    np.save("t.npy", np.array([(0.0,), (1.0,), (2.0,)], dtype=[("a", float)]))
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array([1.0, 2.0, 3.0])
    save_model(NadarayaWatsonRegressor("boxcar", 0.5, empty="nan").fit(X, y), "model", features=["a"], target="y")
    save_model(NadarayaWatsonClassifier("boxcar", 0.5, empty="zero").fit(X, [0, 1, 1]), "classes", features=["a"])
    save_model(NadarayaWatsonRegressor("boxcar", 0.5, empty="raise").fit(X, y), "strict", features=["a"])


def shell(command):
    line = command.replace("kernpool", f"{sys.executable} -m kernpool")
    return subprocess.run(["sh", "-c", line], capture_output=True, check=False)


EXPECTED = b"y\n1.0\n2.0\n3.0\n"
FULL = b"kernpool predict: error: standard output: No space left on device\n"
COMMANDS = """
import sys
from kernpool.cli.main import main
for number, command in enumerate(sys.argv[1:]):
    code = main(command.split())
    print(f"[{number}: {code}]", file=sys.stderr, flush=True)
sys.exit(code)
"""


@needs_sh
def test_a_closed_standard_output():
    """Several commands in one process, as each would take more than a second to load what it needs."""
    to_a_file = "predict model t.csv --out out.csv"
    refused = ["info model", "predict model t.npy --memory 1MiB", "predict model t.csv"]
    quoted = " ".join(shlex.quote(argument) for argument in (COMMANDS, to_a_file, *refused))
    done = subprocess.run(["sh", "-c", f"{sys.executable} -c {quoted} >&-"], capture_output=True, check=False)
    assert done.returncode == 1
    first, *lines = done.stderr.decode().splitlines()
    assert first == "[0: 0]"  # nothing goes to standard output, so it does not matter
    assert Path("out.csv").read_text() == "y\n1.0\n2.0\n3.0\n"
    assert len(lines) == 2 * len(refused)
    for number, (error, code) in enumerate(zip(lines[::2], lines[1::2], strict=True), start=1):
        assert "standard output is closed" in error
        assert code == f"[{number}: 1]"


@pytest.mark.slow
@needs_sh
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no full device")
@pytest.mark.parametrize(
    ("command", "out", "error"),
    [
        ("fit t.csv --target y --bandwidth 1 2>&-", b"", b""),  # messages do not go to standard output
        ("predict model t.csv > /dev/full", b"", FULL),
    ],
)
def test_streams_of_a_process(command, out, error):
    done = shell(f"kernpool {command}")
    assert (done.returncode, done.stdout, done.stderr) == (bool(error), out, error)


def test_standard_input():
    done = kernpool("predict", "model", "-", stdin=Path("t.csv").read_bytes())
    assert (done.stdout, done.stderr) == (EXPECTED, b"")


def test_cells_are_shown_in_part(capsys):
    for cell in ("9" * 400, "x" * 100):
        Path("long.csv").write_text(f"a,y\n0,1\n{cell},2\n")
        assert main(["fit", "long.csv", "--target", "y"]) == 1
        error = capsys.readouterr().err
        assert f"holds '{cell[:40]}'..." in error
        assert len(error) < 300


def test_rows_are_counted_alike(capsys):
    """Row 1 is the second one in every format."""
    table = np.array([[0.0, 1.0], [np.nan, 2.0]])
    np.save("bad.npy", table)
    np.savetxt("bad.csv", table, delimiter=",", header="0,1", comments="")
    names = ["bad.npy", "bad.csv"]
    if find_spec("pyarrow"):
        write_parquet("bad.parquet", {"0": table[:, 0], "1": table[:, 1]})
        names.append("bad.parquet")
    for name in names:
        for memory in ([], ["--memory", "1MiB"])[: 1 if name == "bad.csv" else 2]:
            assert main(["fit", name, "--target", "1", *memory]) == 1
            error = capsys.readouterr().err
            assert "row 1, column '0' " in error
            assert "(rows are counted from 0)" in error


def advised(error):
    return set(re.findall(r"--[a-z]+", error))


def options(command):
    parser = build_parser()._subparsers._group_actions[0].choices[command]
    return {option for action in parser._actions for option in action.option_strings}


@pytest.mark.parametrize("cell", ["x", "", "nan", "9007199254740993"])
def test_advice_can_be_followed(cell, capsys):
    table = f"a,b,y\n0,1,1\n{cell},2,2\n3,4,5\n"
    for name, text in (("query", table), ("target", table.replace("a,b,y", "y,b,a"))):
        Path(f"{name}.csv").write_text(text)
    for command, arguments in (
        ("fit", ["query.csv", "--target", "y"]),
        ("fit", ["target.csv", "--target", "y"]),
        ("predict", ["model", "query.csv"]),
    ):
        assert main([command, *arguments]) == 1
        error = capsys.readouterr().err
        assert advised(error) <= options(command)
        if "target.csv" in arguments or command == "predict":
            assert "--features" not in error
        elif cell != "9007199254740993":
            assert "--features" in error


@pytest.mark.filterwarnings("default")  # as in a process of its own
@pytest.mark.parametrize("model", ["model", "classes", "strict"])
def test_empty_windows(model, capsys):
    """The warning, or the error, is one line, and names options that predict has."""
    Path("far.csv").write_text("a\n0\n50\n")
    code = main(["predict", model, "far.csv"])
    shown = capsys.readouterr()
    assert code == (0 if model == "model" else 1)
    assert shown.err.count("\n") == 1
    assert "empty=" not in shown.err
    assert ".py" not in shown.err
    assert advised(shown.err) <= options("predict") | {"--bandwidth"}
    assert "--empty nearest" in shown.err
    assert "fit again" in shown.err
    if model == "model":
        assert shown.err.startswith("kernpool predict: warning: 1 of 2 queries (the first is query 1) have no key")
        assert shown.out == 'y\n1.0\n""\n'
    assert main(["predict", model, "far.csv", "--empty", "nearest"]) == 0
    shown = capsys.readouterr()
    assert shown.err.count("\n") == 1
    assert "get the answer of the nearest one" in shown.err
    assert shown.out.split()[2] == ("1" if model == "classes" else "3.0")
    assert load_model(model).empty != "nearest"


@pytest.mark.skipif(not find_spec("matplotlib"), reason="pictures need the extra 'plot'")
def test_a_drawing_does_not_warn_of_its_own_points(capsys):
    options = ["--kernel", "epanechnikov", "--bandwidth", "0.1", "--features", "a", "--plot", "p.png"]
    assert main(["fit", "t.csv", "--target", "y", *options]) == 0
    assert "warning" not in capsys.readouterr().err
