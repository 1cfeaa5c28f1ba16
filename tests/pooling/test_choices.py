"""What is chosen for some problems, and what each algorithm would take: constants are easily broken unseen."""

import json
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from kernpool import Problem, choose
from kernpool.algorithms import algorithm
from kernpool.pooling.plan import choose_algorithm

BITS = (256, 512)
STORED = Path(__file__).with_name("choices.json")

# queries, keys, columns, and the rest
CASES = [
    (5, 100, 1, {}),
    (50, 100, 3, {"kernel": "epanechnikov"}),
    (150, 150, 2, {}),
    (300, 300, 1, {"kernel": "laplace"}),
    (300, 400, 2, {"degree": 1}),
    (700, 700, 1, {"kernel": "cosine"}),
    (900, 1000, 3, {"kernel": "product biweight"}),
    (900, 1000, 6, {"kernel": "product epanechnikov"}),
    (1000, 1000, 20, {}),
    (500, 800, 2, {"mask": bool}),
    (2000, 3000, 1, {"mask": float}),
    (5, 20000, 1, {}),
    (100, 20000, 1, {"degree": 1}),
    (100, 20000, 1, {"kernel": "logistic"}),
    (5000, 5000, 1, {"kernel": "cosine", "bandwidth": 0.02}),
    (5000, 5000, 1, {"kernel": "logistic", "bandwidth": 0.01}),
    (20000, 20000, 1, {"kernel": "triweight", "degree": 1}),
    (20000, 20000, 1, {"kernel": "constant"}),
    (20000, 20000, 2, {"bandwidth": 0.05, "degree": 1}),
    (20000, 20000, 2, {"kernel": "epanechnikov", "bandwidth": 0.5, "degree": 1}),
    (20000, 20000, 2, {"kernel": "boxcar", "bandwidth": 2.0}),
    (20000, 20000, 3, {"kernel": "laplace", "bandwidth": 0.02}),
    (20000, 20000, 6, {"kernel": "triweight", "bandwidth": 1.0}),
    (60000, 60000, 2, {"bandwidth": 0.4}),
    (100, 60000, 4, {"bandwidth": 0.1, "values": 3}),
]


def named(case):
    m, n, d, options = case
    return f"{m} x {n}, {d} columns" + "".join(f", {getattr(given, '__name__', given)}" for given in options.values())


def problem_of(m, n, d, options):
    """Normal rows, of which no number depends on what a generator was asked before."""
    options = dict(options)
    generator = np.random.default_rng([m, n, d])
    key, query = generator.normal(size=(n, d)), generator.normal(size=(m, d))
    value = generator.normal(size=(n, options.pop("values", 1)))
    if mask := options.pop("mask", None):
        options["attn_mask"] = (generator.random((m, n)) < 0.5).astype(mask)
    return Problem.from_arrays(query, key, value, **{"bandwidth": 0.3} | options)


def take(case):
    problem = problem_of(*case)
    plan = choose_algorithm(problem)
    return {"chosen": plan.algorithm, "seconds": plan.seconds}


@contextmanager
def class_of(bits):
    """Have the costs of a class of processors."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algorithm, "vector_bits", lambda: bits)
        algorithm.pair_cost.cache_clear()
        yield
    algorithm.pair_cost.cache_clear()


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_same_algorithm_is_chosen_for_the_same_reason(case, bits):
    with class_of(bits):
        stored, found = json.loads(STORED.read_text())[str(bits)][named(case)], take(case)
    if "nufft" not in found["seconds"]:  # is not installed
        stored["seconds"].pop("nufft", None)
        stored["chosen"] = min(stored["seconds"], key=stored["seconds"].__getitem__)
    assert found["chosen"] == stored["chosen"]
    assert found["seconds"] == pytest.approx(stored["seconds"], rel=1e-6)


def test_a_single_call_of_few_pairs_loads_no_compiler():
    """A hundred thousand pairs take milliseconds either way; what is summed often is worth the wait."""
    assert choose(problem_of(300, 300, 2, {})).algorithm == "reference"
    assert choose(problem_of(300, 300, 2, {}), reuse=True).algorithm == "brute"
    assert choose(problem_of(900, 1000, 2, {})).algorithm == "brute"


if __name__ == "__main__":
    taken = {}
    for width in BITS:
        with class_of(width):
            taken[width] = {named(case): take(case) for case in CASES}
    STORED.write_text(json.dumps(taken, indent=1) + "\n")
