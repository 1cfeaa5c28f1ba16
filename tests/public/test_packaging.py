"""What is published: extras, bounds, versions, archives, pages of the root. `.ci/wheels` builds and installs."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

import kernpool
from tests.support.scripts import tool

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
SCRIPTS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / ".ci").iterdir())
WORKFLOWS = ROOT / ".github" / "workflows"
SYSTEMS = ("ubuntu", "macos", "windows")
PAGES = ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]


def names_of(requirements):
    return {re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower().replace("_", "-") for requirement in requirements}


# --- extras


def test_every_extra_that_a_message_names_exists():
    named = set()
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text()
        named |= set(re.findall(r"kernpool\[([a-z,]+)\]", source))
        assert "pip install 'kernpool[" not in source, f"{path}: not every shell takes single quotes: use double ones"
    assert named, "no message names an extra"
    assert {extra for extras in named for extra in extras.split(",")} <= set(EXTRAS)


def test_every_extra_has_a_check_or_is_for_development():
    checked = tool("check_extras")
    assert set(checked.EXTRAS) | checked.DEVELOPMENT == set(EXTRAS)
    assert not set(checked.EXTRAS) & checked.DEVELOPMENT
    for extra, (package, _) in checked.EXTRAS.items():
        assert package in names_of(EXTRAS[extra]), extra


def test_all_is_every_extra_that_the_package_uses():
    (everything,) = EXTRAS["all"]
    assert set(everything.removeprefix("kernpool[").removesuffix("]").split(",")) == set(tool("check_extras").EXTRAS)


# --- bounds


def test_lowest_versions_are_those_of_the_project():
    lowest = tool("lowest")
    told = lowest.lowest((ROOT / "pyproject.toml").read_text(), (ROOT / "constraints.txt").read_text())
    assert (ROOT / "constraints-lowest.txt").read_text() == told, "run: python tools/lowest.py"
    assert "\nnumpy==" in told
    assert "\ntorch==" in told


@pytest.mark.parametrize("requirement", ["numpy", "numpy>=2.0,<3", "numpy==2.0"])
def test_a_requirement_without_a_lower_bound_is_refused(requirement):
    text = (ROOT / "pyproject.toml").read_text()
    with pytest.raises(ValueError, match=re.escape(repr(requirement))):
        tool("lowest").lowest(text.replace('"numpy>=2.0"', f'"{requirement}"'), "")


def test_lowest_versions_are_of_every_extra_that_people_install():
    assert set(tool("lowest").EXTRAS) == set(tool("check_extras").EXTRAS) | {"test"}


def test_whatever_the_project_asks_for_is_pinned():
    """An environment of one day is that of the next; a pin is no lower than the bound."""
    pins = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    pins = {name.lower().replace("_", "-"): pin for name, pin in pins.items()}
    for requirement in [*PROJECT["dependencies"], *(one for extra in EXTRAS.values() for one in extra)]:
        (name,) = names_of([requirement])
        if name != "kernpool":
            assert name in pins, f"{requirement}: pin it in constraints.txt"
            bound = re.search(r">=([0-9.]+)", requirement)[1]
            assert numbers(pins[name]) >= numbers(bound), f"{name}=={pins[name]} is below {requirement}"


def numbers(text):
    return [int(part) for part in re.findall(r"\d+", text)]


def test_supported_pythons_are_named():
    lowest = PROJECT["requires-python"].removeprefix(">=")
    named = [name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)]
    assert named[0] == lowest
    assert named == [f"3.{minor}" for minor in range(int(lowest[2:]), int(lowest[2:]) + len(named))]
    for workflow in ("ci", "publish"):
        assert f'python-version: "{lowest}"' in (WORKFLOWS / f"{workflow}.yml").read_text()
    (tested,) = re.findall(r"^ +python: (\[.*\])", (WORKFLOWS / "ci.yml").read_text(), re.MULTILINE)
    assert re.findall(r"\d\.\d+", tested) == named, "the quick tests run on every supported Python"


# --- versions


def test_the_version_needs_neither_git_nor_an_installation(tmp_path):
    """As in an unpacked archive of the sources: a copy of the package, no metadata, no git to ask."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    found = subprocess.run(
        [sys.executable, "-c", "import kernpool; print(kernpool.__file__, kernpool.__version__)"],
        env={"PYTHONPATH": str(tmp_path / "src"), "PATH": ""},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert found == [str(tmp_path / "src" / "kernpool" / "__init__.py"), kernpool.__version__]


def test_the_installed_version_is_that_of_the_package():
    try:
        installed = version("kernpool")
    except PackageNotFoundError:
        pytest.skip("kernpool is not installed here: the sources are on the path")
    assert installed == kernpool.__version__, "the version was raised since: install the working tree anew"


def test_all_places_state_one_version():
    assert tool("release").objections(ROOT) == []


