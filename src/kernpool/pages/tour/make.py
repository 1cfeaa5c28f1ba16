"""From steps and texts to a folder of pictures and one page."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from kernpool.data.files import replace_file
from kernpool.displays import import_pyplot
from kernpool.execution.messages import abbreviate
from kernpool.execution.progress import Progress
from kernpool.pages.tour.page import Section, render_page
from kernpool.pages.tour.pictures import Pictures
from kernpool.pages.tour.step import Step
from kernpool.pages.tour.steps import STEPS

LANGUAGES = ("en", "zh")
LARGEST_SEED = 2**53  # exact in every JSON, and small enough for torch and for seeds derived from it
TOUR_FILE = re.compile(r"\d\d-[a-z-]+\.(png|gif)|index\.html")
MARK = b'<meta name="generator" content="kernpool tour">'


def make_tour(
    folder: str | Path, *, language: str = "en", seed: int = 0, force: bool = False, progress: Progress | None = None
) -> Path:
    """Write the tour: PNG pictures, an animation, and a self-contained `index.html`.

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
        namespace: dict[str, Any] = {"seed": seed}
        sections = []
        for number, step in enumerate(STEPS, start=1):
            _run(step, namespace)
            shown = pictures.draw(number, step, namespace, texts["words"])
            variant = step.variant(namespace)
            sections.append(Section(step, texts["steps"][step.name], step.numbers(namespace), shown, variant))
            if progress is not None:
                progress(number, len(STEPS))
        page = render_page(sections, texts, language, seed)
        (temporary / "index.html").write_text(page, encoding="utf-8")
        folder.mkdir(exist_ok=True)
        for new in _tour_files(temporary):  # the page comes last: where it is, the tour is whole
            replace_file(new, folder / new.name)
    return folder / "index.html"


def check_folder(folder: Path, force: bool) -> None:
    """Raise if the tour cannot be written to `folder` without touching anything else."""
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
    """Return the files of a tour in a folder, the page last."""
    return sorted(path for path in folder.iterdir() if TOUR_FILE.fullmatch(path.name))


@contextmanager
def _staging(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder on the same disk; within `folder` if it exists, whose parent may not be writable."""
    try:
        temporary = tempfile.TemporaryDirectory(prefix=".kernpool-", dir=folder if folder.is_dir() else folder.parent)
    except OSError as error:
        raise OSError(error.errno, f"cannot write there ({error.strerror})", str(folder)) from None
    with temporary as name:
        yield Path(name)


def _run(step: Step, namespace: dict[str, Any]) -> None:
    """Execute the code of a step; the figures that it draws on the way are drawn again with the reader's words."""
    plt = import_pyplot()
    before = set(plt.get_fignums())
    exec(compile(step.code, f"<tour: {step.name}>", "exec"), namespace)
    for figure in set(plt.get_fignums()) - before:
        plt.close(figure)


def read_texts(language: str) -> dict[str, Any]:
    """Read the words of the tour in a language."""
    if language not in LANGUAGES:
        raise ValueError(f"unknown language {language!r}; the tour is told in {' and '.join(LANGUAGES)}")
    texts: dict[str, Any] = json.loads(
        files("kernpool.pages.tour").joinpath(f"{language}.json").read_text(encoding="utf-8")
    )
    return texts
