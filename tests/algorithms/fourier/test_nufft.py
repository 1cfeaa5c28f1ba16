"""The Fourier transform is fast where sums are large; what it cannot certify it must not answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

finufft = pytest.importorskip("finufft", reason="the nufft extra is not installed", exc_type=ImportError)

from kernpool import Problem, choose, pool
from kernpool.algorithms import fourier
from kernpool.algorithms.brute import brute
from kernpool.algorithms.tree import tree
from tests.support.thinning import slow

EPSILON = np.finfo(float).eps


class Exact:
    """Brute force that remembers how many queries it was asked for, those of the sample apart."""

    def __init__(self):
        self.rows = []

    def __call__(self, problem, n_jobs=1, progress=None):
        self.rows.append(len(problem.query))
        return brute.reduce(problem, n_jobs, progress)

    @property
    def left(self):
        return sum(self.rows) - fourier.SAMPLE


def uniform(d, h, n=20_000, m=3000, seed=0, **options):
    generator = np.random.default_rng(seed)
    query, key = generator.random((m, d)), generator.random((n, d))
    value = np.sin(7 * key[:, 0]) + generator.normal(size=n) / 9
    return Problem.from_arrays(query, key, value, bandwidth=h, **options)


def compare(problem, n_jobs=1):
    """Return the error in ranges of the values, that of the denominators, and how many queries were not certified."""
    exact = Exact()
    state, truth = fourier.reduce(problem, n_jobs, None, exact), brute.reduce(problem)
    error = np.abs(state.finalize("zero") - truth.finalize("zero")) / np.ptp(problem.value, axis=0)
    return error.max(), np.abs(state.log_denominator - truth.log_denominator).max(), exact.left


@pytest.mark.parametrize(("d", "h"), [(2, 0.03), (2, 0.1), (2, [0.05, 0.2]), (2, 3.0), (3, 0.2), (3, [0.15, 0.2, 0.4])])
def test_large_sums_are_certified_and_right(d, h):
    error, log_error, left = compare(uniform(d, h))
    assert error < 1e-13
    assert log_error < 1e-12
    assert left < 0.02 * 3000


@pytest.mark.parametrize("d", [2, 3])
def test_tails_are_exact_and_never_noise(d):
    generator = np.random.default_rng(1)
    key = generator.normal(size=(20_000, d))
    query = np.concatenate([generator.normal(size=(3000, d)), generator.normal(size=(500, d)) * 20])
    problem = Problem.from_arrays(query, key, 1 + key[:, 0] ** 2, bandwidth=0.2)
    error, log_error, left = compare(problem)
    assert error < 1e-12
    assert log_error < 1e-12
    assert left > 300


def test_what_lies_apart_is_left_to_a_tree(monkeypatch, generator):
    problem = uniform(2, 0.003, m=600)
    monkeypatch.setattr(brute, "reduce", None)
    state, expected = fourier.by_pairs(problem), tree.reduce(problem)
    assert_array_equal(state.denominator, expected.denominator)


def spots(g):
    """Keys on one spot add up, in the errors of the transform too."""
    key = np.concatenate([np.zeros((9000, 2)), 1e-3 * g.normal(size=(9000, 2)), g.random((9000, 2))])
    query = np.concatenate([g.random((4000, 2)), 0.01 * g.normal(size=(1000, 2))])
    return Problem.from_arrays(query, key, g.normal(size=27_000), bandwidth=0.04)


def decades(g):
    """Weights over many decades, several outputs, of which one is constant."""
    key, weight = g.random((20_000, 2)), 10.0 ** g.integers(-5, 5, 20_000)
    value = np.c_[key[:, 0], 1e6 * key[:, 1] ** 2, g.standard_t(2, 20_000)]
    return Problem.from_arrays(g.random((2000, 2)), key, value, bandwidth=0.1, key_weight=weight)


def one_place(g):
    return Problem.from_arrays(g.normal(size=(900, 2)), np.ones((5000, 2)), g.normal(size=5000))


@pytest.mark.parametrize("make", [spots, decades, one_place])
def test_uneven_keys_and_weights(make, generator):
    error, log_error, _ = compare(make(generator))
    assert error < 1e-12
    assert log_error < 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out(weighted, generator):
    key = np.concatenate([generator.random((20_000, 2)), 3 + 40 * generator.random((300, 2))])
    extra = {"key_weight": generator.integers(0, 5, len(key)).astype(float)} if weighted else {}
    own = np.where(np.arange(len(key)) % 7 == 6, -1, np.arange(len(key)))
    problem = Problem.from_arrays(
        key,
        key,
        key[:, 0] + generator.normal(size=len(key)),
        bandwidth=0.05,
        exclude_self=True,
        self_index=own,
        **extra,
    )
    error, _, left = compare(problem.block(np.arange(0, len(key), 2)))
    assert error < 1e-12
    assert left >= 100  # lonely rows, whose own key is nearly all of the sum


@pytest.mark.covering
@pytest.mark.parametrize("tol", [1e-3, *slow(1e-5), 1e-7, *slow(1e-9), 1e-12, EPSILON])
@pytest.mark.parametrize(("d", "h"), [(2, 0.02), (2, 0.3), (3, 0.15)])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_tolerance_is_kept(tol, d, h, clustered, generator):
    query, key = generator.random((2000, d)), generator.random((15_000, d))
    key = key**4 if clustered else key
    value = generator.standard_t(3, 15_000)
    problem = Problem.from_arrays(query, key, value, bandwidth=h, tol=tol)
    error, log_error, _ = compare(problem)
    assert error <= tol + 1e-12
    assert log_error <= 1.01 * tol + 2e-12


def test_a_transform_that_is_wrong_is_found_out(monkeypatch):
    """The sample that is computed both ways is the last line of defence, against a library that changes its kernel."""
    right = fourier.transfer
    monkeypatch.setattr(fourier, "transfer", lambda grid, axis: right(grid, axis) * (1 + 1e-7))
    error, log_error, left = compare(uniform(2, 0.1))
    assert error < 1e-13
    assert log_error < 1e-12
    assert left == 3000


def test_sums_that_are_exactly_zero_are_computed_again(monkeypatch):
    def zeroed(self, rows):
        denominator, *rest = at(self, rows)
        return np.where(np.arange(len(denominator)) % 7, denominator, 0.0), *rest

    at = fourier.Transform.at
    monkeypatch.setattr(fourier.Transform, "at", zeroed)
    assert compare(uniform(2, 0.1))[0] < 1e-13


@pytest.mark.parametrize("h", [1e-4, 1e-140, [1e-9, 1.0], [1.0, 1e-9], 1e5, 1e140])
def test_bandwidths_that_make_no_sense_for_it_are_exact(h, generator):
    key = generator.random((3000, 2)) * (1e-130 if h == 1e-140 else 1.0)
    found = pool(key[:300], key, np.arange(3000.0), bandwidth=h, algorithm="nufft")
    assert_allclose(found, pool(key[:300], key, np.arange(3000.0), bandwidth=h, algorithm="brute"), rtol=1e-11)


def test_values_that_overflow_or_are_constant(generator):
    key = generator.random((3000, 2))
    assert_allclose(pool(key, key, np.full(3000, 2.5), bandwidth=0.3, algorithm="nufft"), 2.5, rtol=1e-15)
    value = 1e149 * generator.normal(size=3000)
    found, expected = (pool(key, key, value, bandwidth=0.3, algorithm=name) for name in ("nufft", "brute"))
    assert_allclose(found, expected, rtol=0, atol=1e-12 * (value.max() - value.min()))


def test_one_outlier_takes_the_digits_and_the_certificates(generator):
    key = generator.random((5000, 2))
    value = np.r_[1e15, generator.normal(size=4999)]
    key[0] = 30.0
    error = np.abs(
        pool(key[1:1000], key, value, bandwidth=0.1, algorithm="nufft")
        - pool(key[1:1000], key[1:], value[1:], bandwidth=0.1, algorithm="brute")
    )
    assert error.max() < 1e-12 * 1e15


def test_gradients_and_progress(generator):
    problem = uniform(2, 0.1, m=500)
    seen = []
    plan, other = choose(problem, "nufft"), choose(problem, "brute")
    state = plan.reduce(problem, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (500, 500)
    assert seen == sorted(seen)
    cotangent = generator.normal(size=(500, 1))
    found = plan.pullback(problem, state, cotangent, {"log_bandwidth"}).log_bandwidth
    expected = other.pullback(problem, other.reduce(problem), cotangent, {"log_bandwidth"}).log_bandwidth
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_rows_of_the_grid_lie_within_it():
    assert [fourier.rows_of(np.array([x]), slice(2, 40)).stop <= 40 for x in (3.0, 20.0, 39.5)] == [True] * 3


def test_the_bound_on_lost_frequencies_holds():
    """Sum of the periodic, cut-off Gaussian against the Gaussian, at a precision where the difference can be seen."""
    grid = fourier.Grid.around(np.zeros(1), np.ones(1), np.full(1, 0.3), 1e-3)
    period = grid.cells[0] * grid.step[0]
    frequency = np.arange(-4000, 4001) * 2 * np.pi / period
    frequency = frequency[np.abs(frequency) * 0.3 <= grid.reach]
    x = np.linspace(0, 1 + fourier.MARGIN * 0.3, 200)
    weight = 0.3 * np.sqrt(2 * np.pi) / period * np.exp(-0.5 * (0.3 * frequency) ** 2)
    error = np.abs(np.cos(np.outer(x, frequency)) @ weight - np.exp(-0.5 * (x / 0.3) ** 2))
    assert error.max() <= grid.lost
