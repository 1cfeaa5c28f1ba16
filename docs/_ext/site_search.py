"""Search: decisions, benchmarks and changes are left out, and guides come before the reference.

The front matter of a page may have ``keywords``: words and phrases that readers type, separated by commas. Sphinx
indexes them; `search_scorer.js` puts the page first for them.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from docutils import nodes

DOCS = Path(__file__).resolve().parents[1]
SCORER, MADE = DOCS / "_ext" / "search_scorer.js", DOCS / "_build" / "search_scorer.js"
LEFT_OUT = ("decisions/", "benchmarks/", "project/changes")


@cache
def keywords() -> dict[str, list[str]]:
    """Return the keywords of each page that has some."""
    found = {}
    for path in sorted(DOCS.rglob("*.md")):
        line = re.search(r"^    keywords: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if line and "_build" not in path.parts:
            found[path.relative_to(DOCS).with_suffix("").as_posix()] = line[1].split(", ")
    return found


def write_scorer(_app: Any, config: Any) -> None:
    """Write the script that ranks results, with the keywords of all pages."""
    MADE.parent.mkdir(exist_ok=True)
    text = f"const KEYWORDS = {json.dumps(keywords())};\n{SCORER.read_text(encoding='utf-8')}"
    MADE.write_text(text, encoding="utf-8")
    config.html_search_scorer = str(MADE)


def index(app: Any, doctree: nodes.document) -> None:
    """Keep a page out of the index, or have it index the words of its keywords, of which it knows phrases."""
    name = app.env.docname
    if name.startswith(LEFT_OUT):
        app.env.metadata[name]["nosearch"] = True
    words = {word for phrase in keywords().get(name, []) for word in re.findall(r"\w+", phrase)}
    if words:
        doctree += nodes.meta(name="keywords", content=", ".join(sorted(words)))


def setup(app: Any) -> dict[str, Any]:
    """Connect."""
    app.connect("config-inited", write_scorer)
    app.connect("doctree-read", index)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
