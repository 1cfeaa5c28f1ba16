"""Draw and list the subpackages, from their imports and docstrings; run ``python docs/subpackages.py``.

It writes ``docs/images/subpackages.svg`` and the table of subpackages in ``docs/architecture.md``.

Rows are the layers of the import contract in ``pyproject.toml``. An arrow means "imports"; what follows from other
arrows is not drawn (the transitive reduction), or there would be some sixty. Only where a subpackage stands within its
row and the words in its box are written here. ``tests/docs/test_subpackages.py`` fails if the picture is out of date.
"""

from __future__ import annotations

import ast
import re
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "subpackages.svg"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- written by docs/subpackages.py -->\n", "<!-- end -->\n"

# The center of each box, from 0 (left) to 100 (right), and what it holds.
PLACES = {
    "cli": (44, "the command line"),
    "explorer": (22, "interactive explorer"),
    "displays": (44, "pictures, no mathematics"),
    "estimators": (66, "scikit-learn: X, y in, y out"),
    "torch": (11, "differentiable layers"),
    "dask": (88, "sums on a cluster"),
    "conformal": (55, "prediction intervals"),
    "inference": (77, "intervals, tests"),
    "likelihood": (44, "counts, amounts, shares"),
    "smoother": (33, "linear weights"),
    "distribution": (77, "quantiles, cdf"),
    "bandwidth": (66, "bandwidth selection"),
    "pooling": (55, "pool, choose"),
    "algorithms": (66, "ways to organize the sum"),
    "core": (77, "START HERE: state, problem"),
    "kernels": (88, "kernel profiles"),
    "execution": (66, "threads, Ctrl-C, compiling"),
    "data": (44, "checked input, files"),
    "datasets": (22, "two synthetic samples"),
}
WIDTH, ROW, BOX, LINE, TOP = 960, 78, (190, 48), 16, 24

STYLE = """\
  .paper { fill: #ffffff } .box { fill: #f6f8fa; stroke: #6e7781 } .start { fill: #fff8c5; stroke: #9a6700 }
  .arrow { stroke: #6e7781; fill: none; stroke-width: 1.5 } .tip { fill: #6e7781 }
  text { font-family: "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; text-anchor: middle; fill: #1f2328 }
  .name { font-size: 15px; font-weight: 600 } .idea { font-size: 12px }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117 } .box { fill: #161b22; stroke: #8b949e } .start { fill: #3a2d05; stroke: #d29922 }
    .arrow { stroke: #8b949e } .tip { fill: #8b949e } text { fill: #e6edf3 }
  }"""


def layers() -> list[list[str]]:
    """Return the subpackages of each layer of the contract, the highest first."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (contract,) = [each for each in contracts if each.get("containers") == ["kernpool"]]
    return [[subpackage.strip() for subpackage in layer.split("|")] for layer in contract["layers"]]


def imports() -> dict[str, set[str]]:
    """Return the subpackages that each one imports from, within functions and for types, too."""
    package = ROOT / "src" / "kernpool"
    found: dict[str, set[str]] = {subpackage: set() for layer in layers() for subpackage in layer}
    for path in package.rglob("*.py"):
        subpackage = path.relative_to(package).with_suffix("").parts[0]
        if subpackage not in found:
            continue  # the package itself, which re-exports
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                package_name, _, rest = name.partition(".")
                if package_name == "kernpool" and rest.split(".")[0] in found:
                    found[subpackage].add(rest.split(".")[0])
        found[subpackage].discard(subpackage)
    return found


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    """Return everything that `start` leads to."""
    seen: set[str] = set()
    todo = list(graph[start])
    while todo:
        subpackage = todo.pop()
        if subpackage not in seen:
            seen.add(subpackage)
            todo += graph[subpackage]
    return seen


def essential(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the arrows that do not follow from others."""
    below = {subpackage: reachable(graph, subpackage) for subpackage in graph}
    return sorted(
        (subpackage, other)
        for subpackage, others in graph.items()
        for other in others
        if not any(other in below[between] for between in others - {other})
    )


def route(start: tuple[float, float], end: tuple[float, float]) -> list[tuple[float, float]]:
    """Return the corners of an arrow: from above into the next row and within a column, else from the side."""
    (x, y), (to_x, to_y) = start, end
    width, height = BOX
    bottom, top = y + height / 2, to_y - height / 2
    if to_y - y < 1.5 * ROW:
        between = (bottom + top) / 2
        return [(x, bottom), (x, between), (to_x, between), (to_x, top)]
    if x == to_x:
        return [(x, bottom), (x, top)]
    return [(x, bottom), (x, to_y), (to_x - width / 2 if x < to_x else to_x + width / 2, to_y)]


def draw(graph: dict[str, set[str]]) -> str:
    """Return the picture as SVG."""
    rows = layers()
    height = TOP * 2 + ROW * (len(rows) - 1) + BOX[1]
    center = {
        subpackage: (PLACES[subpackage][0] * WIDTH / 100, TOP + BOX[1] / 2 + ROW * number)
        for number, layer in enumerate(rows)
        for subpackage in layer
    }
    arrows = essential(graph)
    words = "; ".join(f"{subpackage} imports {other}" for subpackage, other in arrows)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'role="img">',
        f"<title>The subpackages of kernpool, each above those that it imports from</title><desc>{words}</desc>",
        f"<style>\n{STYLE}\n</style>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path class="tip" d="M0 1 10 5 0 9z"/></marker></defs>',
        f'<rect class="paper" width="{WIDTH}" height="{height}" rx="8"/>',
    ]
    for subpackage, other in arrows:
        corners = " ".join(f"{x:.0f},{y:.0f}" for x, y in route(center[subpackage], center[other]))
        parts.append(f'<polyline class="arrow" marker-end="url(#tip)" points="{corners}"/>')
    for subpackage, (x, y) in center.items():
        kind = "box start" if subpackage == "core" else "box"
        left, top = x - BOX[0] / 2, y - BOX[1] / 2
        parts += [
            f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{BOX[0]}" height="{BOX[1]}" rx="6"/>',
            f'<text class="name" x="{x:.0f}" y="{y - 3:.0f}">{subpackage}</text>',
            f'<text class="idea" x="{x:.0f}" y="{y - 3 + LINE:.0f}">{escape(PLACES[subpackage][1])}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def table() -> str:
    """Return the table of the subpackages, the highest first: what is there, and the file to read first."""
    rows = ["| to change | start in |", "|---|---|"]
    for subpackage in (each for layer in layers() for each in layer):
        folder = ROOT / "src" / "kernpool" / subpackage
        source = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
        docstring = ast.get_docstring(ast.parse(source.read_text(encoding="utf-8"))) or ""
        first = re.search(r"Read `([\w.]+)` first", docstring)
        start = f"{subpackage}/{first[1]}" if first else f"{subpackage}.py"
        subject = docstring.partition("\n")[0].removesuffix(".")
        rows.append(f"| {subject[0].lower() + subject[1:]} | `{start}` |")
    return "\n".join([*rows, ""])


def with_table(page: str) -> str:
    """Return the text of a page with the table between its marks."""
    before, rest = page.split(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.split(END)[1]


def main() -> None:
    """Write the picture and the table."""
    PICTURE.write_text(draw(imports()), encoding="utf-8")
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
