"""The site: what its extensions make, that links are checked, and, where it has been built, its pages in a browser."""

import importlib.util
import re
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

import kernpool
from tests.support.blocks import blocks
from tests.support.browser import browser, violations  # noqa: F401  # the fixture

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
BUILT = DOCS / "_build" / "html"
needs_site = pytest.mark.skipif(not (BUILT / "index.html").exists(), reason="the site is not built: make docs")


def load(path):
    """Import a file of the site, whose folder is no package."""
    spec = importlib.util.spec_from_file_location(f"site_under_test_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    with patch.object(sys, "path", [str(path.parent), *sys.path]):
        spec.loader.exec_module(module)
    return module


CHECK = load(DOCS / "check_site.py")


def write(folder, **pages):
    for name, body in pages.items():
        (folder / f"{name}.html").write_text(f"<!doctype html><title>{name}</title>{body}", encoding="utf-8")


def test_links_that_lead_somewhere_are_no_problem(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    write(
        tmp_path,
        one='<h1 id="top">One</h1><a href="two.html#here">two</a><a href="#top">up</a><img src="a.png">'
        '<a href="https://elsewhere.org/x">for readers</a><img src="data:image/png;base64,AA">',
        two='<p id="here"><a href="one.html">one</a>',
    )
    assert CHECK.check(tmp_path) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="three.html">', "three.html leads nowhere"),
        ('<a href="#there">', "#there names a place that is not there"),
        ('<a href="two.html#there">', "two.html#there names a place"),
        ('<img src="b.png">', "b.png leads nowhere"),
        ('<a href="../outside.html">', "../outside.html leads nowhere"),
        ('<script src="https://cdn.org/a.js"></script>', "loads https://cdn.org/a.js from elsewhere"),
        ('<link rel="stylesheet" href="//fonts.org/a.css">', "loads //fonts.org/a.css from elsewhere"),
        ('<iframe src="https://elsewhere.org"></iframe>', "from elsewhere"),
    ],
)
def test_what_is_wrong_is_found(tmp_path, body, problem):
    (tmp_path / "site").mkdir()
    (tmp_path / "outside.html").write_text("", encoding="utf-8")
    write(tmp_path / "site", one=body, two="")
    (found,) = CHECK.check(tmp_path / "site")
    assert problem in found
    assert found.startswith("one.html: ")


def test_a_folder_without_pages_is_a_problem(tmp_path):
    assert "make docs" in CHECK.check(tmp_path)[0]


def formulas():
    """Every formula of the pages and docstrings, as (where, latex)."""
    for page in sorted(DOCS.rglob("*.md")):
        if "_build" in page.parts:
            continue
        text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for display, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", text, flags=re.DOTALL):
            yield page.name, display or inline
    for source in sorted((ROOT / "src" / "kernpool").rglob("*.py")):
        for formula in re.findall(r":math:`([^`]+)`", source.read_text(encoding="utf-8")):
            yield source.name, formula


@pytest.mark.slow  # as all below: in the gate they run after make docs
def test_every_formula_can_be_drawn():
    pytest.importorskip("latex2mathml", reason="formulas need the extra 'docs'")
    pytest.importorskip("sphinx", reason="the extensions need the extra 'docs'")
    to_mathml = load(DOCS / "_ext" / "site_math.py").to_mathml
    tried = 0
    for where, latex in formulas():
        made = to_mathml(latex.replace("\\\\", "\\") if "\\\\hat" in latex else latex, display=True)
        assert made.startswith("<math"), where
        tried += 1
    assert tried > 40
    with pytest.raises(ValueError, match=r"\\nonsense"):
        to_mathml(r"\nonsense{x}", display=False)


@pytest.mark.slow
def test_everything_public_is_in_a_group():
    pytest.importorskip("sphinx", reason="the extensions need the extra 'docs'")
    api = load(DOCS / "_ext" / "site_api.py")
    listed = [name for names in api.grouped().values() for name in names]
    assert sorted(listed) == sorted(set(kernpool.__all__) - {"datasets"})
    subpackages = {path.parent.name for path in (ROOT / "src" / "kernpool").glob("*/__init__.py")} | {"datasets"}
    assert set(api.SUBPACKAGES) == subpackages


CHINESE = [page.stem for page in sorted((DOCS / "zh").glob("*.md"))]


def english_of(name):
    """The English page of a Chinese one, which is a guide or has its name."""
    return next(path for path in (DOCS / f"{name}.md", DOCS / "guides" / f"{name}.md") if path.exists())


@pytest.mark.parametrize("name", CHINESE)
def test_both_languages_have_the_same_examples(name):
    """The code of the English page and what it prints, comments aside; the short page of intervals has some of it."""

    def shown(path):
        languages = {"python", "pycon", "quotation", "sh", "text"}
        return [
            (block.language, block.source, re.sub(r" *#.*", "", block.code).replace(" --lang zh", ""))
            for block in blocks(path)
            if block.language in languages
        ]

    english, chinese = shown(english_of(name)), shown(DOCS / "zh" / f"{name}.md")
    assert chinese == ([block for block in english if block in chinese] if name == "inference" else english)


