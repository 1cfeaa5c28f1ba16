"""Formulas as MathML, made by latex2mathml when the site is built: no script, no font and no LaTeX are needed.

All current browsers draw MathML Core, screen readers speak it, and it is as small as the text.
"""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)


def to_mathml(latex: str, *, display: bool) -> str:
    """Return a formula as MathML; `ValueError` if a command is not known."""
    latex = re.sub(r"\\arg\\(min|max)", r"\\operatorname{arg\1}", latex.strip())
    if display and re.search(r"\\\\|(?<!\\)&", latex) and r"\begin" not in latex:
        latex = rf"\begin{{aligned}}{latex}\end{{aligned}}"
    made = convert(latex, display="block" if display else "inline")
    unknown = re.findall(r"\\[A-Za-z]+", made)  # what the converter does not know it prints as it is
    if unknown:
        raise ValueError(f"latex2mathml does not know {', '.join(sorted(set(unknown)))}: {latex}")
    return made


def _made(node: nodes.Element, *, display: bool) -> str:
    try:
        return to_mathml(node.astext(), display=display)
    except Exception as error:  # of the converter, of many kinds
        LOGGER.warning("a formula cannot be drawn: %s", error, location=node)
        return ""


def visit_inline(self: Any, node: nodes.math) -> None:
    """Write an inline formula."""
    self.body.append(_made(node, display=False))
    raise nodes.SkipNode


def visit_display(self: Any, node: nodes.math_block) -> None:
    """Write a formula on lines of its own, which can be scrolled where it is wider than the screen."""
    self.body.append(self.starttag(node, "div", CLASS="formula", tabindex="0", role="group"))
    for part in re.split(r"\n\s*\n", node.astext()):
        if part.strip():
            self.body.append(_made(nodes.math_block(part, part), display=True))
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_display, None))
    app.connect("config-inited", lambda _, config: setattr(config, "html_math_renderer", "mathml"))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
