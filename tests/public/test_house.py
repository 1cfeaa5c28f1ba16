"""The rules that the sources and the tests are laid out by."""

import ast
import re
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "src" / "kernpool"
MOST_CODE, LONGEST_FUNCTION = 430, 80  # lines of code of a file and of a function
MOST_FILES, MOST_FOLDERS = 14, 2  # modules of a folder; folders with a module of one name
# Lines of imports among lines of code. It was .09: deleted features took 19 % of the imports and 23 % of the rest.
MOST_IMPORTS = 0.094
AT_THE_ROOT = {"__init__.py", "__main__.py", "_arrays.py", "_version.py", "datasets.py", "py.typed"}
WITHOUT_SUBPACKAGE = {"battery", "docs", "fuzz", "laws", "public", "support"}  # tests of more than one subpackage
PRIMITIVES = {"reduce", "pullback"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTION)
# Words that say nothing to a reader who does not know the code, in the forms that names and docstrings have.
BANNED = re.compile(
    r"(?<![a-z])(settle[sd]?|settling|told|whoever|nobody|foretells?|foretold|strange(r|st|ness|ly)?|taken[ _]off|"
    r"shades|rooms?|doors?|twins?|gates?|deals?)(?![a-z])"
)


@cache
def tree_of(path):
    return ast.parse(path.read_text(), filename=str(path))


def sources():
    return sorted(PACKAGE.rglob("*.py"))


def named(path):
    return path.relative_to(TESTS.parent).as_posix()


def test_few_modules_lie_outside_of_subpackages():
    found = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert found <= AT_THE_ROOT, f"put into a subpackage: {sorted(found - AT_THE_ROOT)}"


def modules():
    return [path for path in sources() if path.name != "__init__.py"]


def test_no_folder_has_many_modules():
    counts = Counter(named(path.parent) for path in modules())
    many = {folder: count for folder, count in counts.items() if count > MOST_FILES}
    assert not many, f"at most {MOST_FILES} modules in a folder: make a subpackage of one subject in {many}"


def test_no_file_name_is_in_many_folders():
    folders = defaultdict(list)
    for path in modules():
        folders[path.name].append(named(path.parent))
    many = {name: where for name, where in folders.items() if len(where) > MOST_FOLDERS}
    assert not many, f"at most {MOST_FOLDERS} modules of one name, which editors show alone: rename some of {many}"


def test_no_two_classes_have_one_name():
    places = defaultdict(list)
    for path in sources():
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{named(path)}:{node.lineno}")
    several = {name: where for name, where in places.items() if len(where) > 1}
    assert not several, f"a class has a name of its own: rename one of {several}"


def test_no_constant_is_assigned_twice():
    """Two files that are merged may both have one of a name, and the second would win in silence."""
    twice = []
    for path in sources():
        assigned = [node for node in tree_of(path).body if isinstance(node, ast.Assign)]
        names = [
            name.id
            for node in assigned
            for target in node.targets
            for name in ast.walk(target)
            if isinstance(name, ast.Name)
        ]
        twice += [f"{named(path)} {name}" for name, count in Counter(names).items() if count > 1]
    assert not twice, f"give each constant a name of its own: {twice}"


def test_every_folder_of_tests_has_its_subpackage():
    """Or its module, where that has several files of tests."""
    folders = [path.parent.relative_to(TESTS) for path in TESTS.rglob("__init__.py") if path.parent != TESTS]
    misplaced = [
        folder.as_posix()
        for folder in folders
        if folder.parts[0] not in WITHOUT_SUBPACKAGE
        if not (PACKAGE / folder / "__init__.py").exists() and not (PACKAGE / folder).with_suffix(".py").exists()
    ]
    assert not misplaced, f"tests lie where their sources do, or in {sorted(WITHOUT_SUBPACKAGE)}: move {misplaced}"
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


def docstrings_of(path):
    """The expressions that are docstrings."""
    first = [node.body[0] for node in ast.walk(tree_of(path)) if isinstance(node, DOCUMENTED) and node.body]
    return [node for node in first if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]


def spanned(nodes):
    return {line for node in nodes for line in range(node.lineno, node.end_lineno + 1)}


@cache
def code_of(path):
    """The numbers of the lines that hold code: neither blank, nor a comment, nor part of a docstring."""
    documentation = spanned(docstrings_of(path))
    lines = enumerate(path.read_text().splitlines(), 1)
    return {at for at, line in lines if line.strip() and line.strip()[0] != "#" and at not in documentation}


def lines_of_code(path):
    return len(code_of(path))


