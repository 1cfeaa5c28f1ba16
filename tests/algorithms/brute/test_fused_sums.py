"""Fused loops of local linear fits and of gradients: every number, beside dense sums and beside the stages."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import Problem, choose, pool
from kernpool.algorithms import reference
from kernpool.algorithms.brute import brute
from kernpool.algorithms.brute.fused import FusedMoments, fused_loop
from kernpool.algorithms.brute.tiles import CompiledBlocks
from kernpool.core import Layout

KEYS, QUERIES = 1100, 203  # two tiles and a rest
WANTED = ("query", "log_bandwidth", "key", "value")


def problem_of(columns, generator, kernel="gaussian", bandwidth=0.7, **options):
    key = generator.normal(size=(KEYS, columns))
    query = np.concatenate([key[:3], generator.normal(size=(QUERIES - 3, columns))])  # some lie at a key
    return Problem.from_arrays(query, key, generator.normal(size=KEYS), kernel=kernel, bandwidth=bandwidth, **options)


def situation(name, generator):
    options = {}
    if name in ("weights", "both"):
        options["key_weight"] = generator.integers(0, 4, KEYS).astype(float)
    if name in ("own", "both"):
        options |= {"exclude_self": True, "self_index": generator.integers(-1, KEYS, QUERIES)}
    return options


def cases(*quick):
    """A loop is compiled for each: some of them are among the quick."""
    rows = [
        (k, d, name) for k in ("gaussian", "laplace") for d in (1, 2, 3) for name in ("plain", "weights", "own", "both")
    ]
    marked = [pytest.param(*row, marks=() if row in quick else pytest.mark.slow) for row in rows]
    return pytest.mark.parametrize(("kernel", "columns", "name"), marked)


@pytest.mark.parametrize("bounded", [1, 0])
@cases(("gaussian", 2, "both"), ("laplace", 2, "both"))
def test_every_sum(kernel, columns, name, bounded, generator):
    options = situation(name, generator) | {"degree": 1}
    problem = problem_of(columns, generator, kernel, np.linspace(0.5, 1.0, columns), **options)
    if not bounded:  # some are so far away that their weights are out of range
        key = problem.key.copy()
        key[:50] += 1e5
        key[50:60] -= 1e140
        problem = replace(problem, key=key)
    assert isinstance(fused_loop(problem), FusedMoments)
    assert FusedMoments(problem).bounded == bounded
    state, doubtful = FusedMoments(problem).sums(slice(0, QUERIES), slice(0, KEYS))
    assert not doubtful.any()
    shift, weight = reference.pair_weights(problem)
    weight = weight * np.exp(shift)[:, None]
    assert_allclose(state.denominator, weight.sum(axis=1), rtol=1e-13)
    offset = [problem.similarity.offset(problem.query, problem.key, a) for a in range(columns)]
    value = np.broadcast_to(problem.value[:, 0], weight.shape)
    terms = [value, *offset]
    terms += [offset[a] * offset[b] for a in range(columns) for b in range(a, columns)]
    terms += [t * value for t in offset]
    layout = Layout(1, columns, 1)
    assert state.numerator.shape == (QUERIES, layout.width) == (QUERIES, len(terms))
    for column, term in enumerate(terms):
        # Each sum beside the sum of sizes, which is what rounding goes by.
        error = np.abs(state.numerator[:, column] - np.sum(weight * term, axis=1))
        assert np.all(error <= 1e-13 * np.sum(weight * np.abs(term), axis=1)), column


def test_parts_of_queries_and_keys(generator):
    problem = problem_of(2, generator, **situation("both", generator), degree=1)
    loops = FusedMoments(problem)
    whole, _ = loops.sums(slice(0, QUERIES), slice(0, KEYS))
    some = np.array([3, 100, 202])
    parts = [loops.sums(some, keys)[0] for keys in (slice(0, 700), slice(700, KEYS))]
    for name in ("denominator", "numerator"):
        expected = getattr(whole, name)[some]
        assert_allclose(sum(getattr(part, name) for part in parts), expected, rtol=1e-12, atol=1e-12)


def test_sums_that_may_have_underflowed_are_done_again(generator):
    query = np.array([[0.0], [25.0], [30.0]])
    key = generator.normal(size=(KEYS, 1))
    problem = Problem.from_arrays(query, key, np.sin(key[:, 0]), degree=1)
    assert isinstance(fused_loop(problem), FusedMoments)
    _, doubtful = FusedMoments(problem).sums(slice(0, 3), slice(0, KEYS))
    assert doubtful.tolist() == [False, True, True]
    found, exact = (choose(problem, name).reduce(problem) for name in ("brute", "reference"))
    assert_allclose(found.log_denominator, exact.log_denominator, rtol=1e-13)
    arrays = query, key, np.sin(key[:, 0])
    by_brute, by_reference = (pool(*arrays, degree=1, algorithm=name) for name in ("brute", "reference"))
    assert_allclose(by_brute, by_reference, rtol=1e-9)


@cases(("laplace", 2, "both"))
@pytest.mark.parametrize("bounded", [1, 0])
@pytest.mark.parametrize("wanted", [WANTED, ("log_bandwidth",), ("value",), ("key", "query")])
def test_every_gradient(kernel, columns, name, wanted, bounded, generator):
    problem = problem_of(columns, generator, kernel, np.linspace(0.5, 1.0, columns), **situation(name, generator))
    if not bounded:  # some are so far away that their weights are out of range
        key = problem.key.copy()
        key[600:650] += 1e5
        problem = replace(problem, key=key)
    assert CompiledBlocks(problem).gradients.bounded == bounded
    cotangent = generator.normal(size=(QUERIES, 1))
    exact = reference.reduce(problem)
    expected = reference.pullback(problem, exact, cotangent, frozenset(wanted))
    found = brute.pullback(problem, brute.reduce(problem), cotangent, frozenset(wanted), 2)
    staged = CompiledBlocks(problem)
    staged.gradients = None
    by_stages = staged.differentiate_block(slice(0, QUERIES), slice(0, KEYS), exact, cotangent, frozenset(wanted))
    for which in WANTED:
        if which not in wanted:
            continue
        right, ours, theirs = (getattr(of, which) for of in (expected, found, by_stages))
        assert ours.shape == right.shape
        # Sums of terms of both signs: beside the largest, and no worse than the stages are.
        error, error_of_stages = np.abs(ours - right).max(), np.abs(theirs - right).max()
        assert error <= max(1e-14 * np.abs(right).max(), 4.0 * error_of_stages), which


def test_they_are_used_and_their_queries_by_nothing_else(generator, monkeypatch):
    problem = problem_of(2, generator)
    called = []
    real = FusedMoments.add
    monkeypatch.setattr(FusedMoments, "add", lambda self, *given: called.append(given[2] > 0) or real(self, *given))
    brute.pullback(problem, brute.reduce(problem), np.ones((QUERIES, 1)), frozenset({"log_bandwidth"}))
    assert called
    assert all(some.all() for some in called)


@pytest.mark.parametrize(
    ("loops", "columns", "options"),
    [
        ("faster", 4, {"degree": 1}),
        ("faster", 1, {"degree": 1, "kernel": "epanechnikov"}),
        ("faster", 2, {"degree": 1, "kernel": "product laplace"}),
        ("gradients", 4, {}),
        ("gradients", 1, {"kernel": "epanechnikov"}),
        ("gradients", 2, {"degree": 1}),
    ],
)
def test_what_is_left_to_the_stages(loops, columns, options, generator):
    problem = problem_of(columns, generator, **options)
    assert getattr(CompiledBlocks(problem), loops) is None
