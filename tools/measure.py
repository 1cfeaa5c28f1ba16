"""Measure the size of the project, and compare it with `tools/ratchet.toml`, which each change may only lower.

    python tools/measure.py

A token is a Python token that is no comment, docstring, newline or indentation, so neither long lines nor short ones
change the count. A word of the docs is what spaces part in a page of Markdown that the site shows, as `wc -w` counts:
cells of tables, their bars and lines of code too. Run it with the package installed.
"""

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RATCHET = ROOT / "tools" / "ratchet.toml"
SKIPPED = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
MODULES = {"algorithms", "core", "data", "datasets", "execution", "kernels", "pooling"}  # which are no public names


def docstring_lines(tree: ast.Module) -> Iterator[int]:
    """Yield the lines of a module that belong to docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            yield from range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)


def count_tokens(text: str) -> int:
    """Count the tokens of a module, without docstrings and comments."""
    skipped = set(docstring_lines(ast.parse(text)))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return sum(token.type not in SKIPPED and token.start[0] not in skipped for token in tokens)


def is_record(node: ast.AST) -> bool:
    """Return whether a node defines a dataclass or a named tuple."""
    if not isinstance(node, ast.ClassDef):
        return False
    marks = [ast.unparse(mark) for mark in (*node.decorator_list, *node.bases)]
    return any("dataclass" in mark or mark == "NamedTuple" for mark in marks)


def measure() -> dict[str, int]:
    """Return every size that the ratchet names."""
    import kernpool

    found: Counter[str] = Counter()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        found["tokens of src"] += count_tokens(text)
        found["raise statements"] += sum(isinstance(node, ast.Raise) for node in nodes)
        found["records"] += sum(map(is_record, nodes))
    for path in (ROOT / "tests").rglob("*.py"):
        found["tokens of tests"] += count_tokens(path.read_text(encoding="utf-8"))
    pages = [path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts]
    found["pages of docs"] = len(pages)
    found["words of docs"] = sum(len(path.read_text(encoding="utf-8").split()) for path in pages)
    public = {name for name in dir(kernpool) if not name.startswith("_")} - MODULES
    found["public names"] = len(public)
    estimators = [kind for name in public if hasattr(kind := getattr(kernpool, name), "_get_param_names")]
    found["most parameters of an estimator"] = max(len(kind._get_param_names()) for kind in estimators)
    return dict(found)


def main() -> int:
    """Print every size beside its ratchet; return 1 if one is beyond."""
    ratchet, found = tomllib.loads(RATCHET.read_text(encoding="utf-8")), measure()
    del ratchet["walks"]  # of benchmarks/walks.py
    for name, most in ratchet.items():
        print(f"{name:35} {found[name]:8d}   at most {most}")
    return int(any(found[name] > most for name, most in ratchet.items()))


if __name__ == "__main__":
    sys.exit(main())
