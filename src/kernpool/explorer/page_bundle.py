"""The explorer's JavaScript: kernels as JavaScript, one bundled module, its compressed form, and the HTML page.

Kernels are traced from the functions of the registry, so that no formula is written twice, and user-registered
kernels work as the built-in ones do. Loops over an array of ``u`` are written out for every kernel: a shared loop
that calls a function makes every weight an object, and takes three times as long.

A page without a server has modules that cannot import each other, so they are joined into one. The sources follow a
rule that keeps this simple: one statement ``import {a, b} from "./x.js";`` per line, named exports only (except in
the entry), and no name twice at the top level of all files. Comments, indentation and superfluous spaces are
removed.

Pages and notebooks carry the module compressed to a third, and a loader of a few lines imports it. Browsers
decompress by themselves (`DecompressionStream`: Chromium 80, Safari 16.4, Firefox 113). A minifier would need a
second language's tool chain for every build, and its output is hardly smaller: short names leave compression less
to remove.
"""

import json
import re
import zlib
from base64 import b85encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from html import escape
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from kernpool.explorer.numpy_to_javascript import Traced, UntraceableKernelError, as_javascript, trace
from kernpool.kernels import Kernel, categorical_kernel_names, get_categorical_kernel, get_kernel, kernel_names


def kernels_source(kernels: Iterable[str | Kernel] | None = None) -> str:
    r"""Generate the JavaScript module `kernels.js`, which computes the given kernels and all categorical kernels.

    Parameters
    ----------
    kernels : iterable of str or Kernel, optional
        Those that the page offers; by default all registered ones.

    Returns
    -------
    str
        JavaScript that exports ``KERNELS`` and ``FACTORS``. A kernel has ``support``, ``profile``, ``logProfile`` and
        ``logSlope`` of a number, and ``profiles`` and ``logProfiles``, which replace numbers of an array, from one
        place to before another.

    Raises
    ------
    UntraceableKernelError
        If a kernel does something that has no JavaScript; the message names the kernel and the operation.

    Examples
    --------
    >>> print("\n".join(kernels_source(["triangular"]).splitlines()[2:4]))
    "triangular": {support: 1,
    profile: (u) => { return Math.max((1 - u), 0); },
    """
    records = [get_kernel(kernel) for kernel in (kernel_names() if kernels is None else kernels)]
    factors = {name: _with_traced_length(get_categorical_kernel(name).factors) for name in categorical_kernel_names()}
    return "\n".join(
        [
            'import { exponential } from "./exponential.js";',
            "export const KERNELS = {",
            *(_kernel_source(kernel) for kernel in records),
            "};",
            "export const FACTORS = {",
            *(f"{json.dumps(name)}: {_function(name, table, _FACTOR)}," for name, table in factors.items()),
            "};",
            "",
        ]
    )


_NUMBER = "(u) => {{ {lines}return {result}; }}"
_LOOP = "(all, from, to) => {{ for (let i = from; i < to; i++) {{ const u = all[i]; {lines}all[i] = {result}; }} }}"
_FACTOR = "(distance, lambda, count) => {{ {lines}return {result}; }}"


def _kernel_source(kernel: Kernel) -> str:
    slope = "null" if kernel.log_slope is None else _function(kernel.name, kernel.log_slope, _NUMBER)
    return ",\n".join(
        [
            f"{json.dumps(kernel.name)}: {{support: {as_javascript(kernel.support)}",
            f"profile: {_function(kernel.name, kernel.profile, _NUMBER)}",
            f"logProfile: {_function(kernel.name, kernel.log_profile, _NUMBER)}",
            f"logSlope: {slope}",
            f"profiles: {_function(kernel.name, kernel.profile, _LOOP)}",
            f"logProfiles: {_function(kernel.name, kernel.log_profile, _LOOP)}}},",
        ]
    )


def _function(kernel: str, function: Callable[..., Any], template: str) -> str:
    arguments = ("distance", "lambda", "count") if template is _FACTOR else ("u",)
    try:
        with np.errstate(all="ignore"):
            lines, result = trace(function, *arguments)
    except UntraceableKernelError as error:
        raise UntraceableKernelError(
            f"kernel {kernel!r} cannot be written in JavaScript: it uses {error}; explore a model with another kernel, "
            "or write this one by arithmetic and functions of NumPy that can"
        ) from None
    return template.format(lines="".join(f"{line} " for line in lines), result=result)


