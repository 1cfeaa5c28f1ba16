"""Few queries and many keys on a line: sums over cells agree with the reference, and the ends of windows are exact."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import Problem, choose, pool
from kernpool.algorithms.brute import brute
from kernpool.algorithms.sweep import few_queries, line_cells, sweep, windows
from kernpool.algorithms.sweep.line_cells import cut_line, window_ends
from tests.support.lines import FAR_SUMS, SITUATIONS, assert_right, line_problem
from tests.support.thinning import thinned


@pytest.fixture
def always(monkeypatch):
    """Cells whatever the sizes; a list says how often, and how many queries had to be done again."""
    left, pool_cells = [], few_queries.pool_cells

    def noted(problem, out, *args):
        undone = pool_cells(problem, out, *args)
        if undone is not None:
            left.append(int(np.count_nonzero(undone)))
            assert np.all(out.denominator >= 0)
        return undone

    monkeypatch.setattr(few_queries, "pool_cells", noted)
    monkeypatch.setattr(line_cells, "KEYS_PER_CELL", 1e-3)
    monkeypatch.setattr(line_cells, "KEYS_PER_PART", 500)
    monkeypatch.setattr(sweep, "are_few", lambda *_: True)
    return left


@pytest.mark.parametrize(("kernel", "situation"), thinned(FAR_SUMS, SITUATIONS, ["epanechnikov"]))
def test_adversarial_data(kernel, situation, generator, always):
    assert_right(line_problem(kernel, situation, generator))


@pytest.mark.parametrize("situation", ["uniform", "clusters", "Cauchy", "decades", "own", "own heavy", "far queries"])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace"])
def test_what_is_left_out_is_at_most_the_tolerance(kernel, situation, generator, always):
    for tol in (0.0, 1e-3, 1e-6, 1e-12):
        assert_right(line_problem(kernel, situation, generator, tol=tol), tol)


# The reference implementation takes a quarter of a second for each.
@pytest.mark.parametrize(("h", "kernel"), thinned([1e-3, 0.002, 0.04, 0.4, 3.0], FAR_SUMS))
def test_a_curve_to_draw(kernel, h, generator):
    """As called, without changed limits; ten digits beyond the promise, and nothing is left."""
    key, value = generator.random(100_000), generator.normal(size=(100_000, 2))
    query = np.linspace(0, 1, 64)
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=h)
    state, expected = choose(problem, "sweep").reduce(problem), choose(problem, "reference").reduce(problem)
    np.testing.assert_allclose(state.denominator, expected.denominator * np.exp(expected.shift), rtol=2e-14)
    np.testing.assert_allclose(state.finalize(), expected.finalize(), rtol=0, atol=2e-14 * np.ptp(value))


@pytest.mark.parametrize("kernel", FAR_SUMS)
def test_on_uniform_data_nothing_is_left(kernel, generator, always):
    for m, h in ((1, 0.1), (101, 0.04), (101, 0.5)):
        key = generator.random(20_000)
        pool(np.linspace(0, 1, m), key, key, kernel=kernel, bandwidth=h, algorithm="sweep")
    assert always == [0, 0, 0]


@pytest.mark.parametrize("few", [0, 1 << 20])
@pytest.mark.parametrize("kernel", FAR_SUMS)
def test_what_is_left_is_done_key_by_key(kernel, few, generator, always, monkeypatch):
    """In a few queries by brute force, in more by windows; both know shifts, own keys and empty windows."""
    monkeypatch.setattr(sweep, "FEW_UNDONE", few)
    calls = []
    for module, name in ((brute, "reduce"), (windows, "pool_windows")):
        noted = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *args, f=noted, m=module: [calls.append(m), f(*args)][1])
    for situation in ("far queries", "own heavy", "own heavy in clusters"):
        assert_right(line_problem(kernel, situation, generator))
    assert set(calls) == {brute if few else windows}


@pytest.mark.parametrize("situation", ["Cauchy, own", "integers", "uniform", "far queries"])
@pytest.mark.parametrize("kernel", ["gaussian", "tricube", "laplace"])
def test_the_bits_do_not_depend_on_the_number_of_threads(kernel, situation, generator, always, monkeypatch):
    monkeypatch.setattr(few_queries, "QUERIES_PER_CALL", 7)
    monkeypatch.setattr(line_cells, "KEYS_PER_CALL", 100)
    problem = line_problem(kernel, situation, generator)
    first = choose(problem, "sweep").reduce(problem, n_jobs=1)
    for n_jobs in (2, 8):
        again = choose(problem, "sweep").reduce(problem, n_jobs=n_jobs)
        assert first.numerator.tobytes() == again.numerator.tobytes()
        assert first.denominator.tobytes() == again.denominator.tobytes()
    assert always


@pytest.mark.parametrize("kernel", ["boxcar", "epanechnikov", "gaussian", "laplace"])
def test_moments_of_chunks_of_keys_add_up(kernel, generator, always):
    key, value = generator.random(3000), generator.normal(size=(3000, 2))
    problem = Problem.from_arrays([0.2, 0.5], key, value, kernel=kernel, bandwidth=0.3)
    low, stop = window_ends(problem.query[:, 0], 0.3, edge_belongs=True)
    made = line_cells.Cells.make(problem, low, stop, len(key), key.min(), key.max())
    whole = made.sum_moments(key, None, problem.value, 1)
    chunks = [made.sum_moments(key[i : i + 1000], None, problem.value[i : i + 1000], 1) for i in range(0, 3000, 1000)]
    np.testing.assert_allclose(sum(chunks), whole, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("h", [0.1, 0.3, 0.7])
def test_the_edge_belongs_to_the_boxcar(h, generator, always):
    """On a grid many keys lie on it, up to rounding; counts are exact."""
    query, key = 0.1 * generator.integers(-20, 20, 50), 0.1 * generator.integers(-20, 20, 2000)
    problem = Problem.from_arrays(query, key, key, kernel="boxcar", bandwidth=h)
    expected = choose(problem, "reference").reduce(problem)
    np.testing.assert_array_equal(choose(problem, "sweep").reduce(problem).denominator, expected.denominator)
    assert always == [0]


@pytest.mark.parametrize("kernel", ["epanechnikov", "tricube"])
def test_a_window_with_keys_on_its_edge_only_is_empty(kernel, always):
    for key, empty in ((0.5, True), (np.nextafter(0.5, 0.0), False)):
        problem = Problem.from_arrays([0.0, 0.1], np.full(100, key), np.ones(100), kernel=kernel, bandwidth=0.5)
        assert (choose(problem, "sweep").reduce(problem).denominator[0] == 0.0) == empty


@pytest.mark.parametrize("kernel", FAR_SUMS)
def test_no_extent_at_all(kernel, always):
    """The smallest number beside the largest bandwidth, whose quotient is zero."""
    assert_right(Problem.from_arrays([0.0, 5e-324], np.zeros(9), np.arange(9.0), kernel=kernel, bandwidth=1e149))


places = st.one_of(
    st.floats(-1e150, 1e150), st.floats(-1, 1), st.floats(-1e-300, 1e-300), st.integers(-9, 9).map(lambda k: 0.1 * k)
)
lengths = st.one_of(st.floats(1e-150, 1e150), st.floats(1e-3, 1), st.sampled_from([0.1, 0.3, 0.5, 1.0, 1e-9]))


@given(middle=places, h=lengths, edge_belongs=st.booleans())
def test_ends_of_windows_are_exact(middle, h, edge_belongs):
    query = np.array([middle, h, -h, np.nextafter(h, 0.0), np.nextafter(h, np.inf), 0.0])
    low, stop = window_ends(query, h, edge_belongs)

    def inside(x):
        u = np.abs(query - x) / h
        return u <= 1.0 if edge_belongs else u < 1.0

    assert np.all(inside(low))
    assert np.all(inside(np.nextafter(stop, -np.inf)))
    assert not np.any(inside(np.nextafter(low, -np.inf)))
    assert not np.any(inside(stop))


def test_cells_are_counted_before_they_are_made():
    assert cut_line(np.array([0.0]), np.array([1.0]), np.array([2.0]), 1e-300, most=1e9) is None


def test_edges_divide_the_line(generator):
    low, stop = np.array([0.0, 3.0]), np.array([1.0, 4.0])
    edges = cut_line(low, np.array([0.5]), stop, 0.25, most=100)
    np.testing.assert_array_equal(edges.edge, [0, 0.25, 0.5, 0.75, 1, 3, 3.25, 3.5, 3.75, 4])
    np.testing.assert_array_equal(edges.live, [False] + [True] * 4 + [False] + [True] * 4 + [False])
