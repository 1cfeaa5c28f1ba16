"""Small modules become one, and what would break it is refused with the files to look at."""

import re

import pytest

from kernpool.explorer import page_bundle as bundling
from kernpool.explorer.page_bundle import bundle
from tests.support.browser import browser, opened, page_of  # noqa: F401  # fixtures


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A folder of modules of one's own in the place of the page's."""
    (tmp_path / "js").mkdir()
    monkeypatch.setattr(bundling, "FOLDER", tmp_path)
    for cached in (bundling._source, bundling._words, bundling._style):
        cached.cache_clear()

    def write(**modules):
        for name, text in modules.items():
            (tmp_path / "js" / f"{name}.js").write_text(text, encoding="utf-8")

    yield write
    for cached in (bundling._source, bundling._words, bundling._style):
        cached.cache_clear()


def test_the_page_is_one_module():
    module = bundle()
    assert not re.search(r"^\s*import\b", module, re.MULTILINE)
    assert "export function mount" in module
    assert "const KERNELS" in module
    assert len(module) < 200_000


def test_imports_come_first_and_once(sources):
    sources(
        main='import { one } from "./a.js";\nimport { two } from "./b.js";\nexport const three = one + two;',
        a="export const one = 1;",
        b='import { one } from "./a.js";\nexport const two = one + one;',
    )
    assert bundle() == "const one=1;\nconst two=one+one;\nexport const three=one+two;\n"


def test_comments_indentation_and_idle_spaces_go(sources):
    sources(
        main='/** A page. */\nexport const a = "// no comment", b = /"\\/\\*/g; // one\n\n  const c = `/* text */`;\n'
        "const d = 4 / 2 / 1; /* two\n lines */"
    )
    assert bundle() == 'export const a="// no comment",b= /"\\/\\*/g;const c=`/* text */`;const d=4 / 2 / 1;\n'


TRICKY = """
const one = (a, b) => ({ sum: a + +b, less: a - -b, up: a++ + b, half: a / 2 / b });
const two = [" a , b ; { c } ", ' = ', ` { ${one( 1, 2 ).sum} , } `, / , ; = /.source, "x ? y".split( " ? " )];
const three = (k) => {
  const list = [...two, k ? .5 : 1, k ?? 2, k ? .25 : two[ 4 ].length];
  if (k) return { k, list }
  else return typeof [] === "object" && !( 1 in {} ) ? { list } : null
}
const four = 3
export const all = JSON.stringify([one(5, 3), two, three(1), three(0), four, 7 & 3 | 8, 2 * 3 ** 2, 9 > 8 === true])
"""


def test_what_is_left_means_the_same(sources, browser):  # noqa: F811  # a fixture
    """Spaces in strings and regular expressions stay, and the lines that need their ends have them."""
    sources(main=TRICKY)
    squeezed = bundle()
    assert len(squeezed) < 0.9 * len(TRICKY)
    with opened(browser, page_of(squeezed, ["all"])) as page:
        page.wait_for_function("window.all")
        found = page.evaluate("all")
    with opened(browser, page_of(TRICKY, ["all"])) as page:
        page.wait_for_function("window.all")
        assert page.evaluate("all") == found
    assert " a , b ; { c } " in found
    assert " , ; = " in found


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        ({"main": 'import { x } from "./a.js";', "a": 'import { y } from "./main.js";'}, "main.js -> a.js -> main.js"),
        ({"main": 'import { x } from "./a.js";'}, "no module 'a.js'"),
        ({"main": 'import { x } from "./a.js";', "a": "const x = 1;"}, "main.js imports x from a.js"),
        (
            {"main": 'import { x } from "./a.js";\nconst y = 1;', "a": "export const x = [1, 2], y = 2;"},
            "y is defined in a.js and in main.js",
        ),
        ({"main": 'import * as all from "./a.js";', "a": "export const x = 1;"}, "main.js: write imports"),
    ],
)  # fmt: skip
def test_what_breaks_the_rules_is_refused(sources, modules, message):
    sources(**modules)
    with pytest.raises(ValueError, match=re.escape(message)):
        bundle()