@pytest.fixture
def released(tmp_path):
    """A tree of version 1.2.3 with its section in the changelog."""
    (tmp_path / "src" / "kernpool").mkdir(parents=True)
    (tmp_path / "src" / "kernpool" / "_version.py").write_text('"""Text."""\n\n__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.3 - 2026-01-31\n")
    return tmp_path


def state(tree, before, after):
    for file in ("src/kernpool/_version.py", "CITATION.cff"):
        (tree / file).write_text((tree / file).read_text().replace(before, after))


def test_a_tag_that_agrees_may_be_published(released):
    assert tool("release").objections(released) == []
    assert tool("release").objections(released, "v1.2.3") == []


def test_a_development_version_becomes_a_release(released):
    """As CONTRIBUTING says: the tree may be committed as it is, and be published after .dev0 is dropped."""
    release, changes = tool("release"), released / "CHANGELOG.md"
    dated = changes.read_text()
    state(released, "1.2.3", "1.2.3.dev0")
    changes.write_text("# Changelog\n\n## Unreleased\n")
    assert release.objections(released) == []
    (objection,) = release.objections(released, "v1.2.3")
    assert objection.startswith("kernpool.__version__ is 1.2.3.dev0, a development version: drop .dev in src/kernpool")
    state(released, "1.2.3.dev0", "1.2.3")
    assert len(release.objections(released, "v1.2.3")) == 1  # the changelog is still to be dated
    changes.write_text(dated)
    assert release.objections(released, "v1.2.3") == []
    state(released, "1.2.3", "1.3.0.dev0")
    assert release.objections(released) == []
    changes.write_text(dated.replace("## Unreleased", ""))
    assert release.objections(released) == ['CHANGELOG.md has no section "## Unreleased", which 1.3.0.dev0 needs']


@pytest.mark.parametrize("text", ["1.2", "1.2.3-rc1", "1.2.3dev0", "v1.2.3", "1.2.3.dev", "1.2.3.post1"])
def test_versions_of_another_form_are_refused(released, text):
    state(released, "1.2.3", text)
    assert any("expected 1.2.3.dev0 between releases" in line for line in tool("release").objections(released))


@pytest.mark.parametrize(
    ("file", "before", "after", "tag", "said"),
    [
        ("CITATION.cff", "1.2.3", "1.2.2", "v1.2.3", "CITATION.cff says 1.2.2"),
        ("CHANGELOG.md", "1.2.3", "1.2.4", "v1.2.3", "CHANGELOG.md has no section"),
        ("CHANGELOG.md", " - 2026-01-31", "", "v1.2.3", "CHANGELOG.md has no section"),
        ("CITATION.cff", "", "", "v1.2.4", "the tag has to be v1.2.3"),
        ("CITATION.cff", "", "", "1.2.3", "the tag has to be v1.2.3"),
        ("src/kernpool/_version.py", "1.2.3", "1.2.3.dev0", "v1.2.3.dev0", "a development version: drop .dev"),
    ],
)
def test_a_tag_that_disagrees_is_refused(released, file, before, after, tag, said):
    (released / file).write_text((released / file).read_text().replace(before, after))
    assert any(said in line for line in tool("release").objections(released, tag))


# --- archives


@pytest.fixture
def wheel(tmp_path):
    """What a build would give: the package as it is, and its metadata."""
    archives = tool("archives")
    path = tmp_path / "kernpool-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(archives.tree()):
            if name.startswith("src/"):
                archive.write(ROOT / name, name.removeprefix("src/"))
        told = "Description-Content-Type: text/markdown\n\n# kernpool\n"
        archive.writestr("kernpool-0.dist-info/METADATA", told)
        archive.writestr(
            "kernpool-0.dist-info/entry_points.txt", "[console_scripts]\nkernpool = kernpool.__main__:main\n"
        )
        archive.writestr("kernpool-0.dist-info/licenses/LICENSE", "")
    return path


def rewritten(wheel, changed):
    """The wheel with members replaced, added, or (None) left out."""
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members |= changed
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, data in members.items():
            if data is not None:
                archive.writestr(name, data)
    return wheel


def test_a_wheel_of_the_whole_package_is_right(wheel):
    archives = tool("archives")
    assert archives.wrong_in_wheel(wheel, archives.tree()) == []


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("kernpool/py.typed", None, "missing: kernpool/py.typed"),
        ("kernpool/explorer/page.js", None, "missing: kernpool/explorer/page.js"),
        ("kernpool/explorer/notes.js", b"", "should not be there: kernpool/explorer/notes.js"),
        ("tests/test_pool.py", b"", "a test: tests/test_pool.py"),
        ("kernpool/__pycache__/pool.cpython-311.pyc", b"", "made by running: kernpool/__pycache__"),
        ("kernpool-0.dist-info/licenses/LICENSE", None, "missing: the licence"),
        ("kernpool-0.dist-info/entry_points.txt", b"", "missing: the command kernpool"),
        ("kernpool-0.dist-info/METADATA", b"Name: kernpool\n\n", "the README is not the description"),
    ],
)
def test_what_is_wrong_in_a_wheel_is_found(wheel, name, data, said):
    archives = tool("archives")
    assert any(
        line.startswith(said) for line in archives.wrong_in_wheel(rewritten(wheel, {name: data}), archives.tree())
    )


