"""Commands on pages: what stands in sentences exists, and what a block shows runs, or is refused."""

import re

import pytest

import kernpool
from tests.support.blocks import ROOT, pages
from tests.support.shell import TARGETS, run


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_within_sentences(page):
    """Scripts and targets that a page names exist."""
    text = page.read_text(encoding="utf-8")
    for script in re.findall(r"\bpython ((?:benchmarks|docs|examples|tests)/[\w/.-]+\.py)", text):
        assert (ROOT / script).exists(), f"{page} names {script}"
    for target in re.findall(r"`make (\w[\w-]*)", text):
        assert target in TARGETS, f"{page} names make {target}"


def test_lines_of_a_terminal(tmp_path):
    run("printf 'a,b\\n1,2\\n' > one.csv  # two lines\n\n# nothing\ncat one.csv one.csv | cat > two.csv\n", tmp_path)
    assert (tmp_path / "one.csv").read_text() == "a,b\n1,2\n"
    assert (tmp_path / "two.csv").read_text() == 2 * "a,b\n1,2\n"
    run("kernpool --version \\\n > version.txt", tmp_path)
    assert (tmp_path / "version.txt").read_text() == f"{kernpool.__version__}\n"
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
