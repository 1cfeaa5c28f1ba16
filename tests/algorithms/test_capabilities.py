"""What every algorithm can do, written down once: what it says, what it does, and how it refuses the rest."""

import re
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest

from kernpool import choose, get_kernel, kernel_names
from kernpool.algorithms import ALGORITHMS
from kernpool.core import MOST_COLUMNS
from kernpool.kernels import is_built_in
from kernpool.pooling import rounding_bound
from tests.support.capabilities import missing_package, param, tiny_problem
from tests.support.problems import with_products

BUILT_IN = [
    "gaussian", "boxcar", "constant", "epanechnikov", "triangular", "biweight", "triweight", "tricube", "cosine",
    "laplace", "logistic",
]  # fmt: skip
KERNELS = with_products(BUILT_IN)
COLUMNS = (1, 2, 3, 9, 10, 16, 17, 40)  # where loops change, and where an algorithm ends
EVERY = {"columns": COLUMNS, "mask": (None, "bool", "float"), "degree": (0, 1, 2)}

# What an algorithm can do is the product of its sets; "own" is a kernel that a user has registered or made.
GOLDEN = {
    "reference": EVERY | {"kernel": [*KERNELS, "own"]},
    "brute": EVERY | {"kernel": [*KERNELS, "own"]},
    "sweep": EVERY | {"kernel": KERNELS, "columns": (1,), "mask": (None,)},
    "kd_tree": EVERY | {"kernel": KERNELS, "columns": (1, 2, 3, 9, 10, 16), "mask": (None,), "degree": (0, 1)},
    "nufft": EVERY | {"kernel": ["gaussian"], "columns": (2, 3), "mask": (None,), "degree": (0,)},
}
PACKAGES = {"nufft": "finufft"}  # without which an algorithm cannot run


class Case(NamedTuple):
    kernel: str
    columns: int
    mask: str | None
    degree: int


def cases_of(kernel):
    masks, degrees = EVERY["mask"], EVERY["degree"]
    for columns, mask, degree in product(COLUMNS, masks, degrees):
        if degree < 2 or columns <= MOST_COLUMNS:  # beyond, there is no such problem
            yield Case(kernel, columns, mask, degree)


def allowed(algorithm, case):
    """Whether the table says so."""
    if algorithm == "sweep" and case.kernel.endswith("laplace") and case.degree:
        return False
    return all(value in GOLDEN[algorithm][name] for name, value in case._asdict().items())


def here(algorithm):
    return missing_package(algorithm) is None


def test_the_table_knows_all_algorithms_and_kernels():
    assert list(GOLDEN) == list(ALGORITHMS)
    assert sorted(BUILT_IN) == sorted(name for name in kernel_names() if is_built_in(get_kernel(name)))
    assert all(one.pullback is not None for one in ALGORITHMS.values())
    assert {name: one.needs[0] for name, one in ALGORITHMS.items() if one.needs} == PACKAGES


@pytest.mark.parametrize("kernel", [*KERNELS, "own"])
@pytest.mark.parametrize("algorithm", GOLDEN)
def test_what_is_said_is_what_the_table_says(algorithm, kernel):
    for case in cases_of(kernel):
        refusal = ALGORITHMS[algorithm].refusal(tiny_problem(**case._asdict()))
        if not allowed(algorithm, case):
            assert refusal is not None, case
            assert "needs the package" not in refusal, case
        elif here(algorithm):
            assert refusal is None, (case, refusal)
        else:
            name, extra = ALGORITHMS[algorithm].needs
            assert refusal == f'needs the package {name}: pip install "kernpool[{extra}]"', case


@pytest.mark.parametrize("kernel", [*KERNELS, "own"])
@pytest.mark.parametrize("algorithm", GOLDEN)
def test_a_refusal_names_what_can_do_it(algorithm, kernel):
    for case in cases_of(kernel):
        if allowed(algorithm, case) and here(algorithm):
            continue
        with pytest.raises(ValueError, match="use algorithm='auto' or one of") as caught:
            choose(tiny_problem(**case._asdict()), algorithm)
        assert str(caught.value).startswith(f"algorithm {algorithm!r} ")
        remedies = re.findall(r"'(\w+)'", str(caught.value).rpartition("one of")[2])
        assert remedies == [name for name in GOLDEN if allowed(name, case) and here(name)], case


TOGETHER = [(name, kernel) for name in GOLDEN if name != "reference" for kernel in GOLDEN[name]["kernel"]]
AT_ONCE = {("brute", "gaussian"), ("brute", "own"), ("sweep", "epanechnikov"), ("kd_tree", "gaussian"),
           ("nufft", "gaussian")}  # fmt: skip # each compiles every loop of its kernel


@pytest.mark.parametrize(
    ("algorithm", "kernel"),
    [param(*row, marks=() if row in AT_ONCE else pytest.mark.slow) for row in TOGETHER],
)
def test_what_is_allowed_is_done_and_right(algorithm, kernel):
    cases = [case for case in cases_of(kernel) if allowed(algorithm, case)]
    assert cases
    for case in cases:
        problem = tiny_problem(**case._asdict())
        expected, state = (choose(problem, name).reduce(problem) for name in ("reference", algorithm))
        np.testing.assert_array_equal(state.denominator == 0, expected.denominator == 0, err_msg=str(case))
        found, target = state.finalize("zero"), expected.finalize("zero")
        values, bound = problem.layout.values, rounding_bound(problem, expected)
        assert np.all(np.abs(found - target)[:, :values] <= bound), case
        np.testing.assert_allclose(found[:, values:], target[:, values:], rtol=1e-11, atol=1e-11, err_msg=str(case))


@pytest.mark.parametrize("kernel", [*KERNELS, "own"])
def test_auto_never_refuses(kernel):
    for case in cases_of(kernel):
        problem = tiny_problem(**case._asdict())
        assert allowed(choose(problem).algorithm, case)
