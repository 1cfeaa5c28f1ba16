"""The fuzzer itself: some of its problems in every run of the tests, and the fault that it was made for."""

import subprocess
import sys

import numpy as np
import pytest

from kernpool.algorithms.loops.kernel_weights import GAUSSIAN
from kernpool.algorithms.tree import kd_tree as tree_copies
from kernpool.algorithms.verification import FAULTS
from tests.fuzz.cases import draw, recipe
from tests.fuzz.checks import check
from tests.fuzz.natures import NATURES
from tests.fuzz.reached import PARTS
from tests.fuzz.regimes import KINDS
from tests.fuzz.report import Report
from tests.fuzz.worker import attempt
from tests.support.thinning import slow

SEED, CASES, QUICK = 2026, 12, 1


@pytest.mark.parametrize("index", [*range(QUICK), *slow(*range(QUICK, CASES))])
def test_every_answer_of_a_random_problem_is_right(index):
    report, told = attempt(draw(SEED, index))
    assert not told, told
    assert report.answers > 0


@pytest.mark.slow  # draws 200 problems
def test_kinds_of_problems_are_all_drawn():
    cases = [draw(SEED, index) for index in range(200)]
    assert {case.kind for case in cases} == set(KINDS)
    assert {case.nature for case in cases} == {nature.__name__ for nature in NATURES}
    assert {case.key.dtype for case in cases} == {np.dtype(np.float32), np.dtype(np.float64)}
    assert {case.key.shape[1] for case in cases} == set(range(1, 11))


def test_a_case_is_determined_by_its_seed_and_number():
    one, other = draw(5, 17), draw(5, 17)
    for name in ("query", "key", "value"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert str(one) == str(other)


def generous(radius, profile):
    """The bound as it was: for the radius of a leaf its farthest key from the center, which is nearer than a corner."""
    spread = 0.9 * radius
    near = -((np.sqrt(1000.0) - 2.0 * spread) ** 2) if profile.code == GAUSSIAN else 2.0 * spread - 1000.0
    return np.where(spread < 15.0, near, 1.0)


@pytest.mark.slow  # draws forty problems, and compiles for them
def test_the_fault_that_it_was_made_for_is_found(monkeypatch):
    """Narrow windows in leaves that are too wide for the unclamped exponential."""
    monkeypatch.setattr(tree_copies, "_lowest", generous)
    for index in range(40):
        case = draw(3, index, "narrow")
        if not case.options["kernel"].endswith("gaussian"):
            continue
        check(case, report := Report())
        if report.faults:
            break
    assert report.faults, "none of the problems shows the fault"
    assert any(who == "kd_tree" for who, _, _ in report.faults)
    assert recipe(case) == f"python -m tests.fuzz --seed 3 --regime narrow --case {index}"
    FAULTS.clear()  # which this test has caused


@pytest.mark.slow  # processes that compile
def test_from_a_command_line():
    command = [sys.executable, "-m", "tests.fuzz", "--seed", "1", "--seconds", "8"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "fuzzing for 8 s, seed 1" in done.stdout
    assert " 0 cases wrong" in done.stdout
    assert all(name in done.stdout for name in PARTS)
    again = subprocess.run([*command[:3], "--seed", "1", "--case", "3"], capture_output=True, text=True, check=True)
    assert again.stdout.startswith("right: ")
    fresh = [subprocess.run([*command[:3], "--seconds", "0"], capture_output=True, text=True).stdout for _ in range(2)]
    assert fresh[0] != fresh[1]
