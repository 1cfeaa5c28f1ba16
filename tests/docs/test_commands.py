"""Commands on pages: what stands in sentences exists, and what a block shows runs, or is refused."""

import re
from functools import cache

import pytest

from kernpool import __version__
from tests.support.blocks import ROOT, pages
from tests.support.commands import kernpool
from tests.support.shell import TARGETS, run


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_within_sentences(page):
    """Scripts and targets that a page names exist."""
    text = page.read_text(encoding="utf-8")
    for script, options in re.findall(r"\bpython ((?:benchmarks|docs|examples|tests)/[\w/.-]+\.py)([^`\n]*)", text):
        assert (ROOT / script).exists(), f"{page} names {script}"
        for option in re.findall(r"--[a-z-]+", options):
            assert option in (ROOT / script).read_text(encoding="utf-8"), f"{page} names {option} of {script}"
    for target in re.findall(r"`make (\w[\w-]*)", text):
        assert target in TARGETS, f"{page} names make {target}"


@cache
def help_of(*command):
    done = kernpool(*command, "--help")
    assert done.returncode == 0, f"there is no kernpool {' '.join(command)}"
    return done.stdout.decode()


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_options_within_sentences(page):
    """A command of the package that a page names exists, and has the options that stand behind it."""
    for words in re.findall(r"`kernpool ([a-z][^`]*)`", page.read_text(encoding="utf-8")):
        first, second = [*words.split(), ""][:2]
        command = (first, second) if first == "test" and second.isalpha() else (first,)
        known = help_of(*command)
        for option in re.findall(r"(?<!\S)--[a-z-]+", words):
            assert re.search(rf"{option}\b", known), f"{page} names {option} of kernpool {' '.join(command)}"


def test_lines_of_a_terminal(tmp_path):
    run("printf 'a,b\\n1,2\\n' > one.csv  # two lines\n\n# nothing\ncat one.csv one.csv | cat > two.csv\n", tmp_path)
    assert (tmp_path / "one.csv").read_text() == "a,b\n1,2\n"
    assert (tmp_path / "two.csv").read_text() == 2 * "a,b\n1,2\n"
    run("kernpool --version \\\n > version.txt", tmp_path)
    assert (tmp_path / "version.txt").read_text() == f"{__version__}\n"
    run("make test\nmake fuzz SECONDS=1\npip install 'kernpool[plot,torch]'\npython examples/demo.py", tmp_path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("make coffee", "the Makefile has"),
        ("rm -rf /", "rm is no command that pages may show"),
        ("pip install 'kernpool[moon]'", "has the extras"),
        ("python examples/nothing.py", "there is no examples/nothing.py"),
        ("kernpool fit nothing.csv --target y", r"nothing\.csv"),
        ("printf '%s' x", "text as it is"),
        ("cat one.csv |", "a pipe without a command"),
    ],
)
def test_a_line_that_is_wrong_is_named(line, message, tmp_path):
    (tmp_path / "one.csv").write_text("")
    with pytest.raises(AssertionError, match=message):
        run(line, tmp_path)
