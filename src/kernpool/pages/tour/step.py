"""What a section of the tour is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Namespace = dict[str, Any]
Words = Mapping[str, str]


@dataclass(frozen=True)
class Step:
    """One section of the page.

    Parameters
    ----------
    name : str
        Key of its texts, and part of its file names.
    formula : str
        In mathtext.
    code : str
        What a reader would type; executed in the namespace of the steps before it.
    numbers : callable
        From the namespace to the numbers of the section, formatted.
    draw : callable
        From namespace and words to figures by name.
    animate : callable or None
        From namespace, words and path to an animation.
    variant : callable
        From the namespace to the suffix of the paragraphs that are true of it, usually none.
    """

    name: str
    formula: str
    code: str
    numbers: Callable[[Namespace], dict[str, str]]
    draw: Callable[[Namespace, Words], dict[str, Any]]
    animate: Callable[[Namespace, Words, Path], object] | None = None
    variant: Callable[[Namespace], str] = lambda _: ""
