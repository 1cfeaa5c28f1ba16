"""The rules that the sources and the tests are laid out by."""

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "src" / "kernpool"
AT_THE_ROOT = {"__init__.py", "__main__.py", "datasets.py", "py.typed"}
WITHOUT_ROOM = {"laws", "public", "support", "fuzz"}  # tests of more than one room


@cache
def tree_of(path):
    return ast.parse(path.read_text(), filename=str(path))


def named(path):
    return path.relative_to(TESTS.parent).as_posix()


def test_hardly_anything_lies_beside_the_rooms():
    found = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert found <= AT_THE_ROOT, f"put into a room: {sorted(found - AT_THE_ROOT)}"


def test_every_folder_of_tests_has_its_room():
    folders = [path.parent.relative_to(TESTS) for path in TESTS.rglob("__init__.py") if path.parent != TESTS]
    strange = [
        folder.as_posix()
        for folder in folders
        if folder.parts[0] not in WITHOUT_ROOM and not (PACKAGE / folder / "__init__.py").exists()
    ]
    assert not strange, f"tests lie where their sources do, or in one of {sorted(WITHOUT_ROOM)}: move {strange}"
    empty = [named(path) for path in TESTS.rglob("*") if path.is_dir() and not (path / "__init__.py").exists()]
    empty = [path for path in empty if "__pycache__" not in path]
    assert not empty, f"tests are a package, so that names may repeat: add __init__.py to {empty}"


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_test_is_imported_from_another():
    borrowed = [
        f"{named(path)}: {name}"
        for path in sorted(TESTS.rglob("*.py"))
        for name in imported(tree_of(path))
        if re.match(r"tests(\.\w+)*\.(test_\w+|conftest)\b", name)
    ]
    assert not borrowed, f"what several tests need is in tests/support: {borrowed}"


def test_what_supports_tests_is_used_by_several():
    """Names that one file alone uses belong into it."""
    texts = {path: path.read_text() for path in sorted(TESTS.rglob("*.py"))}
    lonely = []
    for path in sorted((TESTS / "support").glob("*.py")):
        module = f"tests.support.{path.stem}"
        users = [named(other) for other, text in texts.items() if other != path and re.search(rf"\b{module}\b", text)]
        is_program = "__main__" in texts[path]  # which runs in a process of its own
        if path.stem != "__init__" and len(users) < 2 and not is_program:
            lonely.append(f"{named(path)} by {users}")
    assert not lonely, f"used by one file or none: {lonely}"
