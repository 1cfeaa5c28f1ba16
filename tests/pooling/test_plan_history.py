"""What ``"auto"`` chooses may depend on whether the process has loaded the compiler; what a name says does not."""

import json
import subprocess
import sys

import pytest

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
    problem = Problem.from_arrays(*arrays, bandwidth=0.5)
    plan = choose(problem)
    digest = hashlib.sha256(pool(*arrays, bandwidth=0.5, algorithm="reference").tobytes()).hexdigest()
    found[f"{{m}}x1000, {{columns}}"] = plan.algorithm, plan.reason, digest
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def plans():
    """What a young process and one with a compiler say of the same problems: algorithm, reason, bits by name."""
    both = []
    for first, loaded in (("", False), ("import numba", True)):
        script = SCRIPT.format(first=first, loaded=loaded)
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        both.append(json.loads(done.stdout))
    return both


def test_small_and_large_problems_have_one_plan(plans):
    """Up to ten thousand pairs, and from a million on."""
    young, old = plans
    for problem in ("5x1000, 1", "5x1000, 3"):
        assert young[problem][0] == old[problem][0] == "reference"
        assert "compiler" not in young[problem][1]
    assert young["1100x1000, 3"][0] == old["1100x1000, 3"][0] != "reference"


def test_between_them_dense_sums_serve_until_the_compiler_is_there_and_the_plan_says_so(plans):
    young, old = plans
    for problem in ("300x1000, 1", "300x1000, 3"):
        assert young[problem][0] == "reference" != old[problem][0]
        assert young[problem][1].endswith("; compiled loops are not loaded yet")
        assert "loaded" not in old[problem][1]


def test_a_name_gives_the_same_bits_whatever_the_process_did_before(plans):
    young, old = plans
    assert [bits for *_, bits in young.values()] == [bits for *_, bits in old.values()]