def test_imports_are_a_small_part_of_the_code():
    """Many imports are the sign of modules that are cut too small."""
    imports = {
        path: spanned(node for node in ast.walk(tree_of(path)) if isinstance(node, ast.Import | ast.ImportFrom))
        & code_of(path)
        for path in sources()
    }
    part = sum(map(len, imports.values())) / sum(map(lines_of_code, sources()))
    most = sorted(imports, key=lambda path: len(imports[path]), reverse=True)[:5]
    assert part <= MOST_IMPORTS, (
        f"{part:.2%} of the lines of code are imports, at most {MOST_IMPORTS:.1%} may be: merge modules that are "
        f"always imported together; most imports are in {[named(path) for path in most]}"
    )


def test_options_of_the_command_line_are_named_by_it_alone():
    """Callers of Python do not know them; what reads tables for the command line may name them, too."""
    option, found = re.compile(r"(?<![\w-])--[a-z]"), defaultdict(list)
    for path in sources():
        documentation = {id(node.value) for node in docstrings_of(path)}
        for node in ast.walk(tree_of(path)):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in documentation else None
            if isinstance(text, str) and option.search(text):
                found[path.relative_to(PACKAGE).as_posix()].append(f"{node.lineno}: {text!r:.80}")
    outside = {path: texts for path, texts in found.items() if path.split("/")[0] not in ("cli", "tables")}
    assert not outside, f"name the argument of Python, and let kernpool.cli translate: {outside}"


def has_banned_word(text):
    """Whether a name, in which a capital begins a word as an underscore does, or a text has a banned word."""
    return BANNED.search(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()) is not None


def test_banned_words_are_found():
    for text in ("settle_edges", "JackknifeTwin", "whoever asks", "Rooms", "what is taken off", "_as_told", "door2"):
        assert has_banned_word(text), text
    for text in ("Headroom", "shade", "ideal", "between", "aggregate", "mushroom", "taken", "delegate", "investigate"):
        assert not has_banned_word(text), text


def test_names_have_no_banned_word():
    """Of files and folders, classes and functions."""
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    found = {at for path in files if has_banned_word(at := path.relative_to(PACKAGE).as_posix())}
    found |= {
        f"{path.relative_to(PACKAGE).as_posix()} {node.name}"
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, (ast.ClassDef, *FUNCTION)) and has_banned_word(node.name)
    }
    assert not found, f"name it by a word of the field (banned: {BANNED.pattern}): {sorted(found)}"


def test_docstrings_begin_without_a_banned_word():
    found = {
        f"{path.relative_to(PACKAGE).as_posix()} {getattr(node, 'name', '(module)')}"
        for path in sources()
        for node in ast.walk(tree_of(path))
        if isinstance(node, DOCUMENTED) and has_banned_word((ast.get_docstring(node) or "").partition("\n")[0])
    }
    assert not found, f"say it in words of the field (banned: {BANNED.pattern}): {sorted(found)}"


def test_titles_of_pages_have_no_banned_word():
    pages = sorted((TESTS.parent / "docs").rglob("*.md"))
    titles = {named(path): re.search(r"^# (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE) for path in pages}
    found = {page for page, title in titles.items() if title and has_banned_word(title[1])}
    assert not found, f"use the title that readers search for (banned: {BANNED.pattern}): {sorted(found)}"


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


def subpackages():
    """Folders with modules, at any depth; those of compiled loops belong to the subpackage that they lie in."""
    folders = sorted(path.parent for path in PACKAGE.rglob("__init__.py"))
    return [folder for folder in folders if folder != PACKAGE and folder.name != "loops"]


def test_every_subpackage_says_what_to_read_first():
    """In backticks, a module or a subpackage that lies in it."""
    silent = []
    for folder in subpackages():
        inside = {path.stem for path in folder.glob("*.py")}
        inside |= {path.parent.name for path in folder.glob("*/__init__.py")}
        inside -= {"__init__"}
        docstring = ast.get_docstring(tree_of(folder / "__init__.py")) or ""
        mentioned = {name.removesuffix(".py").strip("/") for name in re.findall(r"`+([\w./]+)`+", docstring)}
        mentioned |= {part for name in mentioned for part in name.split("/")}
        if not docstring or (len(inside) > 1 and not inside & mentioned):
            silent.append(named(folder))
    assert not silent, f"the docstring of __init__ says what it is for, and which `file` to read first: {silent}"


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
        for subpackage in ("pooling", "dask")
        for path in sorted((PACKAGE / subpackage).rglob("*.py"))
        for node in ast.walk(tree_of(path))
        if isinstance(node, FUNCTION)
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if argument.arg in ("options", "similarity")
        and argument.annotation is not None
        and re.search(r"(dict|Mapping)\[str, Any\]", ast.unparse(argument.annotation))
    ]
    assert not bags, f"name what is passed, or pass a Recipe: {bags}"
