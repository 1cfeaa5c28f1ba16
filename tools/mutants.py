"""Change one token of the package at random, and see whether the tests notice.

    python tools/mutants.py --seed 1 --count 60 --quick

A mutant is a copy of the package in which one operator, number or truth value differs: `<` is `<=`, `+` is `-`, `1`
is `2`, `and` is `or`, a `not` is gone. It is tested by the quick tests of its subpackage, those that
`tests/support/later.py` leaves to the full check among them, and of the laws, which all algorithms are held to; if they
all pass, by the slow ones of it and by the quick tests of all others. What survives is either a hole in the tests or
changes no answer: thresholds below which another algorithm is as right, starts of
searches, progress. A table is printed as Markdown.

Compiled loops are left out: a mutant of one compiles all of them anew, which takes minutes each time.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "kernpool"
TESTED_BY = {"smoother": ("inference", "estimators")}  # a subpackage without a folder of tests
OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"),
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.And: ("and", "or"), ast.Or: ("or", "and"),
}  # fmt: skip
LIMIT = 1800  # seconds of one run of tests; a mutant that never ends is noticed, too


@dataclass(frozen=True)
class Mutant:
    """One token of a file, and what stands in its place."""

    path: Path
    line: int
    begin: int
    before: str
    after: str

    @property
    def tests(self) -> list[str]:
        """Folders of the tests of the subpackage that the file belongs to."""
        folder = self.path.relative_to(PACKAGE).parts[0]
        return [f"tests/{name}" for name in TESTED_BY.get(folder, (folder,))]

    def text(self) -> str:
        """Return the text of the file with the other token."""
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        line = lines[self.line - 1].encode()
        end = self.begin + len(self.before.encode())
        lines[self.line - 1] = (line[: self.begin] + self.after.encode() + line[end:]).decode()
        return "".join(lines)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Yield every mutant of a file: of operators between two operands, `not`, numbers and truth values."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Mutant]:
        if type(operator) not in OPERATORS:
            return
        before, after = OPERATORS[type(operator)]
        for number in range(left.end_lineno or 0, right.lineno + 1):
            line = lines[number - 1].encode()
            begin = left.end_col_offset or 0 if number == left.end_lineno else 0
            end = right.col_offset if number == right.lineno else len(line)
            found = line.find(before.encode(), begin, end)
            if found >= 0:
                yield Mutant(path, number, found, before, after)
                return

    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.BinOp(left, operator, right):
                yield from between(left, right, operator)
            case ast.Compare(left, comparisons, others):
                for first, comparison, second in zip([left, *others], comparisons, others, strict=False):
                    yield from between(first, second, comparison)
            case ast.BoolOp(operator, values):
                for first, second in pairwise(values):
                    yield from between(first, second, operator)
            case ast.UnaryOp(ast.Not(), _):
                yield Mutant(path, node.lineno, node.col_offset, "not ", "")
            case ast.Constant(bool(value)):
                yield Mutant(path, node.lineno, node.col_offset, str(value), str(not value))
            case ast.Constant(int() | float()):
                number = ast.get_source_segment(text, node) or ""
                yield Mutant(path, node.lineno, node.col_offset, number, f"({number} + 1)")


def draw(seed: int, count: int) -> list[Mutant]:
    """Draw mutants without replacement, all tokens being equally likely."""
    files = [path for path in sorted(PACKAGE.glob("*/**/*.py")) if "loops" not in path.parts]
    return random.Random(seed).sample([mutant for path in files for mutant in mutants_of(path)], count)


def is_noticed(mutant: Mutant, copy: Path, *arguments: str) -> bool:
    """Return whether tests fail with the mutant in the copy of the package."""
    place = copy / "src" / "kernpool" / mutant.path.relative_to(PACKAGE)
    original, times = place.read_bytes(), place.stat()
    place.write_text(mutant.text(), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments]
    try:
        done = subprocess.run(command, cwd=copy, env=environment(copy), timeout=LIMIT, capture_output=True, check=False)
    except subprocess.TimeoutExpired:
        return True
    finally:
        place.write_bytes(original)
        os.utime(place, ns=(times.st_atime_ns, times.st_mtime_ns))  # compiled loops are cached by the time of a file
    if done.returncode > 2:  # 1: a test has failed; 2: they could not even be collected; less than 0: a crash
        raise RuntimeError(f"pytest could not run:\n{done.stdout.decode()}{done.stderr.decode()}")
    return done.returncode != 0


def environment(copy: Path) -> dict[str, str]:
    """Return the environment in which tests import the copy and not what is installed."""
    return {**os.environ, "PYTHONPATH": str(copy / "src")}


def main() -> None:
    """Draw mutants, test them one by one, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True, help="which mutants are drawn")
    parser.add_argument("--count", type=int, default=40, help="how many (default: 40)")
    parser.add_argument("--skip", type=int, default=0, help="how many of them to leave out, from the first on")
    parser.add_argument("--quick", action="store_true", help="only the quick tests of the subpackage and of the laws")
    options = parser.parse_args()
    counts = {"quick": 0, "slow": 0, "others": 0, "no": 0}
    print("| mutant | instead of | stands | noticed by |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "kernpool")
        ignored = shutil.ignore_patterns(".git", ".venv*", "build", "_build", ".*_cache", ".hypothesis")
        shutil.copytree(ROOT, copy, ignore=ignored)
        for mutant in draw(options.seed, options.count)[options.skip :]:
            tests = [*mutant.tests, "tests/laws"]
            ways = {
                "quick": ["-m", "not slow or later", *tests],
                "slow": ["-n", "2", "-m", "slow and not later", *tests],
                "others": ["-n", "2", "-m", "not slow", "tests", *(f"--ignore={folder}" for folder in tests)],
            }
            if options.quick:
                ways = {"quick": ways["quick"]}
            by = next((name for name, arguments in ways.items() if is_noticed(mutant, copy, *arguments)), "no")
            counts[by] += 1
            where = f"{mutant.path.relative_to(PACKAGE)}:{mutant.line}"
            print(f"| {where} | `{mutant.before.strip()}` | `{mutant.after}` | {by} |", flush=True)
    print("\n" + ", ".join(f"{name}: {count}" for name, count in counts.items()))


if __name__ == "__main__":
    main()
