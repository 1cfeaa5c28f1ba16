"""The lowest versions that pyproject.toml promises, as constraints for pip.

    python tools/lowest.py            write constraints-lowest.txt
    python tools/lowest.py --check    say whether it is what pyproject.toml says

`.ci/lowest` runs tests with exactly these.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "constraints-lowest.txt"
EXTRAS = (
    "plot",
    "torch",
    "dask",
    "arrow",
    "nufft",
    "cli",
    "test",
)  # what people run; not what lints and builds
BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<version>[0-9.]+)(?P<marker>\s*;.*)?")
HEADER = """\
# Written by tools/lowest.py from the lower bounds of pyproject.toml: what .ci/lowest tests with.
# torch is that of constraints.txt: the releases between carry CUDA.
"""


def lowest(pyproject: str, constraints: str) -> str:
    """Return the constraints that say ``==`` where a requirement says ``>=``."""
    project = tomllib.loads(pyproject)["project"]
    optional = project["optional-dependencies"]
    lines = []
    for requirement in [*project["dependencies"], *(one for extra in EXTRAS for one in optional[extra])]:
        match = BOUND.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} of pyproject.toml has no lower bound, or more than one")
        name = match["name"]
        pinned = re.search(r"^torch==\S+$", constraints, re.MULTILINE)
        lines.append(pinned[0] if name == "torch" and pinned else f"{name}=={match['version']}")
        if name == "dask":  # released together, and pinned to each other
            lines.append(f"distributed=={match['version']}")
    return HEADER + "\n".join(sorted(set(lines))) + "\n"


def main(arguments: list[str]) -> None:
    """Write the file, or compare it."""
    text = lowest((ROOT / "pyproject.toml").read_text(), (ROOT / "constraints.txt").read_text())
    if arguments != ["--check"]:
        OUT.write_text(text)
    elif not OUT.exists() or OUT.read_text() != text:
        sys.exit(f"{OUT.name} is not what pyproject.toml says; run: python tools/lowest.py")


if __name__ == "__main__":
    main(sys.argv[1:])
