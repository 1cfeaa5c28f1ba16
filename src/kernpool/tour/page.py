"""Generation of the tour: PNG and SVG pictures, and one self-contained HTML page.

Pictures have words in the reader's language. The page is readable at any width and needs no other file. Every
section executes the code that it prints. Files are written to a temporary folder first, so an interrupted run
leaves no partial tour.
"""

from __future__ import annotations

import base64
import io
import json
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from kernpool.data.atomic_files import replace_file
from kernpool.displays import chinese_font, import_pyplot, without_font_messages
from kernpool.execution.error_messages import abbreviate
from kernpool.execution.progress import Progress
from kernpool.tour.steps import STEPS, Step

# Of the animation, where there is no such font: it has no text that a browser could draw. As in the formulas.
SYMBOLS = {"epoch and loss": "$t$ = {}: $L$ = {:.4f}", "sorted keys": "$x_j$", "sorted queries": "$x_i$"}


class Picture(NamedTuple):
    """Data URL of a picture in the page, and whether the picture is wide (scrolls on a phone instead of shrinking)."""

    url: str
    wide: bool  # has panels side by side: on a phone it scrolls instead of shrinking


class Pictures:
    """Pictures of the tour: written as files to a folder, and returned as data URLs for the page.

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
        """Draw the figures of a section, write them to the folder, and return them as pictures of the page."""
        import matplotlib as mpl

        shown = []
        with mpl.rc_context(self.settings), warnings.catch_warnings(), without_font_messages():
            if self.as_text:
                warnings.filterwarnings("ignore", message="Glyph .* missing from|no font found has")
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


def formula_url(formula: str) -> str:
    """Render a mathtext formula as an SVG data URL."""
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


@dataclass(frozen=True)
class Section:
    """Section of the tour's page: its definition (a `Step`), and its texts, numbers and pictures.

    Parameters
    ----------
    step : Step
        The step.
    seed : int
        Of the data.
    texts : mapping
        Its words: title, paragraphs, captions, names of its numbers, formula in words.
    numbers : mapping of str to str
        What its code computed.
    pictures : sequence of Picture
        What the page embeds.
    variant : str
        Which of several paragraphs is true of this draw of the data.
    """

    step: Step
    seed: int
    texts: Mapping[str, Any]
    numbers: Mapping[str, str]
    pictures: Sequence[Picture]
    variant: str = ""

    def render(self, number: int, names: Mapping[str, str]) -> str:
        """Return the HTML of the section: text, formula, pictures, code and numbers."""
        paragraphs = "".join(
            f"<p>{text.format(**self.numbers)}</p>" for text in self.texts["paragraphs" + self.variant]
        )
        figures = "".join(
            f'<figure><img{" class=wide" if picture.wide else ""} src="{picture.url}" alt="{escape(caption)}">'
            f"<figcaption>{caption}</figcaption></figure>"
            for picture, caption in zip(self.pictures, self.texts["captions"], strict=True)
        )
        rows = "".join(
            f"<tr><th scope='row'>{self.texts['numbers'][name]}</th><td>{escape(value)}</td></tr>"
            for name, value in self.numbers.items()
        )
        return f"""<section id="{self.step.name}"><h2><span>{number}</span> {self.texts["title"]}</h2>
{paragraphs}
<p class="formula"><img src="{formula_url(self.step.formula)}" alt="{escape(self.step.formula)}"></p>
{figures}
<div class="aside"><div class="code"><h3>{names["code"]}</h3>
<pre tabindex="0"><code>{escape(self.step.code_for(self.seed).rstrip())}</code></pre></div>
<div class="numbers"><h3>{names["numbers"]}</h3><table>{rows}</table></div></div></section>"""


def render_page(sections: Sequence[Section], texts: Mapping[str, Any], language: str, seed: int) -> str:
    """Return the HTML page of the whole tour."""
    from kernpool._version import __version__

    names = texts["page"]
    style = files("kernpool.tour").joinpath("style.css").read_text(encoding="utf-8")
    contents = "".join(f'<li><a href="#{section.step.name}">{section.texts["title"]}</a></li>' for section in sections)
    body = "\n".join(section.render(number, names) for number, section in enumerate(sections, start=1))
    return f"""<!doctype html>
