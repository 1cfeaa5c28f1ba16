"""Whether the tree is what a tag says it is.

    python tools/release.py             the places that state a version agree
    python tools/release.py v0.1.0      and with this tag, of which the changelog has a section

The version is written once, in `kernpool.__version__`: it is the same in a wheel, an editable install, an unpacked
archive and a copy without git. A tag publishes it, and has to be `v` and that version. See docs/decisions/packaging.md.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "src/kernpool/_version.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
}


def versions(root: Path) -> dict[str, str]:
    """Return what every place says."""
    found = {place: re.findall(pattern, (root / place).read_text(), re.MULTILINE) for place, pattern in PLACES.items()}
    return {place: said[0] if len(said) == 1 else f"{len(said)} versions" for place, said in found.items()}


def objections(root: Path, tag: str | None = None) -> list[str]:
    """Say what of the tree disagrees, with itself or with the tag."""
    said = versions(root)
    version = said["src/kernpool/_version.py"]
    wrong = [
        f"{place} says {other}, kernpool.__version__ is {version}" for place, other in said.items() if other != version
    ]
    if tag is None:
        return wrong
    if tag != f"v{version}":
        wrong.append(f"the tag is {tag}, kernpool.__version__ is {version}: the tag has to be v{version}")
    if not re.fullmatch(r"v\d+\.\d+\.\d+((a|b|rc)\d+)?", tag):
        wrong.append(f"the tag is {tag}: expected v1.2.3, or v1.2.3rc1")
    if not re.search(
        rf"^## {re.escape(tag[1:])} - \d{{4}}-\d\d-\d\d$", (root / "CHANGELOG.md").read_text(), re.MULTILINE
    ):
        wrong.append(
            f'CHANGELOG.md has no section "## {tag[1:]} - YYYY-MM-DD": rename "Unreleased", and begin a new one'
        )
    return wrong


if __name__ == "__main__":
    if wrong := objections(ROOT, *sys.argv[1:2]):
        sys.exit("\n".join(wrong))
