"""The check of commit messages (`tools/commit_subject.py`), which a hook of .pre-commit-config.yaml runs."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "commit_subject.py"


@pytest.fixture(scope="module")
def objections():
    spec = importlib.util.spec_from_file_location("kernpool_tools_commit_subject", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.objections


@pytest.mark.parametrize(
    "message",
    [
        "Add a kernel",
        "X" * 72,
        "Add a kernel\n\nIt was missing, and\nadded now.\n",
        "\n# comment\nAdd a kernel\n# Please enter the commit message\n",
        "Embed the page in the notebook",
        "Fix #3: a sum of no rows",
        "Merge branch 'main' into a branch whose name is so long that git alone would write such a subject",
        'Revert "Added a kernel."',
        "fixup! added a kernel",
        "Add a kernel\n# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n",
        "",
        "Ändere nichts",
    ],
)
def test_messages_that_are_accepted(message, objections):
    assert objections(message) == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Added a kernel", "subject starts with 'Added': write an imperative"),
        ("Fixed: a sum of no rows", "subject starts with 'Fixed': write an imperative"),
        ("\n\nRemoved a kernel\n", "subject starts with 'Removed': write an imperative"),
        ("add a kernel", "subject starts with 'add': begin with a capital letter"),
        ("X" * 73, "subject has 73 characters: write at most 72"),
        ("Add a kernel.", "subject ends with a full stop"),
        ("Add a kernel\nand say why", "no empty line between subject and body"),
    ],
)
def test_messages_that_are_refused(message, expected, objections):
    found = objections(message)
    assert len(found) == 1
    assert found[0].startswith(expected)


def test_every_fault_is_named(objections):
    assert len(objections(f"added {'x' * 80}.\nbody")) == 5


@pytest.mark.parametrize(("subject", "status"), [("Add a kernel", 0), ("Added a kernel", 1)])
def test_the_hook_reads_a_file(subject, status, tmp_path):
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(f"{subject}\n\nÜber alles.\n", encoding="utf-8")
    done = subprocess.run([sys.executable, TOOL, path], capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert bool(done.stderr) == bool(status)
