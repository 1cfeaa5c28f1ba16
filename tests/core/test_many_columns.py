"""Local planes of many columns, which are solved for in another way than those of few."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import lapack
from threadpoolctl import threadpool_info, threadpool_limits

from kernpool import Problem, choose
from kernpool.core import local_fit, solve


@pytest.mark.parametrize("kind", ["plain", "constant", "duplicated", "few keys"])
def test_many_columns_are_solved_as_few_are(kind, generator, monkeypatch):
    """Systems at once where all are sure, else by Cholesky factors, else by elimination: the same fits."""
    key = generator.normal(size=(90, 10))
    if kind == "constant":
        key[:, 4] = 2.0
    elif kind == "duplicated":
        key[:, 4] = key[:, 3]
    query = key[:40] if kind != "few keys" else np.vstack([key[:20], 40.0 + key[:20]])
    value = generator.normal(size=(90, 2))
    problem = Problem.from_arrays(query, key, value, bandwidth=3.0, degree=1)
    state = choose(problem, "reference").reduce(problem)
    found = solve(state, problem.layout)
    monkeypatch.setattr(local_fit, "COLUMNS_FOR_CHOLESKY", 11)
    expected = solve(state, problem.layout)
    assert_array_equal(found.rank, expected.rank)
    sure = expected.rank == 10
    assert sure.any() == (kind in ("plain", "few keys"))
    for name in ("intercept", "slope", "base", "tilt"):
        one, other = getattr(found, name), getattr(expected, name)
        assert_allclose(one[sure], other[sure], rtol=1e-9, atol=1e-10 * np.abs(other).max())
    assert_allclose(found.intercept[:20], expected.intercept[:20], atol=1e-7)


def test_small_matrices_are_factored_in_one_thread(monkeypatch):
    """Two wait for each other at every matrix."""
    threads, factored = [], lapack.dpotrf

    def factor(matrix):
        threads.extend(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")
        return factored(matrix)

    monkeypatch.setattr(lapack, "dpotrf", factor)
    with threadpool_limits(2):
        local_fit.invert(np.eye(local_fit.COLUMNS_FOR_CHOLESKY)[None])
    assert set(threads) == {1}
