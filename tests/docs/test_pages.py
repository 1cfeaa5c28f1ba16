"""What the pages of `docs` say of the sources is true: quotations, paths, links, and examples that run."""

import re
from pathlib import Path

import pytest

import kernpool
from tests.support.blocks import pages

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "kernpool"
PAGES = [
    page for page in pages() if page.is_relative_to(ROOT / "docs") and "benchmarks" not in page.relative_to(ROOT).parts
]
on_every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT / "docs").as_posix())


def read(page):
    return page.read_text(encoding="utf-8")


def quotations(page):
    """The blocks that name a source, as (path, pieces); a line of dots stands between pieces."""
    for path, block in re.findall(r"```python (\S+)\n(.*?)```", read(page), flags=re.DOTALL):
        yield path, [piece for piece in re.split(r"^ *\.\.\.\n", block, flags=re.MULTILINE) if piece]


def first_missing(pieces, source):
    """The first line of a quotation that the source does not have there, or None."""
    place = 0
    for piece in pieces:
        found = re.compile("^" + re.escape(piece), flags=re.MULTILINE).search(source, place)
        if not found:
            lines = piece.splitlines()
            return next((line for line in lines if line not in source[place:].splitlines()), lines[0])
        place = found.end()
    return None


@on_every_page
def test_quotations_are_the_sources(page):
    for path, pieces in quotations(page):
        line = first_missing(pieces, read(PACKAGE / path))
        assert line is None, f"{page.name} quotes {path}, which has no longer: {line}"


def test_a_quotation_that_is_wrong_is_found():
    source = "one\n  two\nthree\nfour\n"
    assert first_missing(["one\n", "three\nfour\n"], source) is None
    assert first_missing(["one\n  two, too\n"], source) == "  two, too"
    assert first_missing(["three\n", "one\n"], source) == "one"  # in another order
    assert first_missing(["two\n"], source) == "two"  # indented otherwise


def test_ten_minutes_quote_the_five_files():
    quoted = {path for path, _ in quotations(ROOT / "docs" / "how-it-works.md")}
    assert quoted == {
        "core/state.py", "core/similarity.py", "core/problem.py", "algorithms/reference.py", "pooling/pool.py"
    }  # fmt: skip


@on_every_page
def test_paths_exist(page):
    """What looks like a file of the package, or of the repository, is one."""
    for path in re.findall(r"`([\w./*-]+/[\w.*-]*\.(?:py|json|md|svg|html|css))`", read(page)):
        assert (PACKAGE / path).exists() or (ROOT / path).exists(), f"{page.name} speaks of {path}"


@on_every_page
def test_dotted_names_are_of_the_package(page):
    """The first name after the package is a subpackage or public."""
    subpackages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    for name in re.findall(r"\bkernpool\.([A-Za-z_]+)", read(page)):
        assert name in subpackages or name in kernpool.__all__, f"{page.name} speaks of kernpool.{name}"


@on_every_page
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", read(page)):
        assert link.startswith("http") or (page.parent / link).exists(), f"{page.name} links to {link}"


def test_every_subpackage_has_its_decisions():
    """A section per subpackage, and all pages in the index."""
    pages = {page.name: read(page) for page in (ROOT / "docs" / "decisions").glob("*.md")}
    index = pages.pop("README.md")
    sections = set(re.findall("^## (.*)$", "\n".join(pages.values()), flags=re.MULTILINE))
    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= sections | {"smoother", "cli"}
    assert all(f"({page})" in index for page in pages)
