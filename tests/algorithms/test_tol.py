"""The tolerance may be as small as it likes: nothing is left out then but what no sum could tell."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import Problem, choose, get_kernel, kernel_names
from kernpool.pooling import rounding_bound
from tests.support.capabilities import algorithms, fitting_columns
from tests.support.problems import EVERYTHING

EPSILON = float(np.finfo(float).eps)
TOLERANCES = [0.0, 5e-324, 1e-300, EPSILON]
INFINITE = [name for name in kernel_names() if not get_kernel(name).is_compact]


def make(algorithm, kernel, tol, *, m=200, n=900, degree=0, **options):
    """Several leaves and tiles, with queries near keys, far from them, and very far."""
    generator = np.random.default_rng(0)
    d = fitting_columns(algorithm)
    key = generator.uniform(size=(n, d))
    query = generator.uniform(size=(m, d)) + generator.choice([0.0, 0.0, 0.0, 3.0, 200.0], (m, 1))
    return Problem.from_arrays(
        query, key, generator.normal(size=(n, 2)), kernel=kernel, bandwidth=0.05, tol=tol, degree=degree, **options
    )


@pytest.mark.covering
@pytest.mark.parametrize("tol", TOLERANCES)
@pytest.mark.parametrize("weighted", [False, True])
@algorithms(kernel=[*INFINITE, "epanechnikov"])
def test_a_tolerance_of_next_to_nothing(algorithm, kernel, tol, weighted, generator):
    weight = {"key_weight": 10.0 ** generator.uniform(-300, 0, 900)} if weighted else {}
    problem = make(algorithm, kernel, tol, **weight)
    expected = choose(problem, "reference").reduce(problem)
    state = choose(problem, algorithm).reduce(problem)
    error = np.abs(state.finalize("zero") - expected.finalize("zero"))
    assert np.all(error <= rounding_bound(problem, expected) + problem.tol * np.ptp(problem.value, axis=0))


@pytest.mark.covering
@pytest.mark.parametrize("tol", [*TOLERANCES, 1e-305, 1e-299, 1e-6])
@algorithms(names=["kd_tree", "nufft"], kernel=["gaussian", "laplace"], columns=[2])
def test_no_leaf_is_counted_twice(algorithm, kernel, columns, tol, generator):
    """Where many far leaves weigh as much as near ones, some queries of a block are summed again and the others not.

    Those used to be charged for leaves that they skip, out of a budget that was smaller than the charge: denominators
    doubled, and states of chunks merged to something else.
    """
    key = np.concatenate([2 * generator.random((1000, 2)), 1.5 * generator.random((20_000, 2)) + [5.0, 0.0]])
    query = np.concatenate([2 * generator.random((200, 2)), 8 * generator.random((200, 2))])
    value = np.where(key[:, 0] < 2, 1.0, 0.0) + key[:, 1]
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=1.0, tol=tol)
    expected, found = (choose(problem, name).reduce(problem) for name in ("brute", algorithm))
    assert_allclose(found.log_denominator, expected.log_denominator, rtol=0, atol=2e-12 + tol)
    assert_allclose(found.finalize(), expected.finalize(), rtol=0, atol=1e-11 + 3 * tol)


@pytest.mark.covering
@pytest.mark.parametrize("tol", TOLERANCES)
@algorithms(kernel=["gaussian", "laplace"], degree=[0, 1])
def test_gradients_and_local_linear_fits(algorithm, kernel, degree, tol, generator):
    problem = make(algorithm, kernel, tol, degree=degree, exclude_self=True, self_index=np.arange(200))
    problem = problem.block(np.flatnonzero(np.all(np.abs(problem.query) < 2, axis=1)))
    reference, plan, cotangent = (
        choose(problem, "reference"), choose(problem, algorithm), generator.normal(size=(len(problem.query), 2)),
    )  # fmt: skip
    expected, state = reference.reduce(problem), plan.reduce(problem)
    assert_allclose(state.finalize(), expected.finalize(), rtol=1e-9, atol=1e-9)
    found, target = (
        plan.pullback(problem, state, cotangent, EVERYTHING),
        reference.pullback(problem, expected, cotangent, EVERYTHING),
    )
    for name in EVERYTHING:
        right = getattr(target, name)
        assert_allclose(getattr(found, name), right, rtol=1e-8, atol=1e-9 * np.abs(right).max(), err_msg=name)
