"""The same bits as before: digests of fifty answers, taken before the modules were moved to their subpackages."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from tests.support.same_bits import ENVIRONMENT, problems

STORED = Path(__file__).with_name("same_bits.json")


def take():
    """Run all problems in a process of their own, and once more with what the first one compiled.

    A process that compiles a loop itself may sum its moments in another order than one that finds it in the cache.
    """
    command = [sys.executable, "-m", "tests.support.same_bits"]
    options = {"env": {**os.environ, **ENVIRONMENT}, "cwd": Path(__file__).parents[2], "check": True}
    subprocess.run(command, capture_output=True, **options)
    return json.loads(subprocess.run(command, capture_output=True, text=True, **options).stdout)


def made_with():
    """What the bits depend on beside the project."""
    return {name: version(name) for name in ("numpy", "numba", "scipy")} | {"machine": platform.machine()}


@pytest.mark.slow
def test_every_bit_is_what_it_was():
    stored, found = json.loads(STORED.read_text()), take()
    assert set(found) == set(stored["answers"]) == set(problems())
    for name, now in found.items():
        then = stored["answers"][name]
        np.testing.assert_allclose(now["some"], then["some"], rtol=1e-6, atol=1e-6 * then["range"], err_msg=name)
    if stored["made_with"] == made_with():
        assert [name for name in found if found[name]["digest"] != stored["answers"][name]["digest"]] == []


if __name__ == "__main__":
    STORED.write_text(json.dumps({"made_with": made_with(), "answers": take()}, indent=1) + "\n")
