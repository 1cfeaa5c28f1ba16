"""One ES module of the small ones in `js/`: imports resolved; comments, indentation and idle spaces left out.

Modules of a page that has no server cannot import each other, so they become one. What keeps this simple is a rule for
the sources: one statement ``import {a, b} from "./x.js";`` per line, named exports only but in the entry, and no name
twice at the top level of all files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from kernpool.kernels import Kernel
from kernpool.pages.explorer.kernels import kernels_source

FOLDER = Path(__file__).parent
IMPORT = re.compile(r'^import\s+\{([^}]*)\}\s+from\s+"\./([\w.]+)";\s*$', re.MULTILINE)
EXPORT = re.compile(r"^export\s+(?=(?:async\s+)?function|const|let|class)", re.MULTILINE)
TOP_LEVEL = re.compile(
    r"^(?P<export>export\s+)?(?:async\s+)?(?P<kind>function\*?|const|let|var|class)\s+(?P<name>[\w$]+)", re.MULTILINE
)
# A slash begins a regular expression behind an operator or an opening bracket; behind a value it divides.
TOKEN = re.compile(
    r"""(?P<string>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`)
    |(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<regex>(?<=[=(,:\[!&|?{};])\s*/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/[a-z]*)""",
    re.VERBOSE | re.DOTALL,
)

# Spaces that mean nothing. Those around + and - stay where one more sign follows (a + +b), and a slash may begin a
# regular expression.
IDLE_SPACE = re.compile(r" *([=,;:{}()\[\]<>?&|*!]) *")
# After these a statement goes on, or a new one needs no end of line before it.
IDLE_LINE = re.compile(r"([,;:{(\[?&|])\n|\n(?=})")


def bundle(entries: Iterable[str] = ("main.js",), kernels: Iterable[str | Kernel] | None = None) -> str:
    """Join modules and all that they import.

    Parameters
    ----------
    entries : iterable of str, default=("main.js",)
        Files in `js/` whose exports remain.
    kernels : iterable of str or Kernel, optional
        What `kernels.js` has, see `kernels_source`; by default all registered kernels.

    Returns
    -------
    str
        One module without imports.

    Raises
    ------
    ValueError
        If a name is defined twice, an import is not found or written in another way, or imports go in a circle.

    Examples
    --------
    >>> module = bundle(["data.js"])
    >>> "import" in module, "export function readData" in module
    (False, True)
    """
    made = {"kernels.js": kernels_source(kernels), "words_table.js": _words(), "style_text.js": _style()}
    entries = tuple(entries)
    order: list[str] = []
    for entry in entries:
        _visit(entry, (), order, made)
    _check_names({name: _read(name, made) for name in order})
    parts = [_joinable(_read(name, made), keep_exports=name in entries) for name in order]
    return "\n".join(parts) + "\n"


def _read(name: str, made: Mapping[str, str]) -> str:
    if name in made:
        return made[name]
    return _source(name)


@cache
def _source(name: str) -> str:
    path = FOLDER / "js" / name
    if not path.is_file():
        raise ValueError(f"there is no module {name!r} in {path.parent.name}/")
    return path.read_text(encoding="utf-8")


def _visit(name: str, path: tuple[str, ...], order: list[str], made: Mapping[str, str]) -> None:
    if name in path:
        raise ValueError(f"imports go in a circle: {' -> '.join([*path, name])}")
    if name in order:
        return
    source = _read(name, made)
    for names, other in IMPORT.findall(source):
        _visit(other, (*path, name), order, made)
        missing = {part.strip() for part in names.split(",") if part.strip()} - {
            name for name, is_exported in _defined(_read(other, made)) if is_exported
        }
        if missing:
            raise ValueError(f"{name} imports {', '.join(sorted(missing))} from {other}, which does not export it")
    order.append(name)


def _defined(source: str) -> list[tuple[str, bool]]:
    """Return the names at the top level of a module, and whether each is exported."""
    source = TOKEN.sub(lambda match: "" if match["comment"] else '""', source)
    found = []
    for match in TOP_LEVEL.finditer(source):
        is_exported = match["export"] is not None
        found += [(name, is_exported) for name in [match["name"], *_further(source, match)]]
    return found


def _further(source: str, match: re.Match[str]) -> list[str]:
    """Return the other names of ``const a = 1, b = 2;``."""
    names: list[str] = []
    depth = 0
    if match["kind"] not in ("const", "let", "var"):
        return names
    for place in range(match.end(), len(source)):
        letter = source[place]
        depth += (letter in "([{") - (letter in ")]}")
        if depth == 0 and letter == ";":
            break
        if depth == 0 and letter == "," and (name := re.match(r",\s*([\w$]+)\s*=", source[place:])):
            names.append(name[1])
    return names


def _check_names(sources: Mapping[str, str]) -> None:
    known: dict[str, str] = {}
    for name, source in sources.items():
        if re.search(r"^import\b", IMPORT.sub("", source), re.MULTILINE):
            raise ValueError(f'{name}: write imports as import {{a, b}} from "./x.js"; on one line')
        for defined, _ in _defined(source):
            if defined in known:
                raise ValueError(f"{defined} is defined in {known[defined]} and in {name}: rename one")
            known[defined] = name


def _joinable(source: str, *, keep_exports: bool) -> str:
    source = IMPORT.sub("", source)
    if not keep_exports:
        source = EXPORT.sub("", source)
    source = TOKEN.sub(lambda match: "" if match["comment"] else match[0], source)
    lines = (line.strip() for line in source.splitlines())
    return _squeezed("\n".join(line for line in lines if line))


def _squeezed(source: str) -> str:
    """Leave out the spaces that mean nothing; strings and regular expressions stay as they are."""
    parts, start = [], 0
    for match in TOKEN.finditer(source):
        parts += [_without_spaces(source[start : match.start()]), match[0]]
        start = match.end()
    return "".join([*parts, _without_spaces(source[start:])])


def _without_spaces(code: str) -> str:
    code = re.sub(r"(?<=[\w)\]]) ([-+]) (?=[\w(])", r"\1", code)  # of two operands: no "- -" and no "+ +" comes of it
    return IDLE_LINE.sub(r"\1", IDLE_SPACE.sub(r"\1", code))


@cache
def _words() -> str:
    """Write `words_table.js`: the texts of all languages."""
    words = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted((FOLDER / "words").glob("*.json"))
    }
    keys = list(dict.fromkeys(key for texts in words.values() for key in texts))
    rows = [keys, *([language, *map(texts.get, keys)] for language, texts in words.items())]
    # The keys once, and not in every language: a kilobyte of the page.
    made = ", ".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    pairs = "Object.fromEntries(keys.map((key, i) => [key, texts[i]]))"
    read = f"(keys, ...all) => Object.fromEntries(all.map(([name, ...texts]) => [name, {pairs}]))"
    return f"export const WORDS = ({read})({made});\n"


@cache
def _style() -> str:
    """Write `style_text.js`: the style sheet as a string."""
    sheets = [path.read_text(encoding="utf-8") for path in sorted((FOLDER / "js").glob("*.css"))]
    text = re.sub(r"/\*.*?\*/", "", "\n".join(sheets), flags=re.DOTALL)
    text = re.sub(r"\s*\n\s*", "\n", text).strip()
    return f"export const STYLE = {json.dumps(text, ensure_ascii=False)};\n"
