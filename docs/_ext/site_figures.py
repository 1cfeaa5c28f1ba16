"""Pictures that are committed, for readers at a forge, are drawn again by the build; the site shows what it has drawn.

Each has a script of its own. `PICTURES` says which, and what else it is made of.
"""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

from docutils import nodes
from site_cache import DOCS, ROOT, made

BENCHMARKS = ROOT / "benchmarks"
DRAWN = "_build/drawn"  # relative to the sources, as Sphinx wants it


class Picture(NamedTuple):
    """A group of pictures: the files that it is made of, and what draws them into a folder."""

    sources: tuple[Path, ...]
    draw: Callable[[Path], None]


def _start(folder: Path) -> None:
    script = runpy.run_path(str(DOCS / "start_picture.py"))
    for name in script["WORDS"]:
        script["draw_start_picture"](folder / name)


def _quick_start(folder: Path) -> None:
    runpy.run_path(str(DOCS / "quick_start_picture.py"))["draw_quick_start_picture"](folder / "quick-start.png")


def _smoothing(folder: Path) -> None:
    runpy.run_path(str(DOCS / "smoothing_picture.py"))["draw_smoothing_picture"](folder / "smoothing.png")


def _subpackages(folder: Path) -> None:
    script = runpy.run_path(str(DOCS / "subpackages.py"))
    (folder / "subpackages.svg").write_text(script["draw"](script["imports"]()), encoding="utf-8")


def _peers(folder: Path) -> None:
    """Draw the comparison with peers from the stored measurements."""
    with patch.object(sys, "path", [str(BENCHMARKS), *sys.path]):
        import compare_report

        results = json.loads(compare_report.RESULTS.read_text(encoding="utf-8"))
        with patch.object(compare_report, "REPORTS", folder):
            compare_report.draw(results)


PICTURES = {
    "start": Picture((DOCS / "start_picture.py",), _start),
    "quick-start": Picture((DOCS / "quick_start_picture.py",), _quick_start),
    "smoothing": Picture((DOCS / "smoothing_picture.py",), _smoothing),
    "subpackages": Picture((DOCS / "subpackages.py", ROOT / "pyproject.toml"), _subpackages),
    "peers": Picture(
        (BENCHMARKS / "compare_report.py", BENCHMARKS / "cases.py", DOCS / "benchmarks" / "peers.json"), _peers
    ),
}


def draw_all(_app: Any = None) -> None:
    """Draw what has changed since the last build."""
    (DOCS / DRAWN).mkdir(parents=True, exist_ok=True)
    for name, picture in PICTURES.items():
        of = Path(__file__).read_text(encoding="utf-8") + "".join(
            source.read_text(encoding="utf-8") for source in picture.sources
        )
        for file in made(f"pictures-{name}", of, picture.draw).iterdir():
            shutil.copy2(file, DOCS / DRAWN / file.name)


def show_what_was_drawn(_app: Any, doctree: nodes.document) -> None:
    """Let pages show the pictures of this build in place of the committed ones."""
    for image in doctree.findall(nodes.image):
        drawn = DOCS / DRAWN / os.path.basename(image["uri"])  # noqa: PTH119  # a link, no path
        if "://" not in image["uri"] and drawn.exists() and "gallery" not in image["uri"]:
            image["uri"] = f"/{DRAWN}/{drawn.name}"
            if drawn.suffix == ".svg":
                image["classes"].append("dark-light")  # has colors of its own for dark pages


def setup(app: Any) -> dict[str, Any]:
    """Draw at the beginning, and before Sphinx collects pictures."""
    app.connect("builder-inited", draw_all)
    app.connect("doctree-read", show_what_was_drawn, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
