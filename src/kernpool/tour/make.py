"""From steps and texts to a folder of pictures and one page."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from kernpool.displays import import_pyplot
from kernpool.files import whole_folder
from kernpool.progress import Progress
from kernpool.tour.page import Section, render_page
from kernpool.tour.pictures import Pictures
from kernpool.tour.steps import STEPS, Step

LANGUAGES = ("en", "zh")


def make_tour(
    folder: str | Path, *, language: str = "en", seed: int = 0, force: bool = False, progress: Progress | None = None
) -> Path:
    """Write the tour: PNG pictures, an animation, and a self-contained `index.html`.

    Parameters
    ----------
    folder : str or Path
        Where; must be empty or not exist.
    language : {"en", "zh"}, default="en"
        English or Simplified Chinese.
    seed : int, default=0
        Seed of the synthetic data.
    force : bool, default=False
        Replace an earlier tour (and nothing but a tour).
    progress : callable, optional
        Called as ``progress(steps_done, steps)``.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    ValueError
        If the language is unknown or the seed negative.
    FileExistsError
        If the folder is not empty.
    ImportError
        If matplotlib or torch is not installed; the message names the extra.

    Notes
    -----
    Every section executes the very code that it prints, so page and code cannot disagree.
    """
    texts = read_texts(language)
    if not isinstance(seed, int) or seed < 0:
        raise ValueError(f"seed must be an integer of at least 0, got {seed!r}")
    import_pyplot()
    import kernpool.torch  # noqa: F401  # to say at once that the extra is missing, before any work

    folder = Path(folder)
    if force and folder.is_dir() and any(folder.iterdir()) and not is_tour(folder):
        raise FileExistsError(f"{folder} is not empty and is no tour, so it is not replaced; choose another name")
    with whole_folder(folder, force=force) as temporary:
        pictures = Pictures(temporary, language, fallback_words=read_texts("en")["words"])
        namespace: dict[str, Any] = {"seed": seed}
        sections = []
        for number, step in enumerate(STEPS, start=1):
            _run(step, namespace)
            shown = pictures.draw(number, step, namespace, texts["words"])
            sections.append(Section(step, texts["steps"][step.name], step.numbers(namespace), shown))
            if progress is not None:
                progress(number, len(STEPS))
        page = render_page(sections, texts, language, seed)
        (temporary / "index.html").write_text(page, encoding="utf-8")
    return folder / "index.html"


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
    texts: dict[str, Any] = json.loads(files("kernpool.tour").joinpath(f"{language}.json").read_text(encoding="utf-8"))
    return texts


def is_tour(folder: Path) -> bool:
    """Tell whether a folder holds a tour."""
    page = folder / "index.html"
    return page.is_file() and 'name="generator" content="kernpool tour"' in page.read_text(encoding="utf-8")[:2000]
