"""The same bits as before: digests of fifty answers, taken before the modules were moved to their rooms."""

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
    """Run all problems in a process of their own."""
    found = subprocess.run(
        [sys.executable, "-m", "tests.support.same_bits"],
        env={**os.environ, **ENVIRONMENT},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(found.stdout)


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
