"""Sizes of the project, and what calls pass, stay within `tools/ratchet.toml`, whose numbers may only be lowered."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.scripts import tool

ROOT = Path(__file__).parents[2]
RATCHET = tomllib.loads((ROOT / "tools" / "ratchet.toml").read_text())
WALKS = RATCHET.pop("walks")
MORE = 1.03  # on a processor for which other algorithms are chosen
SLACK = 0.01  # below the number: what is further below has to be written down


def test_sizes_are_within_the_ratchet():
    found = tool("measure").measure()
    assert found.keys() == RATCHET.keys()
    beyond = {name: found[name] for name, most in RATCHET.items() if found[name] > most}
    assert not beyond, f"make it smaller, or say in tools/ratchet.toml what it buys: {beyond}"
    below = {name: found[name] for name, most in RATCHET.items() if found[name] < (1 - SLACK) * most}
    assert not below, f"lower tools/ratchet.toml to what is there: {below}"


def test_tokens_are_code_alone():
    text = '"""Doc."""\n\n\ndef f(x):  # comment\n    """Doc."""\n    return (\n        x\n    )\n'
    assert tool("measure").count_tokens(text) == tool("measure").count_tokens("def f(x):\n    return (x)\n") == 10


def test_calls_pass_no_more_files_and_functions():
    pytest.importorskip("torch", reason="one of the calls is a layer")
    script = [sys.executable, ROOT / "benchmarks" / "walks.py", "--counts"]
    walks = json.loads(subprocess.run(script, capture_output=True, check=True, cwd=ROOT).stdout)
    beyond = {
        name: walks[name]
        for name, most in WALKS.items()
        if any(a > MORE * b for a, b in zip(walks[name], most, strict=True))
    }
    assert not beyond, f"let them pass fewer, or say in tools/ratchet.toml what it buys: {beyond}"
