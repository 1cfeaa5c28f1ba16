"""The battery: every registered kernel in every registered algorithm agrees with the reference implementation.

Internal kernels, of products, are among them. A new kernel or algorithm is tested here by being registered.
"""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem, choose, get_kernel, kernel_names, merge, pool, pool_state
from kernpool.algorithms import ALGORITHMS
from kernpool.kernels import COMPILED
from kernpool.pooling import Recipe, local_fit, rounding_bound
from tests.support.capabilities import OTHERS, OWN_KERNEL, able, algorithms, fitting_columns, of_degrees, variants
from tests.support.moments import check_moments
from tests.support.problems import EVERYTHING, make_problem, with_products

KERNELS = with_products(COMPILED)
WITH_SLOPE = [name for name in with_products(kernel_names()) if get_kernel(name).log_slope]


def assert_same_gradients(problem, algorithm, cotangent, err_msg=""):
    """All gradients by an algorithm are those of the reference, up to rounding beside the largest one."""
    reference, other = choose(problem, "reference"), choose(problem, algorithm)
    expected = reference.pullback(problem, reference.reduce(problem), cotangent, EVERYTHING)
    found = other.pullback(problem, other.reduce(problem), cotangent, EVERYTHING)
    for name in EVERYTHING:
        target, largest = getattr(expected, name), np.abs(getattr(expected, name)).max()
        assert_allclose(getattr(found, name), target, rtol=1e-9, atol=1e-9 * largest, err_msg=f"{err_msg}, by {name}")


def assert_derivatives(loss, starts, found, *, rel=1e-5, abs=1e-6, step=1e-6):
    """Gradients are what a central difference says, along a random direction: every entry counts."""
    generator = np.random.default_rng(5)
    for name, start in starts.items():
        gradient = getattr(found, name)
        gradient = gradient.sum(axis=0) if name == "log_bandwidth" else gradient
        assert gradient.shape == start.shape
        for _ in range(2):
            direction = generator.normal(size=start.shape)
            ends = [loss(**{name: start + sign * step * direction}) for sign in (1, -1)]
            difference = (ends[0] - ends[1]) / (2 * step)
            assert np.sum(gradient * direction) == pytest.approx(difference, rel=rel, abs=abs), name


@cache  # one reference implementation for all algorithms
def problem_and_answer(kernel, columns, variant):
    problem = make_problem(kernel, columns, variant)
    state = choose(problem, "reference").reduce(problem)
    return problem, state, rounding_bound(problem, state)


@pytest.mark.covering
@algorithms(OTHERS, kernel=KERNELS, columns=[1, 3])
def test_pooled_values_agree_with_the_reference(algorithm, kernel, columns):
    for variant in variants(algorithm, kernel=kernel, columns=columns):
        problem, expected, allowed = problem_and_answer(kernel, columns, variant)
        state = choose(problem, algorithm).reduce(problem)
        assert_array_equal(state.denominator == 0, expected.denominator == 0, err_msg=variant)
        error = np.abs(state.finalize("zero") - expected.finalize("zero"))
        assert np.all(error <= allowed), f"{variant}: {np.max(error / allowed):.3g} times what is allowed"
        occupied = state.denominator > 0
        found, target = state.log_denominator[occupied], expected.log_denominator[occupied]
        assert_allclose(found, target, rtol=1e-10, atol=1e-10, err_msg=variant)


@pytest.mark.covering
@of_degrees(OTHERS, kernel=KERNELS, columns=[1, 2, 3])
def test_moments_of_local_fits_agree_with_the_reference(algorithm, kernel, columns, degree):
    for variant in variants(algorithm, kernel=kernel, columns=columns, degree=degree):
        problem = make_problem(kernel, columns, variant, m=60, n=700, degree=degree)
        check_moments(problem, algorithm, "reference", err_msg=variant)


@pytest.mark.covering
@pytest.mark.parametrize("leave_one_out", [False, True])
@of_degrees([name for name in OTHERS if name != "brute"], kernel=list(COMPILED), columns=1)
def test_moments_of_local_fits_agree_with_brute_force(algorithm, kernel, degree, leave_one_out, generator):
    """Long enough for far keys to be added up; with gaps, ties, and queries all alone."""
    key = np.concatenate([generator.uniform(size=2500), generator.normal(3, 1, 500), np.repeat([0.5, 6.0], 50), [50.0]])
    query = key if leave_one_out else np.concatenate([generator.uniform(-0.2, 1.2, 2900), key[-60:]])
    value = np.column_stack([np.sin(9 * key), generator.normal(size=len(key))])
    extra = {"exclude_self": True, "key_weight": generator.integers(1, 4, len(key))} if leave_one_out else {}
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=0.11, degree=degree, **extra)
    check_moments(problem, algorithm, "brute")


