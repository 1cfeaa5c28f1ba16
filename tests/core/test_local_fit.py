"""Local linear and quadratic fits: their sums in every algorithm, the fit against least squares, and its gradients."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import (
    EmptyWindowWarning,
    PoolState,
    Problem,
    RankDeficiencyWarning,
    choose,
    get_kernel,
    kernel_names,
    make_kernel,
    merge,
    pool,
    pool_state,
    pooling_weights,
)
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Layout, LocalFit, monomials, solve
from kernpool.core.local_fit import _solve_lines, _solve_rows, bounded_inverse
from kernpool.pooling import Recipe, local_fit
from tests.support.capabilities import algorithms, can_here, of_degrees
from tests.support.moments import least_squares
from tests.support.problems import EVERYTHING, with_products
from tests.support.thinning import slow

SMOOTH = [name for name in kernel_names() if get_kernel(name).log_slope]
DEGREES = [1, *slow(2)]


def regressors(offset, degree):
    """Offsets, and with degree 2 their products of two, along the last axis."""
    pairs = [offset[..., a] * offset[..., b] for a, b in monomials(offset.shape[-1], 2)] if degree == 2 else []
    return np.concatenate([offset, *(pair[..., None] for pair in pairs)], axis=-1)


@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "logistic"])
def test_keys_below_epsilon_determine_the_slope_of_a_query_on_a_key(kernel, generator):
    """In every direction by the nearest ones in it: what the tree leaves out of the weights decides about slopes.

    A lattice with steps of another width in each direction, whose nearest neighbours weigh e^-18, e^-72 and e^-162;
    each of its places is a block of keys.
    """
    step = np.array([1.0, 2.0, 3.0])
    place = np.stack(np.meshgrid(*[np.arange(3.0)] * 3), axis=-1).reshape(-1, 3) * step
    key = np.repeat(place, 128, axis=0)
    value = np.column_stack([key @ [1.0, 2.0, 3.0], generator.normal(size=len(key))])
    query = place[13:14]  # one, or its block of queries reaches everything
    h = 1 / 6 if kernel == "gaussian" else 1 / 30
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=h, degree=1).without_center()
    expected = solve(choose(problem, "reference").reduce(problem), problem.layout)
    assert_array_equal(expected.rank, 3)
    cotangent = generator.normal(size=(len(query), 2))
    plan = choose(problem, "reference")
    right = plan.pullback(problem, plan.reduce(problem), cotangent, EVERYTHING)
    for name in ("brute", "kd_tree"):
        plan = choose(problem, name)
        state = plan.reduce(problem)
        found = solve(state, problem.layout)
        assert_array_equal(found.rank, 3)
        assert_allclose(found.slope, expected.slope, rtol=1e-8, atol=1e-9)
        mine = plan.pullback(problem, state, cotangent, EVERYTHING)
        for wanted in EVERYTHING:
            target = getattr(right, wanted)
            assert_allclose(getattr(mine, wanted), target, rtol=1e-6, atol=1e-9 * np.abs(target).max())


def test_keys_beside_a_faint_one_determine_a_slope():
    """The nearest key at 34 bandwidths in one column, the next at 38 in the other: e^-144 of its weight is in range."""
    key, value = np.array([[0.0, 3.4], [3.8, 0.0], [0.0, 3.5]]), np.array([1.0, 5.0, 2.0])
    for query in ([[0.0, 0.0]], [[0.1, 0.0]]):
        problem = Problem.from_arrays(query, key, value, bandwidth=0.1, degree=1).without_center()
        plans = [choose(problem, name) for name in ("reference", "brute", "kd_tree")]
        fits = [solve(plan.reduce(problem), problem.layout) for plan in plans]
        for fit in fits[1:]:
            assert_array_equal(fit.rank, fits[0].rank)
            assert_allclose(fit.slope, fits[0].slope, rtol=1e-9, atol=1e-12)


@pytest.mark.covering
@of_degrees(kernel=["gaussian", "product epanechnikov", "product laplace", "constant"], columns=[1, 2, 3, 4])
def test_the_fit_is_weighted_least_squares(algorithm, kernel, columns, degree, generator):
    """At the boundary too: half of the queries lie in corners, where windows are one-sided."""
    key, query = generator.uniform(size=(600, columns)), generator.uniform(size=(30, columns))
    query[::2] = np.round(query[::2])
    value = np.column_stack([np.sin(5 * key[:, 0]), 1e6 + key.sum(axis=1) ** (degree + 1)])
    bandwidth = np.linspace(0.9, 1.1, columns)
    weight = generator.integers(0, 3, 600)
    similarity = {"kernel": kernel, "bandwidth": bandwidth, "key_weight": weight}
    expected = least_squares(query, key, value, pooling_weights(query, key, **similarity), degree)
    found = pool(query, key, value, degree=degree, algorithm=algorithm, **similarity)
    assert_allclose(found, expected[:, 0], rtol=1e-11, atol=1e-11)
    problem = Problem.from_arrays(query, key, value, degree=degree, **similarity)
    fit = local_fit(problem, Recipe.of(algorithm=algorithm))
    assert_allclose(fit.slope / bandwidth[:, None], expected[:, 1 : 1 + columns], rtol=1e-8, atol=1e-8)
    offset = np.stack([problem.similarity.offset(query, key, a) for a in range(columns)], axis=2)
    tilted = np.einsum("mp,mnp->mn", fit.tilt, regressors(offset, degree))
    assert set(fit.rank) == {fit.tilt.shape[1]}
    share = pooling_weights(query, key, **similarity) * (fit.base[:, None] + tilted)
    assert_allclose(share @ value, found, rtol=1e-11)


@pytest.mark.parametrize("degree", DEGREES)
@given(
    seed=st.integers(0, 10**6),
    columns=st.integers(1, 3),
    kernel=st.sampled_from(with_products(kernel_names())),
    data=st.data(),
)
def test_a_polynomial_of_the_degree_is_returned_as_it_is(degree, seed, columns, kernel, data):
    generator = np.random.default_rng(seed)
    asked = {"kernel": kernel, "columns": columns, "degree": degree}
    algorithm = data.draw(st.sampled_from([name for name in ALGORITHMS if can_here(name, **asked)]))
    key = generator.normal(size=(80, columns)) + 100.0 * generator.integers(0, 2)
    query, center = key[:10] + 0.1, key[0]
    slope, curve = generator.normal(size=(columns, 2)), generator.normal(size=(columns, columns, 2)) * (degree == 2)
    level = 10.0 ** generator.integers(-3, 4)

    def surface(x):
        return level + (x - center) @ slope + np.einsum("na,nb,abc->nc", x - center, x - center, curve)

    options = {"kernel": kernel, "degree": degree, "bandwidth": 5.0, "algorithm": algorithm}
    found, expected = pool(query, key, surface(key), **options), surface(query)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * max(level, np.abs(expected).max()))


@pytest.mark.covering
@of_degrees(kernel=["gaussian", "biweight"], columns=[1, 2, 3])
def test_states_of_chunks_merge_and_order_does_not_matter(algorithm, kernel, columns, degree, generator):
    query, key = generator.normal(size=(20, columns)), generator.normal(size=(500, columns))
    value = 1e3 + generator.normal(size=500)
    options = {"kernel": kernel, "bandwidth": 2.5, "algorithm": algorithm, "degree": degree}
    whole = pool_state(query, key, value, **options).finalize()
    parts = merge(*(pool_state(query, key[part], value[part], **options) for part in (slice(90), slice(90, None))))
    order = generator.permutation(500)
    shuffled = pool_state(query, key[order], value[order], **options)
    for other in (parts, shuffled):
        assert_allclose(other.finalize(), whole, rtol=1e-11, atol=1e-11)
    fit = solve(parts, Problem.from_arrays(query, key, value, degree=degree).layout)
    assert_allclose(fit.intercept[:, 0], pool(query, key, value, **options), rtol=1e-10)


@pytest.mark.parametrize("degree", DEGREES)
def test_a_kernel_of_ones_own_single_precision_and_batches_with_masks(degree, generator):
    mine = make_kernel("gaussian", lambda u: 1 / (1 + u) ** 4)  # whose name is that of another one
    key, value = generator.normal(size=(300, 2)), generator.normal(size=300)
    found = {name: pool(key, key, value, kernel=mine, degree=degree, algorithm=name) for name in ("reference", "brute")}
    assert_allclose(found["brute"], found["reference"], rtol=1e-11)
    single = generator.normal(size=(2000, 2)).astype(np.float32)
    found = pool(single, single, single[:, 0] ** degree, degree=degree, bandwidth=0.7, algorithm="brute")
    assert found.dtype == np.float32
    assert_allclose(found, single[:, 0] ** degree, rtol=1e-6, atol=1e-6)
    query, key = generator.normal(size=(3, 5, 2)), generator.normal(size=(3, 60, 2))
    value, mask = generator.normal(size=(3, 60, 2)), generator.random((3, 5, 60)) < 0.8
    found = pool(query, key, value, degree=degree, bandwidth=2.0, attn_mask=mask)
    assert found.shape == (3, 5, 2)
    weight = pooling_weights(query[1], key[1], bandwidth=2.0, attn_mask=mask[1])
    assert_allclose(found[1], least_squares(query[1], key[1], value[1], weight, degree)[:, 0], rtol=1e-9)


@algorithms(columns=1, degree=1)
def test_what_keys_do_not_determine_is_constant(algorithm):
    """No key, one key, one place: as much of a plane as there is."""
    options = {"kernel": "epanechnikov", "algorithm": algorithm, "degree": 1}
    key, value = np.array([0.0, 5.0, 5.0, 9.0, 9.5]), np.array([1.0, 2.0, 4.0, 7.0, 8.0])
    with pytest.warns(RankDeficiencyWarning, match=r"around 2 of 4 queries \(the first is query 0\)"):
        found = pool([0.5, 5.1, 9.2, 20.0], key, value, empty="nearest", **options)
    assert_allclose(found, [1.0, 3.0, 7.4, 8.0], rtol=1e-12)
    with pytest.warns(EmptyWindowWarning):
        assert np.isnan(pool([20.0], key, value, **options)).all()


def test_a_second_moment_that_was_rounded_to_less_than_nothing_is_none():
    # Sums that the sweep moves to a query where all keys lie.
    fit = solve(PoolState(np.zeros(1), np.array([5.0]), np.array([[10.0, 0.0, -1e-16, 0.0]])), Layout(1, 1, 1))
    assert (fit.rank[0], fit.intercept[0, 0], fit.slope[0, 0, 0], fit.base[0]) == (0, 2.0, 0.0, 1.0)


@algorithms(columns=2, degree=1)
def test_a_duplicated_column_shares_the_slope(algorithm):
    key = np.array([0.0, 5.0, 5.0, 9.0, 9.5])
    twice = np.column_stack([key, 3 * key])
    with pytest.warns(RankDeficiencyWarning):
        found = pool(twice, twice, 2 * key + 1, kernel="gaussian", degree=1, bandwidth=[5.0, 1e9], algorithm=algorithm)
    assert_allclose(found, 2 * key + 1, rtol=1e-11)


def test_a_very_large_bandwidth_makes_the_fit_linear_in_its_column(generator):
    key = generator.normal(size=(200, 2))
    value = np.sin(key[:, :1]) + 3 * key[:, 1:]
    found = pool(key, key, value, bandwidth=[0.4, 1e9], degree=1)
    weight = pooling_weights(key[:, 0], key[:, 0], bandwidth=0.4)
    assert_allclose(found, least_squares(key, key, value, weight)[:, 0], rtol=1e-10)


def test_the_rank_decision_is_continuous():
    inverse, rank = bounded_inverse(np.array([[4.0, 0.1, -1e-18]]), tolerance=0.1)
    assert_allclose(inverse, [[0.25, 10.0, 0.0]])
    assert rank.tolist() == [1]
    just_above, _ = bounded_inverse(np.nextafter([0.1], 1.0), tolerance=0.1)
    assert_allclose(just_above, inverse[0, 1:2], rtol=1e-15)
    torch = pytest.importorskip("torch", reason="the same decision on tensors needs the extra 'torch'")
    tensor, count = bounded_inverse(torch.tensor([[4.0, 0.1, -1e-18]], dtype=torch.float64), tolerance=0.1)
    assert_array_equal(tensor.numpy(), inverse)
    assert count.tolist() == [1]


def test_bad_degrees_and_moments_are_refused():
    for degree in (3, -1, "linear", None, True):
        with pytest.raises(ValueError, match="degree must be 0"):
            pool([0.0], [0.0], [0.0], degree=degree)
        with pytest.raises(ValueError, match="degree must be 0"):
            pool_state([0.0], [0.0], [0.0], degree=degree)
    problem = Problem.from_arrays([0.0], [0.0], [0.0], degree=1)
    for one in ALGORITHMS.values():
        assert one.degree or "degree=1 (a local linear fit)" in one.refusal(problem)
    plan, state = choose(problem), choose(problem).reduce(replace(problem, degree=0))
    with pytest.raises(ValueError, match="columns of its layout"):
        plan.pullback(problem, state, np.ones((1, 1)), ["value"])


@algorithms(columns=2, degree=1)
def test_fit_of_np(algorithm):
    """Numbers of R's np at its cross-validated bandwidths, data of statsmodels' `test_continuousdata_ll_cvls`."""
    draw = np.random.RandomState(123456)  # the published numbers belong to this generator
    draw.binomial(2, 0.7, size=60), draw.binomial(3, 0.7, size=60)
    first, second = draw.normal(size=60), draw.normal(10, 1, size=60)
    draw.normal(10, 2, size=60)
    value = 0.3 + 1.2 * first + 3.7 * second + draw.normal(size=60)
    key = np.column_stack([first, second])
    found = pool(key, key, value, degree=1, bandwidth=[1.717891, 2.449415], algorithm=algorithm)
    assert_allclose(found[:5], [31.16003, 37.30323, 44.49870, 40.73704, 36.19083], atol=6e-6)
    fitted, total = found - value.mean(), value - value.mean()
    assert (total @ fitted) ** 2 / ((total @ total) * (fitted @ fitted)) == pytest.approx(0.9336019, abs=1e-6)


@pytest.mark.parametrize("c", [1, 3])
def test_lines_in_one_column_are_the_planes_of_one_column_to_the_last_bit(c):
    generator, m = np.random.default_rng(0), 2000
    layout = Layout(values=c, columns=1, degree=1)
    spread, far = 10.0 ** generator.uniform(-9, 2, size=(m, 1)), 10.0 ** generator.uniform(-5, 5, size=(m, 1))
    offset = generator.normal(size=(m, 5)) * spread + generator.normal(size=(m, 1)) * far
    value, weight = generator.normal(size=(m, 5, c)), generator.random((m, 5)) * (generator.random((m, 5)) < 0.5)
    sums = [
        np.einsum("mj,mjc->mc", weight, value), np.sum(weight * offset, axis=1)[:, None],
        np.sum(weight * offset**2, axis=1)[:, None], np.einsum("mj,mjc->mc", weight * offset, value),
    ]  # fmt: skip
    sums[2][:5] = -1e-20  # second moments that were moved far may be rounded to less than nothing
    total = weight.sum(axis=1)
    mean = np.divide(np.hstack(sums), total[:, None], where=total[:, None] > 0, out=np.zeros((m, 2 + 2 * c)))
    one, other = (
        LocalFit(
            np.empty((m, c)), np.empty((m, 1, c)), np.empty(m), np.empty((m, 1)),
            np.zeros(m, dtype=np.intp), np.ones(m, dtype=bool),
        )
        for _ in range(2)
    )  # fmt: skip
    _solve_lines(mean, layout, one, slice(0, m))
    _solve_rows(mean, layout, other, slice(0, m))
    for each in fields(LocalFit):
        assert_array_equal(getattr(one, each.name), getattr(other, each.name), err_msg=each.name)
    assert set(one.rank) == {0, 1}
