"""Two languages: what is in ``zh/`` is Chinese, and the header of every page leads to the other one.

On Chinese pages the words of the theme are Chinese as well, and its bar leads to Chinese pages where there are some.
"""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

CHINESE = "zh/"
HOME = "zh/index"
GUIDES = "guides/"
# What templates of the theme and of Sphinx say; the first entries are links of the bar, by page.
WORDS = {
    "guides/index": "指南",
    "gallery/index": "示例",
    "coming-from/index": "对照表",
    "api/index": "参考手册",
    "project/index": "项目",
    "Search": "搜索",
    "On this page": "本页内容",
    "Section Navigation": "中文页面",
    "Site navigation": "网站导航",
    "Skip to main content": "跳到正文",
    "Back to top": "回到顶部",
    "Collapse Sidebar": "收起侧栏",
    "Expand Sidebar": "展开侧栏",
    "Breadcrumb": "所在位置",
    "Home": "首页",
    "Color mode": "颜色模式",
    "Light": "浅色",
    "Dark": "深色",
    "System Settings": "跟随系统",
    "previous": "上一页",
    "previous page": "上一页",
    "next": "下一页",
    "next page": "下一页",
}


def counterpart(pagename: str, docs: set[str]) -> str:
    """Return the page in the other language, which may be a guide, or the first page of that language."""
    if pagename.startswith(CHINESE):
        name = pagename.removeprefix(CHINESE)
        return next((other for other in (name, GUIDES + name) if other in docs), "index")
    other = CHINESE + pagename.removeprefix(GUIDES)
    return other if other in docs else HOME


def change_lists(app: Any, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Let the bar and the list beside a Chinese page lead to Chinese pages where there are some."""
    if not pagename.startswith(CHINESE):
        return
    titles, included = app.env.titles, app.env.toctree_includes

    def links(pages: list[str], item: str, link: str) -> str:
        found = []
        for page in pages:
            title = titles[page].astext() if page.startswith(CHINESE) else f"{WORDS.get(page, page)} EN"
            here = ' aria-current="page"' if page == pagename else ""
            url = app.builder.get_relative_uri(pagename, page) or "#"
            anchor = f'<a class="{link}" href="{url}"{here}>{escape(title)}</a>'
            found.append(f'<li class="{item}{here and " current active"}">{anchor}</li>')
        return "\n".join(found)

    bar = [CHINESE + page if CHINESE + page in titles else page for page in included[app.config.root_doc]]
    context["generate_header_nav_html"] = lambda **_: links(bar, "nav-item", "nav-link nav-internal")
    beside = links(included[HOME], "toctree-l1", "reference internal")
    context["generate_toctree_html"] = lambda *_, **__: f'<ul class="nav bd-sidenav">{beside}</ul>'


def neighbours(app: Any, pagename: str) -> dict[str, dict[str, str]]:
    """Return the Chinese pages before and after one, which Sphinx only knows of those below its own first page."""
    found = {}
    for before, after in pairwise(app.env.toctree_includes[HOME]):
        if before == pagename:
            found["next"] = after
        if after == pagename:
            found["prev"] = before
    return {
        name: {"link": app.builder.get_relative_uri(pagename, page), "title": app.env.titles[page].astext()}
        for name, page in found.items()
    }


def on_page(app: Any, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Say which language a page is in, and where the other one is."""
    chinese = pagename.startswith(CHINESE)
    if chinese:
        context.update(
            language="zh-CN",
            root_doc=HOME,
            gettext=lambda text: WORDS.get(text, text),
            theme_search_bar_text=WORDS["Search"],
            **neighbours(app, pagename),
        )
    other = counterpart(pagename, set(app.env.found_docs))
    context["other_language"] = {
        "url": app.builder.get_relative_uri(pagename, other),
        "lang": "en" if chinese else "zh-CN",
        "name": "English" if chinese else "中文",
    }


def setup(app: Any) -> dict[str, Any]:
    """Connect: the theme tries templates with what `on_page` says, and makes the lists that `change_lists` replaces."""
    app.connect("html-page-context", on_page)
    app.connect("html-page-context", change_lists, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