@pytest.mark.covering
@algorithms(OTHERS, kernel=WITH_SLOPE, columns=[1, 2, 3], degree=[0, 1])
def test_gradients_agree_with_the_reference(algorithm, kernel, columns, degree, generator):
    asked = {"kernel": kernel, "columns": columns, "degree": degree}
    size = {"m": 40, "n": 700, "bandwidth": 1.1 + 0.5 * degree, "degree": degree}
    for variant in variants(algorithm, ("weighted", "masked", "weighted leave-one-out", "float mask"), **asked):
        problem = make_problem(kernel, columns, variant, **size)
        assert_same_gradients(problem, algorithm, generator.normal(size=(40, 2)), err_msg=variant)


@pytest.mark.parametrize("kernel", [name for name in WITH_SLOPE if "boxcar" not in name])
@pytest.mark.parametrize("degree", [0, 1])
def test_gradients_are_derivatives(kernel, degree):
    """Central differences of the reference."""
    problem = make_problem(kernel, 2, "weighted leave-one-out", m=6, n=30, bandwidth=1.3 + degree, degree=degree)
    plan = choose(problem, "reference")
    cotangent = np.random.default_rng(3).normal(size=(6, 2))
    found = plan.pullback(problem, plan.reduce(problem), cotangent, EVERYTHING)
    start = {
        "query": problem.query,
        "key": problem.key,
        "value": problem.value + problem.value_center,
        "log_bandwidth": np.zeros(2),
    }

    def loss(**changed):
        at = start | changed
        moved = Problem.from_arrays(
            at["query"], at["key"], at["value"], kernel=kernel,
            bandwidth=problem.similarity.bandwidth * np.exp(at["log_bandwidth"]), exclude_self=True,
            key_weight=problem.key_weight * problem.weight_unit, self_index=problem.self_index, degree=degree,
        )  # fmt: skip
        if degree:
            return np.sum(cotangent * local_fit(moved, Recipe.of(algorithm="reference")).intercept)
        return np.sum(cotangent * choose(moved, "reference").reduce(moved).finalize("zero"))

    assert_derivatives(loss, start, found, **({"abs": 3e-6} if degree else {}))


@algorithms(OTHERS, kernel="own")
def test_an_unregistered_kernel_runs_wherever_kernels_of_ones_own_do(algorithm):
    problem = make_problem(OWN_KERNEL, fitting_columns(algorithm), "weighted")
    plan, expected = choose(problem, algorithm), choose(problem, "reference").reduce(problem).finalize()
    assert_allclose(plan.reduce(problem).finalize(), expected, rtol=1e-12)


@pytest.mark.covering
@algorithms(OTHERS, kernel=["gaussian", "epanechnikov", "logistic"], degree=[0, 1, 2])
def test_the_bits_do_not_depend_on_the_number_of_threads(algorithm, kernel, degree, generator):
    shape = (9000, fitting_columns(algorithm, 1))
    query, key, value = generator.normal(size=shape), generator.normal(size=shape), generator.normal(size=9000)
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=0.3, degree=degree)
    plan = choose(problem, algorithm)
    first = plan.reduce(problem, n_jobs=1)
    for n_jobs in (2, 8):
        again = plan.reduce(problem, n_jobs=n_jobs)
        assert first.numerator.tobytes() == again.numerator.tobytes()
        assert first.denominator.tobytes() == again.denominator.tobytes()


