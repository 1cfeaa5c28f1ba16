"""The page: one HTML file that needs nothing else, readable at any width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Any

from kernpool.pages.tour.pictures import Picture, formula_url
from kernpool.pages.tour.step import Step


@dataclass(frozen=True)
class Section:
    """A step with everything that was made of it.

    Parameters
    ----------
    step : Step
        The step.
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
    texts: Mapping[str, Any]
    numbers: Mapping[str, str]
    pictures: Sequence[Picture]
    variant: str = ""

    def render(self, number: int, names: Mapping[str, str]) -> str:
        """Return the section as HTML."""
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
<pre tabindex="0"><code>{escape(self.step.code.rstrip())}</code></pre></div>
<div class="numbers"><h3>{names["numbers"]}</h3><table>{rows}</table></div></div></section>"""


def render_page(sections: Sequence[Section], texts: Mapping[str, Any], language: str, seed: int) -> str:
    """Return the whole page."""
    from kernpool import __version__

    names = texts["page"]
    style = files("kernpool.pages.tour").joinpath("style.css").read_text(encoding="utf-8")
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
