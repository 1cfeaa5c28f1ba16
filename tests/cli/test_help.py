"""Help at once, for every command, and errors for programs."""

import json
import subprocess
import sys

from kernpool.cli.options import build_parser
from tests.support.commands import kernpool


def parsers(parser, name="kernpool"):
    """All commands, by what is typed."""
    yield name, parser
    for action in parser._actions:
        if hasattr(action, "choices") and isinstance(action.choices, dict):
            for command, other in action.choices.items():
                yield from parsers(other, f"{name} {command}")


def options_of(parser):
    return {option for action in parser._actions for option in action.option_strings if action.help != "==SUPPRESS=="}


def test_every_command_explains_itself_and_speaks_json():
    for name, parser in parsers(build_parser()):
        assert "usage: " + name in parser.format_help()
        if name not in ("kernpool", "kernpool test"):
            assert "--json" in options_of(parser), name


def test_usage_errors_for_programs():
    done = kernpool("fit", "t.csv", "--json")
    assert done.returncode == 2
    error = json.loads(done.stderr)
    assert (error["command"], error["exit_code"]) == ("fit", 2)
    assert "--target" in error["error"]


def test_help_imports_the_standard_library_alone():
    code = "import sys; from kernpool.cli.main import build_parser; build_parser().format_help(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not {"numpy", "sklearn", "scipy", "numba"} & loaded