@pytest.mark.covering
@pytest.mark.parametrize("queries", [20, 3000])
@algorithms(OTHERS, kernel=list(COMPILED), degree=[0, 1, 2], columns=[1, 3])  # loops that are compiled already
def test_no_sum_depends_on_what_was_in_memory(algorithm, kernel, degree, columns, queries, generator, monkeypatch):
    """Memory that nobody has written to yet holds zeros in a young process, and anything in an old one."""
    key = np.round(generator.uniform(size=(3000, columns)), 3)
    query, value = generator.uniform(-0.1, 1.1, size=(queries, columns)), generator.normal(size=(len(key), 2))
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=0.11, degree=degree)
    plan, empty = choose(problem, algorithm), np.empty
    expected = plan.reduce(problem)  # compiles with the true np.empty

    def poisoned(*args, **kwargs):
        out = empty(*args, **kwargs)
        if out.dtype.kind == "f":
            out.fill(np.nan)
        return out

    monkeypatch.setattr(np, "empty", poisoned)
    found = plan.reduce(problem)
    assert_array_equal(found.denominator, expected.denominator)
    assert_array_equal(found.numerator, expected.numerator)


def test_boxcar_edges_on_a_grid_are_the_same_in_every_algorithm():
    """On gridded data |q - k| = h happens; one predicate, fl(|q - k|) <= h, decides it everywhere."""
    grid = np.arange(0, 60) * 0.1
    for bandwidth in (0.1, 0.3, 0.7, 1.1):
        problem = Problem.from_arrays(grid, grid, np.arange(60.0), kernel="boxcar", bandwidth=bandwidth)
        counts = np.sum(np.abs(grid[:, None] - grid) <= bandwidth, axis=1)
        for algorithm in able(problem):
            assert_array_equal(choose(problem, algorithm).reduce(problem).denominator, counts)
    corners = np.array([[3.0, 4.0], [4.0, 3.0], [0.6, 0.8], [5.0, 12.0], [0.0, 1.0]])
    for bandwidth in (1.0, 5.0, 13.0):
        problem = Problem.from_arrays(np.zeros((1, 2)), corners, np.zeros(5), kernel="boxcar", bandwidth=bandwidth)
        counts = {name: choose(problem, name).reduce(problem).denominator[0] for name in able(problem)}
        assert len(set(counts.values())) == 1, counts


@algorithms(columns=1)
def test_padding_does_not_spoil_the_digits_of_the_rest(algorithm):
    """Values that do not take part, and outliers out of reach, may be as large as they like."""
    options = {"algorithm": algorithm}
    if ALGORITHMS[algorithm].attn_mask:
        mask = [[True, True, False]]
        assert pool([0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1e18], attn_mask=mask, **options) == [1.5]
    assert pool([0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1e18], key_weight=[1, 1, 0], **options) == [1.5]
    assert pool([0.0], [0.0, 0.0, 100.0], [1.0, 2.0, 1e18], kernel="epanechnikov", **options) == [1.5]


@algorithms(columns=1)
@pytest.mark.parametrize("scale", [1e-200, 1e-28, 1e28, 1e100])
def test_the_scale_of_key_weights_does_not_matter(algorithm, scale, generator):
    weight = scale * np.array([1.0, 1.0])
    assert pool([1000.0], [0.0, 1.0], [10.0, 20.0], key_weight=weight, algorithm=algorithm) == [20.0]
    query, key, value = generator.normal(size=20), generator.normal(size=30), generator.normal(size=30)
    weights = generator.integers(1, 5, 30).astype(float)
    plain = pool(query, key, value, key_weight=weights, algorithm=algorithm)
    scaled = pool(query, key, value, key_weight=weights * 2.0 ** round(np.log2(scale)), algorithm=algorithm)
    assert_array_equal(scaled, plain)


@algorithms(columns=1)
def test_weights_of_very_different_size(algorithm):
    found = pool([0.0], [0.0, 100.0], [0.0, 1.0], key_weight=[1e-150, 1e150], algorithm=algorithm)
    assert found == [0.0]  # exp(-5000) beats 1e300


