"""Look at the pages that were built: ``python docs/check_site.py docs/_build/html``.

A link that leads nowhere, a heading that a link names and no page has, or anything that is loaded from elsewhere is
printed, and the exit status is 1. No network is needed; links to other sites are for readers, and are not followed.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself when it opens a page, as (element, attribute).
LOADED = {
    ("script", "src"), ("img", "src"), ("img", "srcset"), ("iframe", "src"), ("source", "src"), ("video", "src"),
    ("audio", "src"), ("object", "data"), ("embed", "src"), ("link", "href"),
}  # fmt: skip
SAME_PLACE = {"canonical", "alternate"}  # relations of <link> that load nothing


class Page(HTMLParser):
    """What a page links to, loads, and can be linked to."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect."""
        given = {name: value or "" for name, value in attrs}
        self.anchors.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag == "link" and given.get("rel") in SAME_PLACE:
            return
        self.loaded += [value for name, value in given.items() if (tag, name) in LOADED and value]


def read(path: Path) -> Page:
    """Read a page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def is_elsewhere(link: str) -> bool:
    """Tell whether a link has a host of its own."""
    return bool(urlsplit(link).netloc)


def problems_of(name: str, pages: dict[str, Page], folder: Path) -> list[str]:
    """Return what is wrong with a page, a line each."""
    page = pages[name]
    found = [f"{name}: loads {link} from elsewhere" for link in page.loaded if is_elsewhere(link)]
    for link in {*page.links, *page.loaded}:
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:  # other sites, data:, mailto:
            continue
        target = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
        target = target.resolve()
        if target.is_dir():
            target = target / "index.html"
        if not target.is_file() or not target.is_relative_to(folder.resolve()):
            found.append(f"{name}: {link} leads nowhere")
            continue
        other = pages.get(target.relative_to(folder.resolve()).as_posix())
        fragment = unquote(parts.fragment)
        if fragment and other is not None and fragment not in other.anchors and not fragment.startswith(":~:"):
            found.append(f"{name}: {link} names a place that is not there")
    return found


def check(folder: Path) -> list[str]:
    """Return what is wrong with the pages of a folder."""
    names = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.html"))}
    # The theme leaves templates among its styles, which nobody opens.
    pages = {name: read(path) for name, path in names.items() if not name.startswith("_static/")}
    if not pages:
        return [f"{folder} has no pages: run make docs"]
    return [problem for name in pages for problem in problems_of(name, pages, folder)]


def main(arguments: list[str]) -> int:
    """Print what is wrong."""
    if len(arguments) != 1:
        print("usage: python docs/check_site.py FOLDER", file=sys.stderr)
        return 2
    found = check(Path(arguments[0]))
    print("\n".join(found) or "every link leads somewhere, and nothing is loaded from elsewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