def test_pages_lead_to_the_other_language():
    """And back; where there is none, to the first page of that language."""
    pytest.importorskip("sphinx", reason="the extensions need the extra 'docs'")
    counterpart = load(DOCS / "_ext" / "site_languages.py").counterpart
    docs = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}
    for name in CHINESE:
        english = english_of(name).relative_to(DOCS).with_suffix("").as_posix()
        assert counterpart(f"zh/{name}", docs) == english
        assert counterpart(english, docs) == f"zh/{name}"
    assert counterpart("guides/index", docs) == counterpart("guides/columns", docs) == "zh/index"
    assert counterpart("zh/removed", docs) == "index"


@needs_site
@pytest.mark.slow
def test_every_public_name_has_a_page():
    pages = {path.stem for path in (BUILT / "api" / "items").glob("*.html")}
    assert {f"kernpool.{name}" for name in kernpool.__all__ if name != "datasets"} <= pages
    torch = pytest.importorskip("kernpool.torch", reason="layers need the extra 'torch'")
    assert {f"kernpool.torch.{name}" for name in torch.__all__} <= pages


@needs_site
@pytest.mark.slow
def test_the_theme_speaks_chinese_on_chinese_pages():
    text = (BUILT / "zh" / "faq.html").read_text(encoding="utf-8")
    words = ("Search", "On this page", "Section Navigation", "previous page", "next page", "Color mode", "Back to top")
    assert [word for word in words if re.search(rf'[">]\s*{word}\s*["<]', text)] == []
    assert 'href="quick-start.html"' in text.partition("</header>")[0]


ALIKE = {"items", "gallery", "benchmarks", "decisions"}  # folders of pages that one template makes


def pages_to_open():
    """Every page that a reader meets, and every tenth of those that are made alike; `make docs` checks links in all."""
    found = [path for path in sorted(BUILT.rglob("*.html")) if "_static" not in path.parts]
    alike = [path for path in found if ALIKE & set(path.parts)]
    return [path for path in found if path not in alike] + alike[::10]


def searches():
    """What readers search for, and the page that comes first."""
    lines = (ROOT / "tests" / "docs" / "searches.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split(": ") for line in lines if not line.startswith("#"))


@needs_site
@pytest.mark.slow
def test_searches_find_their_page_first(browser):  # noqa: F811  # a fixture
    """Typed into the search of the site; all but three of 58, so that a word more on some page is no failure."""
    context, wrong = browser.new_context(), {}
    try:
        page = context.new_page()
        for query, expected in searches().items():
            page.goto(f"{(BUILT / 'search.html').as_uri()}?q={query.replace(' ', '+')}")
            page.wait_for_function(
                "document.querySelector('.search-summary')?.textContent.match(/found|match/)", timeout=20_000
            )
            first = page.locator("ul.search li a").first
            found = first.get_attribute("href", timeout=5000) if first.count() else ""
            if found.partition(".html")[0] != expected:
                wrong[query] = found
    finally:
        context.close()
    assert len(searches()) - len(wrong) >= 55, wrong


@needs_site
@pytest.mark.slow
def test_no_page_asks_for_anything_from_elsewhere(browser):  # noqa: F811  # a fixture
    """Opened from the disk, with frames and all; also no error, and nothing wider than a phone."""
    context = browser.new_context(viewport={"width": 400, "height": 800})
    try:
        page, asked, errors = context.new_page(), [], []
        context.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        for path in pages_to_open():
            page.goto(path.as_uri())
            if "embedded" not in path.parts:
                over = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                assert over <= 1, f"{path.relative_to(BUILT)} is {over} pixels wider than the screen"
        assert len(asked) > 100
        assert [url for url in asked if not url.startswith(("file:", "data:", "blob:", "about:"))] == []
        assert errors == []
    finally:
        context.close()


@needs_site
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "zh/index", "guides/bandwidths", "api/items/kernpool.pool", "inference"])
def test_pages_are_accessible(browser, name, scheme):  # noqa: F811  # a fixture
    """No violation of WCAG A or AA that axe-core can see; frames have tests of their own."""
    context = browser.new_context(color_scheme=scheme, viewport={"width": 1200, "height": 900})
    try:
        page = context.new_page()
        page.goto((BUILT / f"{name}.html").as_uri())
        assert page.locator("html").get_attribute("lang") == ("zh-CN" if name.startswith("zh/") else "en")
        page.evaluate("document.querySelectorAll('iframe').forEach((frame) => frame.remove())")
        assert violations(page) == []
    finally:
        context.close()
