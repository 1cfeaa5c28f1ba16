"""Pictures of the tour: each as a PNG file and as an SVG for the page, with words in the reader's language."""

from __future__ import annotations

import base64
import io
import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from kernpool.displays import import_pyplot
from kernpool.pages.tour.step import Step

# Fonts with Simplified Chinese, as systems name them.
CHINESE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans SC", "Source Han Sans SC", "Source Han Sans CN", "PingFang SC", "Microsoft YaHei",
    "Heiti SC", "Heiti TC", "STHeiti", "SimHei", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Noto Sans CJK JP",
    "Noto Serif CJK SC", "Arial Unicode MS",
)  # fmt: skip


# Of the animation, where there is no such font: it has no text that a browser could draw. As in the formulas.
SYMBOLS = {"epoch and loss": "$t$ = {}: $L$ = {:.4f}", "sorted keys": "$x_j$", "sorted queries": "$x_i$"}


class Picture(NamedTuple):
    """A picture as the page embeds it."""

    url: str
    wide: bool  # has panels side by side: on a phone it scrolls instead of shrinking


class Pictures:
    """Draw steps into a folder, and return what the page embeds.

    matplotlib brings no Chinese glyphs. With a Chinese font on the system, letters become outlines. Without
    one, the page's SVG keeps them as text for the browser's fonts, the animation has symbols, and the PNG files have
    English words.

    Parameters
    ----------
    folder : Path
        Where the PNG files go.
    language : str
        Of the words.
    fallback_words : mapping
        English words.
    """

    def __init__(self, folder: Path, language: str, fallback_words: Mapping[str, str]) -> None:
        self.folder = folder
        self.fallback_words = fallback_words
        font = chinese_font() if language == "zh" else None
        self.as_text = language == "zh" and font is None
        self.settings: Any = {  # matplotlib's own type lists every known setting
            # Glyph by glyph: some Chinese fonts have no minus sign, and mathtext takes the first font alone.
            "font.family": ["DejaVu Sans", font or "sans-serif"],
            "svg.fonttype": "none" if self.as_text else "path",
            "svg.hashsalt": "kernpool",
            "axes.unicode_minus": False,
            "font.size": 11,
        }

    def draw(self, number: int, step: Step, namespace: dict[str, Any], words: Mapping[str, str]) -> list[Picture]:
        """Draw a step; return its pictures for the page."""
        import matplotlib as mpl

        shown = []
        with mpl.rc_context(self.settings), warnings.catch_warnings(), _without_notes_on_fonts():
            if self.as_text:
                warnings.filterwarnings("ignore", message="Glyph .* missing from")
            for name, figure in step.draw(namespace, words).items():
                buffer = io.BytesIO()
                figure.savefig(buffer, format="svg", metadata={"Date": None})
                shown.append(Picture(_data_url("image/svg+xml", buffer.getvalue()), figure.get_figwidth() > 8))
                if not self.as_text:
                    figure.savefig(self._path(number, name), dpi=150)
                import_pyplot().close(figure)
            if self.as_text:
                for name, figure in step.draw(namespace, self.fallback_words).items():
                    figure.savefig(self._path(number, name), dpi=150)
                    import_pyplot().close(figure)
            if step.animate is not None:
                path = self.folder / f"{number:02d}-{step.name}.gif"
                step.animate(namespace, {**words, **SYMBOLS} if self.as_text else words, path)
                shown.append(Picture(_data_url("image/gif", path.read_bytes()), wide=True))
        return shown

    def _path(self, number: int, name: str) -> Path:
        return self.folder / f"{number:02d}-{name}.png"


@contextmanager
def _without_notes_on_fonts() -> Iterator[None]:
    """Keep matplotlib from logging that a font has one weight only, as most Chinese ones."""
    logger = logging.getLogger("matplotlib.font_manager")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def chinese_font() -> str | None:
    """Return the name of a font with Simplified Chinese, None if there is none.

    matplotlib keeps a list of fonts from the day of its first use; those that were installed since are read here.
    """
    from matplotlib import font_manager

    listed = {entry.fname for entry in font_manager.fontManager.ttflist}
    for new in ([], [path for path in font_manager.findSystemFonts() if path not in listed]):
        for path in new:
            with suppress(Exception):  # whatever is wrong with a font of the system
                font_manager.fontManager.addfont(path)
        known = set(font_manager.get_font_names())
        found = next((name for name in CHINESE_FONTS if name in known), None)
        if found is not None:
            return found
    return None


def formula_url(formula: str) -> str:
    """Typeset a formula as an SVG data URL."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    buffer = io.BytesIO()
    with mpl.rc_context({"mathtext.fontset": "cm", "svg.fonttype": "path", "svg.hashsalt": "kernpool"}):
        figure = Figure()
        figure.text(0, 0, f"${formula}$", fontsize=15)
        figure.savefig(
            buffer, format="svg", bbox_inches="tight", pad_inches=0.02, transparent=True, metadata={"Date": None}
        )
    return _data_url("image/svg+xml", buffer.getvalue())


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
