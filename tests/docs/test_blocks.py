"""Every block of code of every page runs, in the order of the page, in one namespace; none is left out in silence."""

import doctest
import re
import shutil
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO

import numpy as np
import pytest

from tests.support.blocks import ROOT, WORDS, blocks, pages
from tests.support.shell import run as run_lines

OPTIONAL = {
    "torch": "torch", "matplotlib": "plot", "pyarrow": "arrow", "dask": "dask", "finufft": "nufft",
    "statsmodels": "test", "pandas": "test", "polars": "test", "seaborn": "grammar", "plotnine": "grammar",
}  # fmt: skip
# What takes more than a few seconds of processor time; the gate runs it.
SLOW = {
    "README.md", "README.zh-CN.md", "docs/clusters.md", "docs/command-line.md", "docs/guides/columns.md",
    "docs/quick-start.md", "docs/guides/attention.md", "docs/guides/torch.md", "docs/inference.md", "docs/tests.md",
}  # fmt: skip
NOT_RUN: set[tuple[str, str]] = set()
RUN_BY = {("docs/clusters.md", "tests/docs/test_clusters.py")}


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def marks_of(page):
    return [pytest.mark.slow] if name_of(page) in SLOW else []


PAGES_WITH_CODE = [
    pytest.param(page, id=name_of(page), marks=marks_of(page))
    for page in pages()
    if page.parent.name != "zh"  # their code is that of the English pages: test_site.py
    and any(block.language in ("python", "pycon", "sh") for block in blocks(page))
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder with the example tables where pages look for them, from which no browser is opened."""
    shutil.copytree(ROOT / "examples" / "data", tmp_path / "examples" / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("webbrowser.open", bool)
    if find_spec("matplotlib"):
        monkeypatch.setenv("MPLBACKEND", "agg")
    return tmp_path


def run_python(block, names):
    """Run a block such that an error shows its line of the page."""
    code = "\n" * (block.line - 1) + block.code
    exec(compile(code, str(block.page), "exec", dont_inherit=True), names)


def run_session(block, names):
    """Run a session of the prompt, and compare what it prints."""
    test = doctest.DocTestParser().get_doctest(block.code, names, block.place, str(block.page), block.line - 1)
    assert test.examples, f"{block.place} shows no prompt"
    shown = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=shown.append, clear_globs=False)
    names.update(test.globs)
    assert not shown, "".join(shown)


def run_page(found, folder):
    """Run the blocks of a page in order; where words follow a block that prints, they are what it prints."""
    names, printed = {"__name__": "__main__"}, ""
    with np.printoptions():  # a page may set a precision
        for block in found:
            if printed and block.language == "text":
                shown = [line.rstrip() for line in block.code.splitlines()]
                assert shown == [line.rstrip() for line in printed.splitlines()], (
                    f"{block.place}: printed is\n{printed}"
                )
            printed = ""
            if block.mark or block.language not in ("python", "pycon", "sh"):
                continue
            if block.language == "sh":
                run_lines(block.code, folder)
            elif block.language == "pycon":
                run_session(block, names)
            else:
                with redirect_stdout(StringIO()) as out:
                    run_python(block, names)
                printed = out.getvalue()
    return names


@pytest.mark.parametrize("page", PAGES_WITH_CODE)
@pytest.mark.filterwarnings("ignore:After 0.17:FutureWarning")  # statsmodels, about random numbers it does not use
def test_the_blocks_run(page, folder):
    try:
        run_page(blocks(page), folder)
    except ImportError as error:
        missing = next((name for name in OPTIONAL if not find_spec(name) and name in str(error)), None)
        if missing is None:
            raise
        pytest.skip(f"the rest of the page needs the extra '{OPTIONAL[missing]}'")
    except AssertionError as error:
        extra = re.search(r"kernpool\[(\w+)\]", str(error))
        if extra is None or all(find_spec(name) for name, known in OPTIONAL.items() if known == extra[1]):
            raise
        pytest.skip(f"the rest of the page needs the extra '{extra[1]}'")
    finally:
        if find_spec("matplotlib"):
            import matplotlib.pyplot as plt

            plt.close("all")


@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_every_block_says_what_it_is(page):
    """A language that is known, or words; code is never indented, since nothing would say what language it is in."""
    for block in blocks(page):
        known = {"python", "pycon", "sh", "quotation", "directive"} | WORDS
        assert block.language in known, f"{block.place} is a block of {block.language or 'no language'}"
        assert block.language != "quotation" or page.is_relative_to(ROOT / "docs"), (
            "test_pages.py compares those of docs"
        )


def test_pages_with_code_are_as_many_as_there_were():
    """A block that loses its language, or a page that is not found, would be left out in silence."""
    run = [block.language for page in pages() for block in blocks(page) if not block.mark]
    assert len(PAGES_WITH_CODE) >= 20
    assert run.count("python") >= 66
    assert run.count("pycon") >= 25
    assert run.count("sh") >= 14


def test_what_is_not_run_is_known():
    marked = [block for page in pages() for block in blocks(page) if block.mark]
    assert {(name_of(block.page), block.reason) for block in marked if block.mark == "not run:"} == NOT_RUN
    assert {(name_of(block.page), block.reason) for block in marked if block.mark == "run by"} == RUN_BY
    for page, test in RUN_BY:
        assert page.rpartition("/")[2] in (ROOT / test).read_text(encoding="utf-8")


def test_blocks_of_a_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A\n\n<!-- run first\na = 1\n-->\n\n```python\nb = a\n```\n\n<!-- not run: no time -->\n```sh\nmake\n```\n\n"
        "```python core/state.py\nx\n```\n\n    indented\n\n- item\n\n    goes on\n\n```{note}\nx\n```\n"
    )
    found = [(block.language, block.line, block.mark, block.reason) for block in blocks(page)]
    assert found == [
        ("python", 4, "", ""), ("python", 8, "", ""), ("sh", 13, "not run:", "no time"), ("quotation", 17, "", ""),
        ("indented", 20, "", ""), ("directive", 27, "", ""),
    ]  # fmt: skip