def _with_traced_length(factors: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function of a categorical kernel with the number of categories as a further argument.

    The argument replaces calls of ``len``, which cannot be traced, since Python requires an int as their result.
    """

    def with_count(distance: Traced, lam: Traced, count: Traced) -> Any:
        assert isinstance(factors, FunctionType)
        known = {**factors.__globals__, "len": lambda _: count}
        return FunctionType(factors.__code__, known, closure=factors.__closure__)(distance, lam)

    return with_count


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
    """Join JavaScript modules and all their imports into one module.

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
    """Return the names that a JavaScript module defines at its top level, and whether each is exported."""
    source = TOKEN.sub(lambda match: "" if match["comment"] else '""', source)
    found = []
    for match in TOP_LEVEL.finditer(source):
        is_exported = match["export"] is not None
        found += [(name, is_exported) for name in [match["name"], *_further(source, match)]]
    return found


def _further(source: str, match: re.Match[str]) -> list[str]:
    """Return the names after the first in a JavaScript declaration such as ``const a = 1, b = 2;``."""
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
    """Remove insignificant white space from JavaScript, except in strings and regular expressions."""
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
    """Generate the JavaScript module `words_table.js`: the explorer's texts in all languages."""
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
    """Generate the JavaScript module `style_text.js`: the explorer's style sheets as one string."""
    sheets = [path.read_text(encoding="utf-8") for path in sorted((FOLDER / "js").glob("*.css"))]
    text = re.sub(r"/\*.*?\*/", "", "\n".join(sheets), flags=re.DOTALL)
    text = re.sub(r"\s*\n\s*", "\n", text).strip()
    return f"export const STYLE = {json.dumps(text, ensure_ascii=False)};\n"


MODULES = ("main.js", "hosts.js")
GZIP = 31  # what zlib calls its format

# Five letters for four bytes, where base64 has five and a third. The alphabet is that of RFC 1924 with a comma for the
# less-than sign, so that no tag begins in it.
LOADER = """\
function bytesOf(text) {
  const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;,=>?@^_`{|}~";
  const digit = Object.fromEntries([...letters].map((letter, i) => [letter, i]));
  const padding = (5 - (text.length % 5)) % 5;
  const padded = text + "~".repeat(padding);
  const view = new DataView(new ArrayBuffer((padded.length / 5) * 4));
  for (let i = 0; i < padded.length; i += 5) {
    view.setUint32((i / 5) * 4, [...padded.slice(i, i + 5)].reduce((word, letter) => word * 85 + digit[letter], 0));
  }
  return new Uint8Array(view.buffer, 0, view.byteLength - padding);
}
async function load(packed) {
  const stream = new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const url = URL.createObjectURL(new Blob([await new Response(stream).text()], { type: "text/javascript" }));
  return import(url).finally(() => URL.revokeObjectURL(url));
}"""


def packed_module(kernels: Iterable[str]) -> str:
    """Return the explorer's JavaScript module, compressed by gzip, as base85 text.

    Reproducible: there is no time in it.

    Parameters
    ----------
    kernels : iterable of str
        Names of the kernels in its menu.

    Returns
    -------
    str
        What `LOADER`'s `load` takes.
    """
    text = bundle(MODULES, kernels)
    # With less memory zlib begins new blocks more often, and codes them better: 200 characters less.
    packer = zlib.compressobj(9, zlib.DEFLATED, GZIP, memLevel=6)
    packed = b85encode(packer.compress(text.encode()) + packer.flush())
    return packed.decode("ascii").replace("<", ",")


def widget_module(kernels: Iterable[str]) -> str:
    """Return the JavaScript module of the notebook widget (anywidget), with the given kernels."""
    return f"""{LOADER}
const module = load("{packed_module(kernels)}");
export default {{ render: async (context) => (await module).default.render(context) }};
"""


# Nothing may be loaded: whatever a page would ask a network for, the browser refuses.
POLICY = "default-src 'none'; script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src data: blob:"


def render_page(payload: dict[str, Any], *, host: str = "pageHost()", policy: str = POLICY) -> str:
    """Return the explorer's HTML page with its data, program and styles.

    Parameters
    ----------
    payload : dict
        As `payload_of` returns.
    host : str
        JavaScript that makes the host of the module: `pageHost()`, or that of a server.
    policy : str
        Content security policy.

    Returns
    -------
    str
        HTML.
    """
    language = {"zh": "zh-Hans"}.get(payload["language"] or "en", "en")
    return f"""<!doctype html>
<html lang="{language}"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="kernpool explorer"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(payload["title"])}</title>
<link rel="icon" href="data:,">
<style>body{{margin:0}}</style></head>
<body><main id="explorer"></main>
<script type="application/json" id="payload">{json_for_html(payload)}</script>
<script type="module">
{LOADER}
const explorer = await load("{packed_module(payload["kernels"])}");
const payload = JSON.parse(document.getElementById("payload").text);
explorer.mount(document.getElementById("explorer"), payload, explorer.{host});
</script></body></html>
"""


def json_for_html(value: Any) -> str:
    r"""Return a value as JSON that is safe inside an HTML script element, whatever its texts contain.

    Examples
    --------
    >>> print(json_for_html({"name": "</script>"}))
    {"name":"\u003c/script>"}
    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
