"""The code of a page in Markdown: its blocks, in the order of the page, and what each is to be done with.

A block is fenced and says its language. An HTML comment right before it may say that it is not run, and why, or which
test runs it in its place, or what has to run before it but would only distract a reader::

    <!-- not run: needs two machines -->
    <!-- run by tests/docs/test_clusters.py -->
    <!-- run with: "tcp://10.0.0.1:8786" => address -->
    <!-- run first
    X, y = ...
    -->
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> {0,3})(?P<ticks>`{3,}|~{3,}|:{3,})(?P<info>[^`\n]*)$")
MARK = re.compile(r"<!--\s*(?P<kind>not run:|run by|run with:|run first)\s*(?P<rest>.*?)\s*-->", re.DOTALL)
INDENTED = re.compile(r"(?:    |\t)\S")
# What no test could run: words and pictures in fixed pitch, and what Sphinx makes of a block.
WORDS = {"text", "console", "toml", "yaml", "json", "bibtex", "html", "r", "stata", "mermaid"}


class Block(NamedTuple):
    """A block of a page, or the hidden lines before one."""

    page: Path
    line: int  # of its first line of code, from 1
    language: str  # "python", "pycon", "sh", "quotation", or one of WORDS
    code: str
    source: str = ""  # of a quotation
    mark: str = ""  # "not run:", "run by"
    reason: str = ""

    @property
    def place(self):
        """For messages."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def pages():
    """All pages of the repository that somebody wrote."""
    made = {"_build", "gallery", "items", ".venv", "demo", "node_modules"}
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    return sorted(page for page in found if not made & set(page.relative_to(ROOT).parts))


def language_of(info, code):
    """The language of a fence, and what it quotes."""
    language, _, rest = info.strip().partition(" ")
    if language.startswith("{"):
        return "directive", ""
    if language == "python" and rest:
        return "quotation", rest
    if language == "python" and code.lstrip().startswith(">>>"):
        return "pycon", ""
    return {"bash": "sh", "shell": "sh"}.get(language, language), ""


def blocks(page):
    """Blocks of a page, those that only set up included; what stands before a block has its mark."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, mark, i = [], None, 0
    while i < len(lines):
        if lines[i].lstrip().startswith("<!--"):
            end = next(j for j in range(i, len(lines)) if "-->" in lines[j])
            mark = MARK.fullmatch("\n".join(lines[i : end + 1]).strip())
            if mark and mark["kind"] == "run first":
                found.append(Block(page, i + 2, "python", mark["rest"]))
                mark = None
            i = end + 1
            continue
        fence = FENCE.match(lines[i])
        if not fence or fence["ticks"].startswith(":"):
            if INDENTED.match(lines[i]) and not in_list(lines, i) and (i == 0 or not lines[i - 1].strip()):
                found.append(Block(page, i + 1, "indented", lines[i]))
            mark = mark if not lines[i].strip() else None
            i += 1
            continue
        end = next(j for j in range(i + 1, len(lines)) if lines[j].strip() == fence["ticks"])
        code = "\n".join(line.removeprefix(fence["indent"]) for line in lines[i + 1 : end]) + "\n"
        language, source = language_of(fence["info"], code)
        kind, reason = (mark["kind"], mark["rest"]) if mark else ("", "")
        if kind == "run with:":
            written, instead = reason.split(" => ")
            assert written in code, f"{page.name} has no {written} to run with {instead}"
            code, kind, reason = code.replace(written, instead), "", ""
        found.append(Block(page, i + 2, language, code, source, kind, reason))
        mark, i = None, end + 1
    return found


def in_list(lines, i):
    """Whether an indented line goes on with an item of a list: the last line that is not indented begins one."""
    before = next((line for line in reversed(lines[:i]) if line.strip() and not line.startswith(("  ", "\t"))), "")
    return bool(re.match(r"([-*+]|\d+[.)]) ", before)) or before.startswith(("[^", ": "))


def cells(page):
    """Rows of all tables of a page, cell by cell, each with the head of its table."""
    head = None
    for line in page.read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            head = None
            continue
        row = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip())[1:-1]]
        if head is None:
            head = row
        elif not re.fullmatch(r":?-+:?", row[0]):
            yield dict(zip(head, row, strict=True))
