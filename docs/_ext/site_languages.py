"""Two languages: what is in ``zh/`` is Chinese, and the header of every page leads to the other one."""

from __future__ import annotations

from typing import Any

CHINESE = "zh/"


def counterpart(pagename: str, docs: set[str]) -> str:
    """Return the page in the other language: the same one where there is one, else the beginning."""
    if pagename.startswith(CHINESE):
        other = pagename.removeprefix(CHINESE)
        return other if other in docs else "index"
    other = CHINESE + pagename
    return other if other in docs else f"{CHINESE}index"


def on_page(app: Any, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Say which language a page is in, and where the other one is."""
    chinese = pagename.startswith(CHINESE)
    if chinese:
        context["language"] = "zh-CN"
    other = counterpart(pagename, set(app.env.found_docs))
    context["other_language"] = {
        "url": app.builder.get_relative_uri(pagename, other),
        "lang": "en" if chinese else "zh-CN",
        "name": "English" if chinese else "中文",
    }


def setup(app: Any) -> dict[str, Any]:
    """Connect."""
    app.connect("html-page-context", on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