def test_states_of_chunks_with_weights_of_very_different_size_merge(generator):
    query, key, value = generator.normal(size=5), generator.normal(size=40), generator.normal(size=40)
    weight = np.exp(generator.normal(size=40) * 30)
    parts = [pool_state(query, key[part], value[part], key_weight=weight[part]) for part in (slice(0, 7), slice(7, 40))]
    expected = pool(query, key, value, key_weight=weight)
    assert_allclose(merge(*parts).finalize()[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize("kernel", [name for name in KERNELS if get_kernel(name).is_compact])
@pytest.mark.parametrize("step", [31, pytest.param(7, marks=pytest.mark.slow)])  # each takes 15 ms
def test_keys_exactly_on_the_edge(kernel, step):
    """fl(h * (1 / h)) is not always one, so an edge that is decided by a product would differ from the reference."""
    for bandwidth in np.linspace(0.01, 5, 500)[::step]:
        problem = Problem.from_arrays(
            [[0.0, 0.0]], [[bandwidth, 0.0], [0.0, 9 * bandwidth]], [5.0, 7.0],
            kernel=kernel, bandwidth=bandwidth,
        )  # fmt: skip
        found = {name: choose(problem, name).reduce(problem).denominator[0] == 0 for name in able(problem)}
        assert set(found.values()) == {"boxcar" not in kernel}, (bandwidth, found)


@algorithms(kernel=["product triweight", "product epanechnikov", "product cosine"], columns=200)
def test_products_of_many_columns_do_not_underflow(kernel, algorithm):
    query, key = np.full((1, 200), 0.95), np.zeros((2, 200))
    key[1, 0] = 0.01
    found = pool(query, key, [3.0, 5.0], kernel=kernel, algorithm=algorithm)
    weight = get_kernel(kernel).profile(np.array([0.95, 0.94]))
    assert found[0] == pytest.approx((3 * weight[0] + 5 * weight[1]) / weight.sum(), rel=1e-10)


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["epanechnikov", "triweight", "cosine"])
@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
def test_gradients_on_a_grid_as_wide_as_the_window(algorithm, kernel, degree):
    """Keys an ulp inside of the edge of one column have a weight, so their slope needs that very distance."""
    h = 0.7
    step = h / 2 * np.arange(12)
    grid = np.stack(np.meshgrid(step, step), axis=-1).reshape(-1, 2)
    value = np.sin(grid[:, 0] / h) + grid[:, 1] / h
    problem = Problem.from_arrays(grid, grid, value, kernel=f"product {kernel}", bandwidth=h, degree=degree)
    reference, other = choose(problem, "reference"), choose(problem, algorithm)
    state, cotangent = reference.reduce(problem), np.ones((len(grid), 1))
    expected = reference.pullback(problem, state, cotangent, EVERYTHING)
    found = other.pullback(problem, state, cotangent, EVERYTHING)
    for name in EVERYTHING:
        target = getattr(expected, name)
        assert_allclose(getattr(found, name), target, atol=1e-9 * np.abs(target).max(), err_msg=name)


@pytest.mark.parametrize("kernel", ["biweight", "tricube"])
def test_a_key_on_the_edge_gives_no_warning(kernel):
    problem = Problem.from_arrays([[0.0, 0.0]], [[1.0, 0.0], [0.1, 0.2]], [1.0, 2.0], kernel=kernel, bandwidth=1.0)
    plan = choose(problem, "reference")
    gradients = plan.pullback(problem, plan.reduce(problem), np.ones((1, 1)), EVERYTHING)
    assert np.all(gradients.key[0] == 0)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("algorithm", ["brute", "sweep", "kd_tree"])
def test_progress_of_gradients_counts_once(algorithm, n_jobs, generator):
    key, query = generator.normal(size=3000), generator.normal(size=2000)
    problem, seen = Problem.from_arrays(query, key, key, kernel="epanechnikov", bandwidth=0.1), []
    plan = choose(problem, algorithm)
    state, cotangent = plan.reduce(problem), np.ones((2000, 1))
    plan.pullback(problem, state, cotangent, EVERYTHING, n_jobs=n_jobs, progress=lambda *report: seen.append(report))
    done, total = np.transpose(seen)
    assert set(total) == {5000}
    assert np.all(np.diff(done) > 0)
    assert done[-1] == 5000


def test_what_a_pullback_is_given_is_checked():
    problem = make_problem("gaussian", 1, "plain", m=5, n=8)
    plan = choose(problem, "brute")
    state = plan.reduce(problem)
    for cotangent in (np.ones((5, 1)), np.ones(5), np.ones((4, 2))):
        with pytest.raises(ValueError, match="cotangent must have shape"):
            plan.pullback(problem, state, cotangent, {"value"})
    other = choose(problem.block(slice(0, 3)), "brute").reduce(problem.block(slice(0, 3)))
    with pytest.raises(ValueError, match=r"state.numerator must have shape"):
        plan.pullback(problem, other, np.ones((5, 2)), ["value"])
    assert plan.pullback(problem, state, np.ones((5, 2)), ["value"]).value.shape == (8, 2)
