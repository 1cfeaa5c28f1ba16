"""The sweep on data made to break it: every kernel, against the reference implementation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem, choose, get_kernel, kernel_names, pool
from kernpool.algorithms.sweep import sorted_column as bins_module
from kernpool.algorithms.sweep import windows
from kernpool.algorithms.sweep.loops.near_pairs import walk
from kernpool.algorithms.sweep.sorted_column import OVERFULL, SortedKeys, make_bins
from kernpool.core import solve
from kernpool.kernels import COMPILED
from tests.algorithms.sweep.lines import FAR_SUMS, INFINITE, SITUATIONS, assert_right, line_problem
from tests.support.problems import EVERYTHING
from tests.support.thinning import thinned


def test_cuts_are_those_of_a_binary_search_from_any_guess():
    """Also in the midst of equal elements, where a run of near keys would begin a bin too late."""
    ascending = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0])
    for x in (-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0):
        for guess in range(len(ascending) + 1):
            assert walk.py_func(ascending, x, guess) == np.searchsorted(ascending, x)


@pytest.mark.parametrize(("kernel", "situation"), thinned(list(COMPILED), SITUATIONS, ["gaussian"]))
def test_adversarial_data(kernel, situation, generator):
    assert_right(line_problem(kernel, situation, generator))


@pytest.mark.covering
@pytest.mark.parametrize("situation", ["uniform", "clusters", "Cauchy", "decades", "own", "own heavy", "far queries"])
@pytest.mark.parametrize("kernel", INFINITE)
def test_what_is_left_out_is_at_most_the_tolerance(kernel, situation, generator):
    for tol in (1e-3, 1e-5, 1e-7, 1e-9, 1e-12):
        assert_right(line_problem(kernel, situation, generator, tol=tol), tol)


@pytest.mark.parametrize("kernel", INFINITE)
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_a_light_key_nearby_does_not_hide_heavy_ones(kernel, tol, generator):
    """A window that counted keys and not weights would end before the heavy ones."""
    for distance in (1.0, 3.0, 6.0, 10.0, 30.0):
        key = np.concatenate([0.01 * generator.random(400), distance + 0.01 * generator.random(400)])
        weight, value = np.repeat([1e-12, 1.0], 400), np.repeat([0.0, 1.0], 400)
        problem = Problem.from_arrays(np.linspace(-0.1, 0.1, 50), key, value, kernel=kernel, key_weight=weight, tol=tol)
        assert_right(problem, tol)


@pytest.mark.covering
@pytest.mark.parametrize(
    "situation",
    ["uniform", "decades", "clusters", "grid", "integers, own counts", "own arbitrary counts",
     "own heavy", "offset of 1e6 bandwidths", "one key, own", "equal keys, own", "few keys", "h of 1e-3",
     "h of 1e3"],
)  # fmt: skip
@pytest.mark.parametrize("kernel", [name for name in kernel_names() if get_kernel(name).log_slope])
def test_gradients(kernel, situation, generator):
    """Terms of a sum may cancel, to nothing if all keys are equal; then rounding is relative to their size."""
    problem = line_problem(kernel, situation, generator).block(slice(0, 400), slice(0, 1500))
    cotangent = generator.normal(size=(len(problem.query), 3))
    reference, sweep = choose(problem, "reference"), choose(problem, "sweep")
    expected = reference.pullback(problem, reference.reduce(problem), cotangent, EVERYTHING)
    found = sweep.pullback(problem, sweep.reduce(problem), cotangent, EVERYTHING)
    term = np.abs(cotangent).max() * np.abs(problem.value + problem.value_center).max()
    for name in EVERYTHING:
        target = getattr(expected, name)
        size = term / problem.similarity.bandwidth[0] if name in ("query", "key") else term
        allowed = 1e-9 * np.abs(target).max() + 1e-13 * size
        assert_allclose(getattr(found, name), target, rtol=1e-8, atol=allowed, err_msg=name)


@pytest.mark.parametrize("situation", ["Cauchy, own", "integers, own", "uniform"])
@pytest.mark.parametrize("kernel", ["gaussian", "tricube", "laplace", "logistic"])
def test_the_bits_do_not_depend_on_the_number_of_threads(kernel, situation, generator, monkeypatch):
    monkeypatch.setattr(bins_module, "PARTS", 3)
    monkeypatch.setattr(windows, "RUNS_PER_CALL", 1)
    monkeypatch.setattr("kernpool.algorithms.sweep.polynomial_kernels.QUERIES_PER_CALL", 33)
    monkeypatch.setattr("kernpool.algorithms.sweep.infinite_kernels.LAPLACE_QUERIES", 33)
    monkeypatch.setattr("kernpool.algorithms.sweep.infinite_kernels.CELLS_PER_CALL", 1)
    monkeypatch.setattr("kernpool.algorithms.sweep.infinite_kernels.QUERIES_PER_CALL", 33)
    problem = line_problem(kernel, situation, generator)
    plan = choose(problem, "sweep")
    first = plan.reduce(problem, n_jobs=1)
    for n_jobs in (2, 8):
        again = plan.reduce(problem, n_jobs=n_jobs)
        assert first.numerator.tobytes() == again.numerator.tobytes()
        assert first.denominator.tobytes() == again.denominator.tobytes()


@pytest.mark.parametrize("kernel", kernel_names())
@pytest.mark.parametrize("m", [1, 2, 3, 401])
def test_progress_ends_at_the_total_and_never_goes_back(kernel, m, generator, monkeypatch):
    monkeypatch.setattr(windows, "RUNS_PER_CALL", 1)
    key, query = generator.standard_cauchy(3000), generator.standard_cauchy(m)
    problem = Problem.from_arrays(query, key, key, kernel=kernel, bandwidth=0.5)
    for n_jobs in (1, 2):
        seen = []
        choose(problem, "sweep").reduce(problem, n_jobs=n_jobs, progress=lambda *report, to=seen: to.append(report))
        done, total = np.transpose(seen)
        assert set(total) == {m}
        assert np.all(np.diff(done) >= 0), done
        assert done[-1] == m


@pytest.mark.parametrize("kernel", FAR_SUMS)
def test_on_uniform_data_next_to_nothing_is_left_to_be_done_key_by_key(kernel, generator, monkeypatch):
    left = []
    pool_windows = windows.pool_windows
    monkeypatch.setattr(windows, "pool_windows", lambda *args: [left.append(len(args[2])), pool_windows(*args)])
    for m, n, h in ((20_000, 20_000, 0.04), (401, 20_000, 0.1), (20_000, 401, 0.5)):
        query, key = generator.random(m), generator.random(n)
        left.clear()
        pool(query, key, key, kernel=kernel, bandwidth=h, algorithm="sweep")
        assert sum(left) <= 0.02 * m, (m, n, left)
        left.clear()
        own = np.arange(m) % n
        pool(key[own], key, key, kernel=kernel, bandwidth=h, algorithm="sweep", exclude_self=True, self_index=own)
        assert sum(left) <= 0.02 * m, (m, n, left)


@pytest.mark.parametrize(
    "kernel", [pytest.param(kernel, marks=pytest.mark.slow if kernel != "epanechnikov" else ()) for kernel in FAR_SUMS]
)
def test_ties_are_not_visited_one_by_one(kernel, generator):
    """Equal keys count as one, and leaving one of them out does not count the others again."""
    key = generator.integers(0, 9, 100_000).astype(float)
    value = generator.normal(size=len(key))
    problem = Problem.from_arrays(key, key, value, kernel=kernel, bandwidth=2.0, exclude_self=True)
    some = problem.block(np.arange(5))
    state, expected = choose(problem, "sweep").reduce(problem), choose(some, "reference").reduce(some)
    assert_allclose(state.finalize()[:5], expected.finalize(), rtol=1e-12, atol=1e-12)


numbers = st.one_of(
    st.floats(-1e150, 1e150),
    st.floats(0, 1),
    st.integers(0, 3).map(float),
    st.floats(0, 1e-300),
    st.integers(-300, 300).map(lambda k: 2.0**k),
)


@given(x=st.lists(numbers, min_size=1, max_size=200), repeats=st.integers(1, 40), size=st.sampled_from([0.5, 2.0, 8.0]))
def test_bins(x, repeats, size):
    x = np.repeat(x, np.where(np.arange(len(x)) % 7 == 0, repeats, 1))
    bins = make_bins(x, size)
    assert_array_equal(np.sort(bins.order), np.arange(len(x)))
    assert_array_equal(bins.x, x[bins.order])
    number = np.diff(bins.offset)
    assert bins.offset[0] == 0
    assert bins.offset[-1] == len(x)
    assert number.min() > 0
    assert_array_equal(bins.low, np.minimum.reduceat(bins.x, bins.offset[:-1]))
    assert_array_equal(bins.high, np.maximum.reduceat(bins.x, bins.offset[:-1]))
    assert np.all(bins.high[:-1] <= bins.low[1:])
    assert np.all((number <= OVERFULL * max(2.0, size)) | (bins.low == bins.high))
    low, high = np.quantile(x, [0.3, 0.6])
    first, last = bins.offset[
        list(SortedKeys(bins.x, bins.x, bins.x, bins.offset, bins.low, bins.high).bins_between(low, high))
    ]
    assert np.count_nonzero((x >= low) & (x <= high)) == np.count_nonzero(
        (bins.x[first:last] >= low) & (bins.x[first:last] <= high)
    )


@pytest.mark.parametrize("far_point", [1e-310, 1e-300, 1.0, 1e150])
def test_a_long_run_of_neighbours_is_dealt_again_and_no_more_often_than_needed(far_point, monkeypatch):
    """Two subnormal numbers are too near for a scale that is finite."""
    monkeypatch.setattr(bins_module, "PIECE", 64)
    x = np.where(np.arange(3000) % 2, 0.0, 1e-310)
    x[7] = far_point
    bins = make_bins(x, 8.0)
    assert_array_equal(bins.x, np.sort(x))
    assert np.all((np.diff(bins.offset) <= 8 * OVERFULL) | (bins.low == bins.high))


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("light", [1e-12, 1e-6, 0.3, 1.0])
def test_a_key_that_makes_up_the_moments_and_is_left_out(light, degree, generator):
    """What is left of sums by subtraction has no digits where the key that is gone lay far from the others."""
    key, weight = np.array([0.607, 0.852]), np.array([light, 1.0])
    query = np.concatenate([generator.uniform(0.5, 0.9, 60), 0.852 + 10.0 ** np.linspace(-12, -1, 40)])
    own = generator.integers(-1, 2, len(query))
    problem = Problem.from_arrays(
        query, key, generator.normal(size=2), kernel="constant", bandwidth=0.003, degree=degree,
        key_weight=weight, exclude_self=True, self_index=own,
    ).without_center()  # fmt: skip
    found, exact = (solve(choose(problem, name).reduce(problem), problem.layout) for name in ("sweep", "reference"))
    alone = own >= 0  # of all others the reference implementation says the same up to how well they are posed
    assert_array_equal(found.rank[alone], exact.rank[alone])
    close = np.abs(found.intercept - exact.intercept) <= 1e-9 * np.ptp(problem.value)
    assert np.all(close[alone])
