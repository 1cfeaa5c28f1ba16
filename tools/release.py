"""Check that the files that state the version agree with each other and with the tag of a release.

    python tools/release.py             the files agree, and the changelog has the section of this version
    python tools/release.py v0.1.0      and this tag may be published

The version is written once, in `kernpool.__version__`: it is the same in a wheel, an editable install, an unpacked
archive and a copy without git. Between releases it is that of the next release with `.dev0`, which pip orders before
it and installs only with `--pre`. A release drops `.dev0`, and its tag is `v` and the version. See
docs/decisions/project.md.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PLACES = {
    "src/kernpool/_version.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (.+)$",
}


RELEASE = r"\d+\.\d+\.\d+((a|b|rc)\d+)?"  # as PEP 440 writes it, so that pip changes nothing
DEVELOPMENT = r"\d+\.\d+\.\d+\.dev\d+"


def versions(root: Path) -> dict[str, str]:
    """Return the version that each file states."""
    found = {place: re.findall(pattern, (root / place).read_text(), re.MULTILINE) for place, pattern in PLACES.items()}
    return {place: said[0] if len(said) == 1 else f"{len(said)} versions" for place, said in found.items()}


def objections(root: Path, tag: str | None = None) -> list[str]:
    """Return what keeps the tree from being committed, or from being published under the tag."""
    said = versions(root)
    version = said["src/kernpool/_version.py"]
    wrong = [
        f"{place} says {other}, kernpool.__version__ is {version}" for place, other in said.items() if other != version
    ]
    develops = re.fullmatch(DEVELOPMENT, version)
    if not develops and not re.fullmatch(RELEASE, version):
        wrong.append(
            f"kernpool.__version__ is {version}: expected 1.2.3.dev0 between releases, 1.2.3 or 1.2.3rc1 of one"
        )
    changes = (root / "CHANGELOG.md").read_text()
    if develops and not re.search(r"^## Unreleased$", changes, re.MULTILINE):
        wrong.append(f'CHANGELOG.md has no section "## Unreleased", which {version} needs')
    if not develops and not re.search(rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$", changes, re.MULTILINE):
        wrong.append(
            f'CHANGELOG.md has no section "## {version} - YYYY-MM-DD": rename "Unreleased", and begin a new one'
        )
    if tag is None:
        return wrong
    if develops:
        wrong.append(f"kernpool.__version__ is {version}, a development version: drop .dev in {' and '.join(PLACES)}")
    elif tag != f"v{version}":
        wrong.append(f"the tag is {tag}, kernpool.__version__ is {version}: the tag has to be v{version}")
    return wrong


if __name__ == "__main__":
    if wrong := objections(ROOT, *sys.argv[1:2]):
        sys.exit("\n".join(wrong))
