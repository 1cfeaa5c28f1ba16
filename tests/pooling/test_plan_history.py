"""What is chosen, and every bit of it, depends on the problem alone, and not on what the process did before."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow  # three processes, which compile

SCRIPT = """
import hashlib, json, sys
import numpy as np
{first}
from kernpool import Problem, choose, pool

assert ("numba" in sys.modules) == {loaded}
found = {{}}
for m, columns in ((5, 1), (5, 3), (300, 1), (300, 3), (1100, 3)):
    rng = np.random.default_rng(0)
    arrays = rng.normal(size=(m, columns)), rng.normal(size=(1000, columns)), rng.normal(size=1000)
    plan, before = choose(Problem.from_arrays(*arrays, bandwidth=0.5)), "numba" in sys.modules
    digest = hashlib.sha256(pool(*arrays, bandwidth=0.5).tobytes()).hexdigest()
    found[f"{{m}}x1000, {{columns}}"] = plan.algorithm, plan.reason, digest
    assert before == {loaded} or m > 5, "small problems load no compiler"
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def plans():
    """What a young process and one with a compiler say of the same problems: algorithm, reason, bits by name."""
    found = []
    # Once more, because a process that compiles a loop may sum in another order than one that finds it in the cache.
    for first, loaded in (("", False), ("", False), ("import numba", True)):
        script = SCRIPT.format(first=first, loaded=loaded)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    return found[1:]


def test_the_plan_and_the_bits_are_the_same_whatever_the_process_did_before(plans):
    young, old = plans
    assert young == old


def test_small_problems_are_dense_and_others_are_not(plans):
    """Up to a hundred thousand pairs; later calls of more gain what the first one waits for."""
    young, _ = plans
    assert [young[problem][0] for problem in ("5x1000, 1", "5x1000, 3")] == ["reference"] * 2
    assert "reference" not in {young[problem][0] for problem in ("300x1000, 1", "300x1000, 3", "1100x1000, 3")}