<html lang="{"zh-Hans" if language == "zh" else language}"><head><meta charset="utf-8">
<meta name="generator" content="kernpool tour"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{names["title"]}</title><style>
{style}</style></head><body>
<header><h1>{names["title"]}</h1>{"".join(f"<p>{text}</p>" for text in names["introduction"])}</header>
<nav aria-label="{names["contents"]}"><h2>{names["contents"]}</h2><ol>{contents}</ol></nav>
<main>{body}</main>
<footer>{names["footer"].format(version=__version__, seed=seed)}</footer>
</body></html>
"""


LANGUAGES = ("en", "zh")
LARGEST_SEED = 2**53  # exact in every JSON, and small enough for torch and for seeds derived from it
TOUR_FILE = re.compile(r"\d\d-[a-z-]+\.(png|gif)|index\.html")
MARK = b'<meta name="generator" content="kernpool tour">'


def make_tour(
    folder: str | Path, *, language: str = "en", seed: int = 0, force: bool = False, progress: Progress | None = None
) -> Path:
    """Write the tour to `folder`: PNG pictures, an animation, and a self-contained `index.html`.

    Parameters
    ----------
    folder : str or Path
        Where; must be empty, or not exist, or hold a tour.
    language : {"en", "zh"}, default="en"
        English or Simplified Chinese.
    seed : int, default=0
        Seed of the synthetic data.
    force : bool, default=False
        Replace the files of an earlier tour.
    progress : callable, optional
        Called as ``progress(steps_done, steps)``.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        If the language is unknown or the seed out of range.
    FileExistsError
        If the folder holds anything else, or a tour and `force` is false.
    ImportError
        If matplotlib or torch is not installed; the message names the extra.

    Notes
    -----
    Every section executes the very code that it prints, so page and code cannot disagree.
    """
    texts = read_texts(language)
    if not isinstance(seed, int) or not 0 <= seed < LARGEST_SEED:
        raise ValueError(f"seed must be an integer in [0, {LARGEST_SEED}), got {abbreviate(seed)}")
    import_pyplot()
    import kernpool.torch  # noqa: F401  # to say at once that the extra is missing, before any work

    folder = Path(folder).resolve()
    check_folder(folder, force)
    with _staging(folder) as temporary:
        pictures = Pictures(temporary, language, fallback_words=read_texts("en")["words"])
        namespace: dict[str, Any] = {}
        sections = []
        for number, step in enumerate(STEPS, start=1):
            _run(step, seed, namespace)
            shown = pictures.draw(number, step, namespace, texts["words"])
            variant = step.variant(namespace)
            sections.append(Section(step, seed, texts["steps"][step.name], step.numbers(namespace), shown, variant))
            if progress is not None:
                progress(number, len(STEPS))
        page = render_page(sections, texts, language, seed)
        (temporary / "index.html").write_text(page, encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for new in _tour_files(temporary):  # the page comes last: where it is, the tour is whole
            replace_file(new, folder / new.name)
    return folder / "index.html"


def check_folder(folder: Path, force: bool) -> None:
    """Raise an error unless the folder is missing or empty, or holds only a tour and `force` is true.

    Its parent folder must exist.
    """
    if not folder.parent.is_dir():
        raise FileNotFoundError(f"the folder {folder.parent} for {folder.name} does not exist; make it first")
    if not folder.exists():
        return
    if not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, and a folder is to be written; choose another name")
    others = sorted(path.name for path in set(folder.iterdir()) - set(_tour_files(folder)))
    if others:
        raise FileExistsError(f"{folder} holds other files, {others[0]!r} for one; choose another or an empty folder")
    page = folder / "index.html"
    if any(folder.iterdir()) and not (page.is_file() and MARK in page.read_bytes()[:1000]):
        raise FileExistsError(f"{folder} holds pictures or a page of something else; choose another or an empty folder")
    if any(folder.iterdir()) and not force:
        raise FileExistsError(f"{folder} holds a tour already; choose another name, or replace it with force=True")


def _tour_files(folder: Path) -> list[Path]:
    """Return the paths of the pictures and the page of a tour in a folder, the page last."""
    return sorted(path for path in folder.iterdir() if TOUR_FILE.fullmatch(path.name))


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder on the same disk as `folder`: inside `folder` if that exists, else next to it."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix=".kernpool-", dir=folder if folder.is_dir() else folder.parent)
    except OSError as error:
        raise OSError(error.errno, f"cannot write there ({error.strerror})", str(folder)) from None
    with temporary as name:
        yield Path(name)


def _run(step: Step, seed: int, namespace: dict[str, Any]) -> None:
    """Execute the code of a section in the shared namespace of all sections, and close the figures that it opens.

    `Pictures` draws them again, in the language of the page.
    """
    plt = import_pyplot()
    before = set(plt.get_fignums())
    exec(compile(step.code_for(seed), f"<tour: {step.name}>", "exec"), namespace)
    for figure in set(plt.get_fignums()) - before:
        plt.close(figure)


def read_texts(language: str) -> dict[str, Any]:
    """Return the texts of the tour in a given language."""
    if language not in LANGUAGES:
        raise ValueError(f"unknown language {language!r}; the tour is available in {' and '.join(LANGUAGES)}")
    texts: dict[str, Any] = json.loads(files("kernpool.tour").joinpath(f"{language}.json").read_text(encoding="utf-8"))
    return texts
