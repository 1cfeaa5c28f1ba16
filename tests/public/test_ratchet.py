"""Sizes of the project stay within `tools/ratchet.toml`, whose numbers a change may only lower."""

import tomllib
from pathlib import Path

from tests.support.scripts import tool

RATCHET = tomllib.loads((Path(__file__).parents[2] / "tools" / "ratchet.toml").read_text())
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
