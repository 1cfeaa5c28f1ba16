"""The page: one HTML file that needs nothing else, readable at any width."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from kernpool.pages.tour.pictures import Picture, formula_url
from kernpool.pages.tour.steps import Step


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
    contents = "".join(f'<li><a href="#{section.step.name}">{section.texts["title"]}</a></li>' for section in sections)
    body = "\n".join(section.render(number, names) for number, section in enumerate(sections, start=1))
    return f"""<!doctype html>
<html lang="{"zh-Hans" if language == "zh" else language}"><head><meta charset="utf-8">
<meta name="generator" content="kernpool tour"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{names["title"]}</title><style>{_STYLE}</style></head><body>
<header><h1>{names["title"]}</h1>{"".join(f"<p>{text}</p>" for text in names["introduction"])}</header>
<nav aria-label="{names["contents"]}"><h2>{names["contents"]}</h2><ol>{contents}</ol></nav>
<main>{body}</main>
<footer>{names["footer"].format(version=__version__, seed=seed)}</footer>
</body></html>
"""


_STYLE = """
:root{color-scheme:light;--ink:#1b1b1f;--soft:#5b5d66;--line:#dcdde2;--accent:#a31900;--paper:#fff;--panel:#f6f6f8}
*{box-sizing:border-box}
html{scroll-behavior:smooth}
body{margin:0 auto;padding:0 1.25rem 4rem;max-width:60rem;background:var(--paper);color:var(--ink);
font:1.05rem/1.65 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","PingFang SC","Microsoft YaHei",
"Noto Sans CJK SC",sans-serif}
header{padding:3rem 0 1rem;border-bottom:3px solid var(--accent)}
h1{font-size:clamp(1.7rem,5vw,2.6rem);line-height:1.2;margin:0 0 1rem}
h2{font-size:clamp(1.3rem,3.5vw,1.7rem);line-height:1.3;margin:0 0 .8rem}
h2 span{color:var(--accent);margin-right:.3em}
h3{font-size:.85rem;letter-spacing:.04em;color:var(--soft);margin:0 0 .4rem;font-weight:600}
nav{margin:1.5rem 0;padding:1rem 1.25rem;background:var(--panel);border-radius:.5rem}
nav h2{font-size:1rem;margin:0 0 .3rem}
nav ol{margin:0;padding-left:1.6rem;columns:18rem 2;column-gap:2.5rem}
nav li{break-inside:avoid}
a{color:var(--accent)}
section{padding:2.2rem 0 1.2rem;border-bottom:1px solid var(--line);scroll-margin-top:.5rem}
p{margin:0 0 .9rem}
.formula{overflow-x:auto;margin:1rem 0;padding:.6rem 0}
.formula img{height:auto;max-width:100%;vertical-align:middle;display:block;margin:0 auto}
figure{margin:1.2rem 0}
figure img{display:block;max-width:100%;height:auto;margin:0 auto}
figcaption{color:var(--soft);font-size:.92rem;text-align:center;margin-top:.4rem}
.aside{display:grid;grid-template-columns:minmax(0,1fr);gap:1.25rem;margin-top:1.2rem}
pre{margin:0;padding:.9rem 1rem;background:var(--panel);border-radius:.5rem;overflow-x:auto;
font:.82rem/1.55 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{padding:.35rem .2rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top;font-weight:400}
td{text-align:right;font-variant-numeric:tabular-nums;font-weight:600}
th{color:var(--soft)}
footer{padding-top:1.5rem;color:var(--soft);font-size:.9rem}
@media(max-width:44rem){header{padding-top:1.5rem}body{padding:0 1rem 3rem}
figure{overflow-x:auto}figure img.wide{max-width:none;width:42rem}figcaption{position:sticky;left:0}
figure:has(.wide) figcaption::after{content:" ⇄";color:var(--accent);font-weight:700}}
:lang(zh) em{font-style:normal;text-emphasis:filled dot;text-emphasis-position:under right}
@media print{nav{display:none}section{break-inside:avoid}}
"""
