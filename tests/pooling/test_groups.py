"""Queries that do not meet the keys of their group, or within a gap in an order: dense tables, and laws."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem, choose, get_kernel, kernel_names
from kernpool.bandwidth import leave_one_out
from kernpool.core import ExcludedPairs, Exclusion, Factors, solve
from kernpool.kernels import get_categorical_kernel
from kernpool.pooling import excluded_plan as of_groups
from kernpool.pooling import rounding_error
from tests.support.capabilities import algorithms
from tests.support.dense_groups import left_out, mean_of_others
from tests.support.problems import with_products

TABLE = get_categorical_kernel("aitchison_aitken")


def make_rows(n=60, d=2, groups=9, seed=0, weighted=False, gap=0):
    """Rows, two outputs and groups of very different sizes, one of which is a single row; or places in an order."""
    generator = np.random.default_rng(seed)
    x = generator.uniform(-1, 1, size=(n, d))
    y = np.column_stack([np.sin(3 * x[:, 0]), 40.0 + x[:, -1]]) + 0.3 * generator.normal(size=(n, 2))
    group = generator.choice(groups - 1, n, p=np.arange(1, groups) / np.arange(1, groups).sum())
    group[7] = groups - 1
    if gap:  # in the order of the only column, or in none, two rows at each place
        group = (np.argsort(np.argsort(x[:, 0])) if d == 1 else generator.permutation(n)) // 2
    return x, y, group, generator.integers(0, 4, n).astype(float) if weighted else None


def make_problem(x, y, group, weight=None, *, h=0.6, gap=0, **options):
    problem = Problem.from_arrays(x, x, y, bandwidth=h, key_weight=weight, **options)
    return problem.excluding(group, Exclusion(group, gap))


def fit_of(problem, algorithm="auto"):
    state = choose(problem, algorithm, reuse=True).reduce(problem.without_center())
    return solve(state, problem.layout).intercept + problem.value_center


@pytest.fixture(params=["one mask", "many parts"], autouse=True)
def cuts(request, monkeypatch):
    """Few rows fit under one mask; cut as many rows are, they have to give the same."""
    if request.param == "many parts":
        monkeypatch.setattr(of_groups, "MASKED_PAIRS", 150)
    return request.param


@pytest.mark.covering
@pytest.mark.parametrize("gap", [0, 1, 10, 29, 200])
@pytest.mark.parametrize("ways", [2, 3, 8])
@pytest.mark.parametrize("sizes", [[1] * 60, [2] * 30, [50, 1, 1, 8], [1, 1, 8, 50], [2, 40, 3, 3, 3, 9], [60]])
def test_each_pair_of_two_groups_meets_once(sizes, ways, gap, monkeypatch):
    monkeypatch.setattr(of_groups, "WAYS", ways)
    g = np.random.default_rng(0)
    code, weight = g.permutation(np.repeat(np.arange(len(sizes)), sizes)), g.integers(0, 3, size=60) * 1.0
    asked = np.r_[g.choice(code, size=20), [-1, -1, 99]]
    for key_weight, queries in ((None, code), (weight, code), (weight, asked), (None, asked[:20])):
        met = np.zeros((len(queries), 60), dtype=int)
        apart = (np.abs(queries[:, None] - code) > gap) | (queries < 0)[:, None]
        for visit in of_groups._cut(ExcludedPairs(queries, code, gap), key_weight):
            here = apart[np.ix_(visit.queries, visit.keys)]
            assert visit.masked or here.all()
            assert visit.pairs == here.size
            met[np.ix_(visit.queries, visit.keys)] += here
        kept = np.ones(60, dtype=bool) if key_weight is None else key_weight > 0
        assert_array_equal(met, apart & kept)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kernel", with_products(kernel_names()))
@pytest.mark.parametrize("gap", [0, 1, 3, 10])
def test_fits_are_those_of_the_dense_reference(kernel, weighted, degree, gap):
    x, y, group, weight = make_rows(weighted=weighted, gap=gap)
    options = {"h": 0.8 if not get_kernel(kernel).is_compact else 2.2, "gap": gap}
    options |= {"kernel": kernel, "degree": degree}
    expected, problem = left_out(x, y, group, weight=weight, **options), make_problem(x, y, group, weight, **options)
    assert_allclose(fit_of(problem), expected, rtol=1e-11, atol=1e-11)


@algorithms(columns=[1, 2])
@pytest.mark.parametrize("gap", [0, 3])
def test_every_algorithm_gives_the_same(algorithm, columns, gap):
    x, y, group, _ = make_rows(d=columns, gap=gap)
    found = fit_of(make_problem(x, y, group, h=0.5, gap=gap), algorithm)
    assert_allclose(found, left_out(x, y, group, h=0.5, degree=0, gap=gap), rtol=1e-11)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_groups_of_one_row_are_leave_one_out(degree):
    x, y, _, _ = make_rows()
    options = {"bandwidth": 0.6, "degree": degree}
    alone = Problem.from_arrays(x, x, y, exclude_self=True, **options)
    problem = make_problem(x, y, np.arange(len(x)), h=0.6, degree=degree)
    assert_allclose(fit_of(problem), fit_of(alone), rtol=1e-12, atol=1e-14)
    assert leave_one_out(problem).error == pytest.approx(leave_one_out(alone).error, rel=1e-12)


def make_mixed(*, weighted=False, **options):
    x, y, group, weight = make_rows(weighted=weighted, gap=options.get("gap", 0))
    code = np.random.default_rng(2).integers(0, 3, (len(x), 2))
    problem = make_problem(x, y, group, weight, **options)
    tables, slopes = ([of(3, lam) for lam in (0.3, 0.15)] for of in (TABLE.table, TABLE.table_slope))
    return problem.with_factors(Factors(code, code, tuple(tables), tuple(slopes)))


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("algorithm", ["auto", "brute"])
@pytest.mark.parametrize("gap", [0, 4])
def test_levels_multiply_onto_the_weights(algorithm, degree, gap):
    problem, (x, y, group, weight) = (
        make_mixed(degree=degree, weighted=True, gap=gap),
        make_rows(weighted=True, gap=gap),
    )
    code, tables = problem.factors.key_code, problem.factors.tables
    of_levels = {"code": code, "tables": lambda _: tables}
    expected = left_out(x, y, group, weight=weight, h=0.6, degree=degree, gap=gap, **of_levels)
    assert_allclose(fit_of(problem, algorithm), expected, rtol=1e-11)


def gradients_of(problem, algorithm):
    plan = choose(problem, algorithm)
    wanted = ["log_bandwidth"] if problem.factors is None else ["log_bandwidth", "smoothing"]
    cotangent = np.stack([np.ones(len(problem.query)), np.arange(len(problem.query)) / 9], axis=1)
    found = plan.pullback(problem, plan.reduce(problem), cotangent, wanted)
    return np.concatenate([getattr(found, name) for name in wanted], axis=1)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "biweight", "laplace"])
@pytest.mark.parametrize("of", ["a column", "columns", "levels"])
@pytest.mark.parametrize("algorithm", ["auto", "brute"])
@pytest.mark.parametrize("gap", [0, 3])
def test_gradients_are_those_of_one_mask(algorithm, of, kernel, degree, gap):
    options = {"kernel": kernel, "degree": degree, "h": 3.5 if kernel == "biweight" else 0.8, "gap": gap}
    if of == "levels":
        problem = make_mixed(weighted=True, **options)
    else:
        problem = make_problem(*make_rows(d=1 + (of == "columns"), weighted=True, gap=gap), **options)
    expected = gradients_of(of_groups._masked(problem), "reference")
    found = gradients_of(problem, algorithm)
    assert_allclose(found, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


def test_rows_without_another_group_in_reach_get_the_mean_of_the_other_groups():
    x, y, group, weight = make_rows(weighted=True)
    x[group == 2] += 50.0
    found = leave_one_out(make_problem(x, y, group, weight, kernel="epanechnikov", h=2.5))
    assert found.empty_windows == np.count_nonzero(group == 2)
    expected = mean_of_others(y, group, weight)[group == 2]
    assert_allclose(found.prediction[group == 2], expected, rtol=1e-12)


def test_queries_of_no_group_meet_all_keys():
    x, y, group, _ = make_rows()
    asked = np.where(np.arange(len(x)) % 3 == 0, -1, group)
    asked[5] = 99  # a group of no key
    problem = Problem.from_arrays(x, x, y, bandwidth=0.6).excluding(asked, Exclusion(group))
    everything = Problem.from_arrays(x, x, y, bandwidth=0.6)
    free = (asked == -1) | (asked == 99)
    assert_allclose(fit_of(problem)[free], fit_of(everything)[free], rtol=1e-12)
    apart = make_problem(x, y, group)
    assert_allclose(fit_of(problem)[~free], fit_of(apart)[~free], rtol=1e-12)


def test_one_group_alone_leaves_every_window_empty():
    x, y, _, _ = make_rows()
    plan = choose(problem := make_problem(x, y, np.zeros(len(x), dtype=int)))
    state = plan.reduce(problem)
    assert not state.denominator.any()
    slopes = plan.pullback(problem, state, np.ones((len(x), y.shape[1])), ["query"]).query
    assert_array_equal(slopes, np.zeros_like(x))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_the_bound_on_rounding_knows_the_groups(kernel):
    x, y, group, weight = make_rows(weighted=True)
    problem = make_problem(x, y, group, weight, kernel=kernel, h=1.5)
    state = choose(problem, "brute").reduce(problem)
    masked = of_groups._masked(problem)
    assert_allclose(
        rounding_error.rounding_bound(problem, state), rounding_error.rounding_bound(masked, state), rtol=1e-12
    )


def test_bad_input():
    x, y, group, _ = make_rows()
    problem = Problem.from_arrays(x, x, y)
    with pytest.raises(ValueError, match="chosen for a problem without groups"):
        choose(problem).reduce(problem.excluding(group, Exclusion(group)))
    apart = problem.excluding(group, Exclusion(group))
    plan = choose(apart)
    with pytest.raises(ValueError, match=r"wanted must be some of \['log_bandwidth', 'query'\], got \['smoothing'\]"):
        plan.pullback(apart, plan.reduce(apart), np.ones(y.shape), ["smoothing"])


@given(st.integers(0, 30), st.integers(0, 5), st.booleans())
def test_the_weight_of_others_is_that_of_all_rows_that_stay(gap, seed, ties):
    _, y, place, weight = make_rows(n=40, seed=seed, weighted=True, gap=1)
    place = place if ties else np.argsort(np.argsort(place, kind="stable"))
    others, total = Exclusion(place, gap).others(weight, y)
    beyond = weight * (np.abs(place[:, None] - place) > gap)
    assert_allclose(others, beyond.sum(axis=1))
    assert_allclose(total, beyond @ y, rtol=1e-12, atol=1e-12)
    if (others > 0).all():
        expected = mean_of_others(y, place, weight, gap)  # of values of order one, some near zero
        assert_allclose(total / others[:, None], expected, rtol=1e-12, atol=1e-15)
