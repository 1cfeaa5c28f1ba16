"""Queries that do not meet the keys next to them in an order: against dense tables, and the laws of gaps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import Problem, choose
from kernpool.core import Factors, Groups, RowOrder, solve
from kernpool.kernels import get_categorical_kernel
from kernpool.pooling import group_plan as of_groups
from tests.support.dense_groups import left_out, mean_of_others

TABLE = get_categorical_kernel("aitchison_aitken")
GAPS = [1, 3, 10]


def make_rows(n=80, d=2, ties=False, seed=0):
    """Rows in an order that is no order of their columns, or that of the only one; some places have several rows."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, size=(n, d))
    y = np.column_stack([np.sin(3 * x[:, 0]), 40.0 + x[:, -1]]) + 0.3 * generator.normal(size=(n, 2))
    place = np.argsort(np.argsort(x[:, 0])) if d == 1 else generator.permutation(n)
    return x, y, place // 2 if ties else place, generator.integers(0, 4, n).astype(float)


def fit_of(problem):
    state = choose(problem, "auto", reuse=True).reduce(problem.without_center())
    return solve(state, problem.layout).intercept + problem.value_center


@pytest.fixture(params=["one mask", "many parts"], autouse=True)
def cuts(request, monkeypatch):
    """Few rows fit under one mask; cut as many rows are, they have to give the same."""
    if request.param == "many parts":
        monkeypatch.setattr(of_groups, "MASKED_PAIRS", 150)
    return request.param


@pytest.mark.parametrize("gap", [*GAPS, 39, 200])
@pytest.mark.parametrize("ways", [2, 8])
def test_each_pair_beyond_the_gap_meets_once(gap, ways, monkeypatch):
    monkeypatch.setattr(of_groups, "WAYS", ways)
    g = np.random.default_rng(0)
    code, weight = g.permutation(np.repeat(np.arange(40), 2)), g.integers(0, 3, size=80) * 1.0
    asked = np.r_[g.integers(0, 60, size=20), [-1, -1, 99]]  # places of no key, and of no order
    for key_weight, queries in ((None, code), (weight, code), (weight, asked), (None, asked)):
        met = np.zeros((len(queries), 80), dtype=int)
        for visit in of_groups._cut(Groups(queries, code, gap), key_weight):
            far = (np.abs(queries[visit.queries][:, None] - code[visit.keys]) > gap) | (queries[visit.queries] < 0)[
                :, None
            ]
            assert visit.masked or far.all()
            met[np.ix_(visit.queries, visit.keys)] += far
        kept = np.ones(80, dtype=bool) if key_weight is None else key_weight > 0
        beyond = (np.abs(queries[:, None] - code) > gap) | (queries < 0)[:, None]
        np.testing.assert_array_equal(met, beyond & kept)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "laplace"])
def test_fits_are_those_of_the_dense_reference(kernel, columns, ties, degree):
    x, y, place, weight = make_rows(d=columns, ties=ties)
    h = 2.2 if kernel == "epanechnikov" else 0.6
    for gap in GAPS:
        problem = Problem.from_arrays(x, x, y, bandwidth=h, key_weight=weight, kernel=kernel, degree=degree)
        expected = left_out(x, y, place, weight=weight, gap=gap, h=h, kernel=kernel, degree=degree)
        found = fit_of(problem.with_groups(place, place, gap))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


def test_categories_multiply_onto_what_is_beyond_the_gap():
    x, y, place, _ = make_rows()
    level = (x[:, 1:] > 0).astype(np.int64)
    factors = Factors(level, level, (TABLE.table(2, 0.2),), (TABLE.table_slope(2, 0.2),))
    problem = Problem.from_arrays(x, x, y, bandwidth=0.6, degree=1).with_factors(factors).with_groups(place, place, 4)
    dense = problem.with_dense_factors() if hasattr(problem, "with_dense_factors") else problem
    frequency = np.abs(place[:, None] - place) > 4
    alone = [fit_of(dense.block(np.array([i]), np.flatnonzero(frequency[i])))[0] for i in range(len(x))]
    np.testing.assert_allclose(fit_of(problem), alone, rtol=1e-11)


def test_derivatives_are_those_of_differences():
    x, y, place, _ = make_rows(d=1)

    def state_of(problem):
        return choose(problem, "auto", reuse=True).reduce(problem)

    def problem_at(log_h):
        problem = Problem.from_arrays(x, x, y, bandwidth=np.exp(log_h), degree=1).with_groups(place, place, 3)
        return problem.without_center()

    problem, step, cotangent = problem_at(-1.0), 1e-5, np.ones((len(x), 2))
    found = choose(problem, "auto", reuse=True).pullback(problem, state_of(problem), cotangent).log_bandwidth
    ends = [
        solve(state_of(at), at.layout).intercept.sum(axis=1) for at in (problem_at(-1 - step), problem_at(-1 + step))
    ]
    np.testing.assert_allclose(found[:, 0], (ends[1] - ends[0]) / (2 * step), rtol=1e-6, atol=1e-8)


@given(st.integers(0, 30), st.integers(0, 5), st.booleans())
def test_the_weight_of_others_is_that_of_all_rows_beyond_the_gap(gap, seed, ties):
    _, y, place, weight = make_rows(n=40, ties=ties, seed=seed)
    others, total = RowOrder(place, gap).others(weight, y)
    beyond = weight * (np.abs(place[:, None] - place) > gap)
    np.testing.assert_allclose(others, beyond.sum(axis=1))
    np.testing.assert_allclose(total, beyond @ y, rtol=1e-12, atol=1e-12)
    if (others > 0).all():
        expected = mean_of_others(y, place, weight, gap)  # of values of order one, some near zero
        np.testing.assert_allclose(total / others[:, None], expected, rtol=1e-12, atol=1e-15)