def test_what_is_wrong_in_a_source_archive_is_found(tmp_path):
    archives = tool("archives")
    tree, path = archives.tree(), tmp_path / "kernpool-0.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name in sorted(tree - {"Makefile", "tests/support/problems.py"}):
            archive.add(ROOT / name, f"kernpool-0/{name}")
        for name in ("PKG-INFO", "src/kernpool/notes.txt", "tests/__pycache__/a.pyc"):
            archive.addfile(tarfile.TarInfo(f"kernpool-0/{name}"))
    assert sorted(set(archives.wrong_in_source(path, tree))) == [
        "made by running: tests/__pycache__/a.pyc",
        "missing: Makefile",
        "missing: tests/support/problems.py",
        "should not be there: src/kernpool/notes.txt",
        "should not be there: tests/__pycache__/a.pyc",
    ]


# --- pages and workflows of the root


@pytest.mark.parametrize("page", PAGES)
def test_links_of_pages_at_the_root_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", (ROOT / page).read_text())
    assert not [link for link in links if "://" not in link and not (ROOT / link).exists()]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md"])
def test_paths_of_pages_at_the_root_exist(page):
    text = (ROOT / page).read_text()
    paths = re.findall(r"`((?:src|tests|tools|docs|\.ci)/[\w./-]+)`", text)
    assert paths or page == "SECURITY.md"
    assert not [path for path in paths if not (ROOT / path).exists()]
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z]+)", "\n".join(re.findall(r"```sh(.*?)```", text, re.DOTALL)))) <= targets


@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_of_the_gate_can_be_run(script):
    assert (ROOT / script).stat().st_mode & 0o111, f"chmod +x {script}"
    text = (ROOT / script).read_text()
    assert text.startswith("#!/usr/bin/env bash\n")
    assert re.search(r"^set -\w*uo? pipefail$", text, re.MULTILINE) or "set -euo pipefail" in text
    subprocess.run(["bash", "-n", script], cwd=ROOT, check=True)


@pytest.mark.parametrize("workflow", ["ci", "publish"])
def test_workflows_run_the_gate(workflow):
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")
    steps = yaml.safe_load((WORKFLOWS / f"{workflow}.yml").read_text())
    jobs = steps["jobs"].values()
    commands = [step["run"].split("#")[0].strip() for job in jobs for step in job["steps"] if "run" in step]
    assert ".ci/run" in commands
    scripts = {word for command in commands for word in command.split() if word.startswith((".ci/", "tools/"))}
    assert all((ROOT / script).exists() for script in scripts)
    assert steps["permissions"] == {"contents": "read"}
    for job in jobs:
        assert job.get("permissions", {}) in ({}, {"id-token": "write"})


def test_tests_run_on_every_system():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")
    matrix = yaml.safe_load((WORKFLOWS / "ci.yml").read_text())["jobs"]["tests"]["strategy"]["matrix"]
    assert {*matrix["os"], *(one["os"] for one in matrix["include"])} == {f"{os}-latest" for os in SYSTEMS}


@pytest.mark.parametrize("workflow", sorted(path.name for path in WORKFLOWS.iterdir()))
def test_actions_are_pinned_by_commit(workflow):
    """A tag can be moved by whoever owns the action; the version is in a comment for readers."""
    uses = re.findall(r"uses: *(.*)", (WORKFLOWS / workflow).read_text())
    loose = [action for action in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)]
    assert uses
    assert not loose, f"write owner/action@commit # v1.2.3: {loose}"


def test_no_file_has_the_address_of_a_package_index():
    """It would be asked for every name, by everybody who installs; a variable of the forge may name one."""
    addressed = r"(index[-_]url|find[-_]links)\W{1,4}(\w+\W{1,4})?(https?|file)://"
    pattern = re.compile(rf"{addressed}|download\.pytorch\.org/whl|pypi\.org/simple", re.IGNORECASE)
    texts = {name: (ROOT / name).read_bytes().decode("utf-8", "replace") for name in sorted(tool("archives").tree())}
    found = {name: pattern.search(text)[0] for name, text in texts.items() if pattern.search(text)}
    assert not found, f"remove the address: {found}"


# --- hooks and templates of the forge


def test_hooks_have_the_versions_of_the_constraints():
    """And need no environment of the project."""
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = {hook["id"]: hook for repo in config["repos"] for hook in repo["hooks"]}
    assert {"ruff-check", "ruff-format", "mypy", "imports", "commit-subject"} <= set(hooks)
    pins = set((ROOT / "constraints.txt").read_text().splitlines())
    for name, hook in hooks.items():
        assert hook["language"] == "python", name
        assert ".venv" not in hook["entry"], name
        assert set(hook.get("additional_dependencies", ())) <= pins, f"{name}: as in constraints.txt"
        for script in re.findall(r"tools/\S+", hook["entry"]):
            assert (ROOT / script).exists(), script
    assert hooks["commit-subject"]["stages"] == ["commit-msg"]
    assert "commit-msg" in config["default_install_hook_types"]


def test_the_citation_is_complete():
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with Dask")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(citation)
    assert citation["license"] == PROJECT["license"]
    assert citation["type"] == "software"
