"""The rules that the sources and the tests are laid out by."""

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "src" / "kernpool"
MOST_CODE, LONGEST_FUNCTION = 430, 80  # lines of code of a file and of a function
AT_THE_ROOT = {"__init__.py", "__main__.py", "_version.py", "datasets.py", "py.typed"}
WITHOUT_ROOM = {"docs", "fuzz", "laws", "public", "support"}  # tests of more than one room
PRIMITIVES = {"reduce", "pullback"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def tree_of(path):
    return ast.parse(path.read_text(), filename=str(path))


def sources():
    return sorted(PACKAGE.rglob("*.py"))


def named(path):
    return path.relative_to(TESTS.parent).as_posix()


def test_hardly_anything_lies_beside_the_rooms():
    found = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert found <= AT_THE_ROOT, f"put into a room: {sorted(found - AT_THE_ROOT)}"


def test_every_folder_of_tests_has_its_room():
    """Or its module, where that has several files of tests."""
    folders = [path.parent.relative_to(TESTS) for path in TESTS.rglob("__init__.py") if path.parent != TESTS]
    strange = [
        folder.as_posix()
        for folder in folders
        if folder.parts[0] not in WITHOUT_ROOM
        if not (PACKAGE / folder / "__init__.py").exists() and not (PACKAGE / folder).with_suffix(".py").exists()
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


def lines_without_docstring(function):
    first = function.body[0]
    string = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    docstring = first.end_lineno - first.lineno + 1 if string else 0
    return function.end_lineno - function.lineno + 1 - docstring


def lines_of_code(path):
    """Count the lines that hold code: neither blank, nor a comment, nor part of a docstring."""
    documented = (ast.Module, ast.ClassDef, *FUNCTION)
    first = [node.body[0] for node in ast.walk(tree_of(path)) if isinstance(node, documented) and node.body]
    strings = [node for node in first if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    documentation = {line for node in strings for line in range(node.lineno, node.end_lineno + 1)}
    lines = enumerate(path.read_text().splitlines(), 1)
    return sum(bool(line.strip()) and line.strip()[0] != "#" and at not in documentation for at, line in lines)


def test_no_file_is_long():
    long = {named(path): lines for path in sources() if (lines := lines_of_code(path)) > MOST_CODE}
    assert not long, f"at most {MOST_CODE} lines of code, one subject per file: split {long}"


def test_no_function_is_long():
    long = {
        f"{named(path)}:{node.lineno} {node.name}": lines
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, FUNCTION) and (lines := lines_without_docstring(node)) > LONGEST_FUNCTION
    }
    assert not long, f"at most {LONGEST_FUNCTION} lines without the docstring: split {long}"


def rooms():
    """Folders with modules, at any depth; those of compiled loops are the back of the room that they lie in."""
    folders = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
    return [folder for folder in folders if folder != PACKAGE and folder.name != "loops"]


def test_every_room_says_what_to_read_first():
    """In backticks, a module or a room that lies in it."""
    silent = []
    for room in rooms():
        inside = {path.stem for path in room.glob("*.py")} | {path.parent.name for path in room.glob("*/__init__.py")}
        inside -= {"__init__"}
        docstring = ast.get_docstring(tree_of(room / "__init__.py")) or ""
        mentioned = {name.removesuffix(".py").strip("/") for name in re.findall(r"`+([\w./]+)`+", docstring)}
        mentioned |= {part for name in mentioned for part in name.split("/")}
        if not docstring or (len(inside) > 1 and not inside & mentioned):
            silent.append(named(room))
    assert not silent, f"the docstring of __init__ says what the room is, and which `file` to read first: {silent}"


def is_record(module):
    """Whether a module makes the record of an algorithm, which holds its two functions."""
    return any(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Algorithm"
        for node in ast.walk(module)
    )


def test_reduce_and_pullback_name_the_two_primitives_alone():
    """Functions in the file that makes the record of an algorithm or where that has them from, and methods."""
    records = [path for path in sources() if is_record(tree_of(path))]
    taken = {name for path in records for name in imported(tree_of(path))}
    others = [
        f"{named(path)}:{node.lineno} {node.name}"
        for path in sources()
        if path not in records
        for node in tree_of(path).body
        if isinstance(node, FUNCTION) and node.name in PRIMITIVES
        if ".".join(["kernpool", *path.relative_to(PACKAGE).with_suffix("").parts, node.name]) not in taken
    ]
    assert not others, f"give helpers names that say what they add up: {others}"


def test_options_are_not_bags():
    """A recipe or keywords by name: what a dictionary holds no reader and no type checker knows."""
    bags = [
        f"{named(path)}:{node.lineno} {node.name}({argument.arg})"
        for room in ("pooling", "dask")
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, FUNCTION)
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if argument.arg in ("options", "similarity")
        and argument.annotation is not None
        and re.search(r"(dict|Mapping)\[str, Any\]", ast.unparse(argument.annotation))
    ]
    assert not bags, f"name what is passed, or pass a Recipe: {bags}"
