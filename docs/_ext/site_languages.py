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
    "Section Navigation": "本章目录",
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


def links_of_bar(app: Any, pagename: str) -> str:
    """Return the links of the bar of a Chinese page: to Chinese pages where there are some."""
    titles, links = app.env.titles, []
    for english in app.env.toctree_includes[app.config.root_doc]:
        page = CHINESE + english if CHINESE + english in titles else english
        title = WORDS.get(page, titles[page].astext()) + ("（英文）" if page == english else "")
        here = ' aria-current="page"' if page == pagename else ""
        url = app.builder.get_relative_uri(pagename, page)
        link = f'<a class="nav-link nav-internal" href="{url}"{here}>{escape(title)}</a>'
        links.append(f'<li class="nav-item{here and " current active"}">{link}</li>')
    return "\n".join(links)


def neighbours(app: Any, pagename: str) -> dict[str, dict[str, str]]:
    """Return the Chinese pages before and after one, which Sphinx only knows of those below its own first page."""
    order = app.env.toctree_includes[HOME]
    pairs = [("next", b) for a, b in pairwise(order) if a == pagename]
    pairs += [("prev", a) for a, b in pairwise(order) if b == pagename]
    return {
        name: {"link": app.builder.get_relative_uri(pagename, page), "title": app.env.titles[page].astext()}
        for name, page in pairs
    }


def add_switch(app: Any, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Say where the page in the other language is, for the template of the header."""
    other = counterpart(pagename, set(app.env.found_docs))
    chinese = pagename.startswith(CHINESE)
    context["other_language"] = {
        "url": app.builder.get_relative_uri(pagename, other),
        "lang": "en" if chinese else "zh-CN",
        "name": "English" if chinese else "中文",
    }


def translate(app: Any, pagename: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    """Put Chinese words and links into the theme's parts of a Chinese page."""
    if pagename.startswith(CHINESE):
        context.update(
            language="zh-CN",
            root_doc=HOME,
            gettext=lambda text: WORDS.get(text, text),
            generate_header_nav_html=lambda **_: links_of_bar(app, pagename),
            theme_search_bar_text=WORDS["Search"],
            **neighbours(app, pagename),
        )


def setup(app: Any) -> dict[str, Any]:
    """Connect before the theme, which looks at its templates, and after it, which has set what is replaced."""
    app.connect("html-page-context", add_switch, priority=100)
    app.connect("html-page-context", translate, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
