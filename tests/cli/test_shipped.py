"""Tables that need no download, completion of what is typed, help at once, errors for programs."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernpool import datasets
from kernpool.cli.datasets import TABLES
from kernpool.cli.options import build_parser
from tests.support.commands import kernpool

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "data"


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_written_and_read_back(name, tmp_path):
    done = kernpool("datasets", name)
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "t.csv").write_bytes(done.stdout)
    lines = done.stdout.decode().splitlines()
    table = TABLES[name]
    assert len(lines) == table.rows + 1
    assert table.target in lines[0].split(",")
    columns = json.loads(kernpool("datasets", name, "--json").stdout)["columns"]
    assert list(columns) == lines[0].split(",")
    assert {len(cells) for cells in columns.values()} == {table.rows}


def test_the_list_names_them_all():
    said = kernpool("datasets").stdout.decode().splitlines()
    assert [line.split()[0] for line in said[1:]] == list(TABLES)
    assert [entry["name"] for entry in json.loads(kernpool("datasets", "--json").stdout)] == list(TABLES)


def test_engel_is_the_table_of_the_examples():
    shipped = kernpool("datasets", "engel").stdout
    np.testing.assert_array_equal(
        np.loadtxt(io.BytesIO(shipped), delimiter=",", skiprows=1),
        np.loadtxt(EXAMPLES / "engel.csv", delimiter=",", skiprows=1),
    )


def test_synthetic_tables_have_rows_and_a_seed():
    done = kernpool("datasets", "sine", "--rows", "7", "--seed", "3").stdout
    sample = datasets.make_sine_linear(7, random_state=3)
    expected = np.c_[sample.x_train, sample.y_train]
    np.testing.assert_array_equal(np.loadtxt(io.BytesIO(done), delimiter=",", skiprows=1), expected)


def parsers(parser, name="kernpool"):
    """All commands, by what is typed."""
    yield name, parser
    for action in parser._actions:
        if hasattr(action, "choices") and isinstance(action.choices, dict):
            for command, other in action.choices.items():
                yield from parsers(other, f"{name} {command}")


def options_of(parser):
    return {option for action in parser._actions for option in action.option_strings if action.help != "==SUPPRESS=="}


@pytest.fixture(scope="module")
def scripts():
    pytest.importorskip("shtab", reason="completion needs the extra 'completion'")
    return {shell: kernpool("completion", shell).stdout.decode() for shell in ("bash", "zsh", "tcsh")}


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_all_options(shell, scripts):
    for name, parser in parsers(build_parser()):
        for option in options_of(parser):
            shown = option.lstrip("-") if shell == "tcsh" else option
            assert re.search(rf"(?<![\w-]){re.escape(shown)}(?![\w-])", scripts[shell]), (name, option)


@pytest.mark.skipif(not shutil.which("bash"), reason="this system has no bash")
def test_bash_completes(scripts, tmp_path):
    script = tmp_path / "completion.bash"
    script.write_text(scripts["bash"])
    assert subprocess.run(["bash", "-n", script], check=False).returncode == 0
    typed = {
        "kernpool comp": {"compare", "compile", "completion"},
        "kernpool fit --ta": {"--target"},
        "kernpool predict --em": {"--empty"},
        "kernpool predict --empty ne": {"nearest"},
        "kernpool test curves --nu": {"--null"},
    }
    program = f"source {script}\n" + "".join(
        f"COMP_WORDS=({line}); COMP_CWORD={len(line.split()) - 1}\n"
        f"$(complete -p kernpool | sed 's/.*-F \\([^ ]*\\).*/\\1/') 2>/dev/null; echo ${{COMPREPLY[@]}}\n"
        for line in typed
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    assert [set(line.split()) for line in done.stdout.splitlines()] == list(typed.values()), done.stderr


def test_completion_without_shtab(monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = kernpool("completion", "bash")
    assert (done.returncode, b'pip install "kernpool[completion]"' in done.stderr) == (1, True)


def test_every_command_explains_itself_and_speaks_json():
    for name, parser in parsers(build_parser()):
        assert "usage: " + name in parser.format_help()
        if name not in ("kernpool", "kernpool test", "kernpool completion"):
            assert "--json" in options_of(parser), name


def test_usage_errors_for_programs():
    done = kernpool("fit", "t.csv", "--json")
    assert done.returncode == 2
    error = json.loads(done.stderr)
    assert (error["command"], error["exit_code"]) == ("fit", 2)
    assert "--target" in error["error"]


def test_help_imports_the_standard_library_alone():
    code = "import sys; from kernpool.cli.main import build_parser; build_parser().format_help(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ})
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not {"numpy", "sklearn", "scipy", "numba", "shtab"} & loaded
