"""Whether the wheel and the source archive hold what they should, and nothing else; lists the wheel.

    python tools/archives.py dist/

The wheel is the package as it is in the tree: every file of it, whatever its kind, and no file more. The source archive
is what git tracks, so that whoever has it can test, document and build what is published.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections import Counter
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parent.parent
MADE = re.compile(  # by running, not by writing
    r"(^|/)(__pycache__|\.[a-z_]+_cache|\.hypothesis)/|\.(pyc|nbi|nbc)$|^docs/(_build|gallery|api/items)/|^docs/api/[^/]*\.rst$"
    r"|^docs/sg_execution_times\.rst$"
)
NEEDED = {
    "kernpool/py.typed",
    "kernpool/algorithms/pair_costs.json",
    "kernpool/explorer/page.js",
}
TO_WORK_ON_IT = {"tests", "docs", "examples", "benchmarks", "tools", ".ci", ".github", "Makefile", "pyproject.toml"}
OF_GIT_ALONE = {".gitignore", ".pre-commit-config.yaml"}  # may be in a source archive, and need not


def tree() -> set[str]:
    """Return the files of the project: those that git tracks, or, where git does not say, what pyproject.toml names."""
    if git := shutil.which("git"):
        told = subprocess.run([git, "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
        if told.returncode == 0 and told.stdout:
            return {name for name in told.stdout.split("\0") if name and (ROOT / name).is_file()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    tops = [top for pattern in (*included, "pyproject.toml") for top in ROOT.glob(pattern.removeprefix("/"))]
    every = (path.relative_to(ROOT).as_posix() for top in tops for path in files_of(top))
    return {name for name in every if not MADE.search(name)}


def files_of(top: Path) -> Iterable[Path]:
    """Return the files of a folder, or the file."""
    return [top] if top.is_file() else [path for path in top.rglob("*") if path.is_file()]


def differences(found: set[str], expected: set[str]) -> list[str]:
    """Say what is missing and what is there without reason."""
    return [f"missing: {name}" for name in sorted(expected - found)] + [
        f"should not be there: {name}" for name in sorted(found - expected)
    ]


def wrong_in_wheel(wheel: Path, tree: set[str]) -> list[str]:
    """Compare a wheel with the tree, and read its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        about = next(PurePosixPath(name).parent for name in names if name.endswith(".dist-info/METADATA"))
        told = Parser().parsestr(archive.read(f"{about}/METADATA").decode())
        scripts = archive.read(f"{about}/entry_points.txt").decode()
    package = {name for name in names if not name.startswith(f"{about}/")}
    wrong = differences(package, {name.removeprefix("src/") for name in tree if name.startswith("src/")})
    wrong += [f"missing: {name}" for name in sorted(NEEDED - package)]
    wrong += [f"made by running: {name}" for name in sorted(package) if MADE.search(name)]
    wrong += [
        f"a test: {name}" for name in sorted(package) if PurePosixPath(name).name.startswith(("test_", "conftest"))
    ]
    if f"{about}/licenses/LICENSE" not in names:
        wrong.append("missing: the licence")
    if "kernpool = kernpool.__main__:main" not in scripts:
        wrong.append("missing: the command kernpool")
    if told["Description-Content-Type"] != "text/markdown" or "# kernpool" not in told.get_payload():
        wrong.append("the README is not the description")
    return wrong


def wrong_in_source(source: Path, tree: set[str]) -> list[str]:
    """Compare a source archive with the tree."""
    with tarfile.open(source) as archive:
        inside = [member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()]
    found = set(inside) - OF_GIT_ALONE
    wrong = differences(found, tree.union({"PKG-INFO"}) - OF_GIT_ALONE)
    wrong += [
        f"missing: {top}"
        for top in sorted(TO_WORK_ON_IT)
        if not any(f"{name}/".startswith(f"{top}/") for name in found)
    ]
    return wrong + [f"made by running: {name}" for name in sorted(found) if MADE.search(name)]


def listed(wheel: Path) -> str:
    """List a wheel: files and bytes of every subpackage, and every file that is no Python."""
    with zipfile.ZipFile(wheel) as archive:
        members = [member for member in archive.infolist() if not member.is_dir()]
    subpackages = Counter("/".join(member.filename.split("/")[:2]) for member in members)
    lines = [f"{wheel.name}: {len(members)} files, {wheel.stat().st_size / 1000:.0f} kB"]
    lines += [
        f"  {count:4d}  {subpackage}" for subpackage, count in sorted(subpackages.items()) if "." not in subpackage
    ]
    others = [member for member in members if not member.filename.endswith(".py")]
    return "\n".join(lines + [f"  {member.file_size:8d} bytes  {member.filename}" for member in others])


def main(folder: Path) -> None:
    """Check the newest pair of archives in a folder, which has to hold one of each."""
    (wheel,), (source,) = sorted(folder.glob("*.whl")), sorted(folder.glob("*.tar.gz"))
    print(listed(wheel))
    expected = tree()
    wrong = [f"{wheel.name}: {what}" for what in wrong_in_wheel(wheel, expected)]
    wrong += [f"{source.name}: {what}" for what in wrong_in_source(source, expected)]
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
