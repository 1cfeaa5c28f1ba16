"""Fused loops of local linear fits: every sum, of every query, beside dense sums."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool import Problem, choose, pool
from kernpool.algorithms import reference
from kernpool.algorithms.brute.fused import FusedMoments
from kernpool.algorithms.brute.tiles import CompiledBlocks
from kernpool.core import Layout

KEYS, QUERIES = 1100, 203  # two tiles and a rest


def problem_of(columns, generator, kernel="gaussian", bandwidth=0.7, **options):
    query, key = (generator.normal(size=(n, columns)) for n in (QUERIES, KEYS))
    return Problem.from_arrays(
        query, key, generator.normal(size=KEYS), kernel=kernel, bandwidth=bandwidth, degree=1, **options
    )


def situation(name, generator):
    options = {}
    if name in ("weights", "both"):
        options["key_weight"] = generator.integers(0, 4, KEYS).astype(float)
    if name in ("own", "both"):
        options |= {"exclude_self": True, "self_index": generator.integers(-1, KEYS, QUERIES)}
    return options


# A loop is compiled for each: one of them is among the quick.
CASES = [
    pytest.param(kernel, columns, name, marks=() if (columns, name) == (2, "both") else pytest.mark.slow)
    for kernel in ("gaussian", "laplace")
    for columns in (1, 2, 3)
    for name in ("plain", "weights", "own", "both")
]


@pytest.mark.parametrize("bounded", [1, 0])
@pytest.mark.parametrize(("kernel", "columns", "name"), CASES)
def test_every_sum(kernel, columns, name, bounded, generator):
    problem = problem_of(columns, generator, kernel, np.linspace(0.5, 1.0, columns), **situation(name, generator))
    if not bounded:  # some are so far away that their weights are out of range
        key = problem.key.copy()
        key[:50] += 1e5
        key[50:60] -= 1e140
        problem = replace(problem, key=key)
    assert FusedMoments.can_do(problem)
    assert FusedMoments(problem).bounded == bounded
    state, doubtful = FusedMoments(problem).sums(slice(0, QUERIES), slice(0, KEYS))
    assert not doubtful.any()
    shift, weight = reference.pair_weights(problem)
    weight = weight * np.exp(shift)[:, None]
    np.testing.assert_allclose(state.denominator, weight.sum(axis=1), rtol=1e-13)
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
    problem = problem_of(2, generator, **situation("both", generator))
    loops = FusedMoments(problem)
    whole, _ = loops.sums(slice(0, QUERIES), slice(0, KEYS))
    some = np.array([3, 100, 202])
    parts = [loops.sums(some, keys)[0] for keys in (slice(0, 700), slice(700, KEYS))]
    for name in ("denominator", "numerator"):
        expected = getattr(whole, name)[some]
        np.testing.assert_allclose(sum(getattr(part, name) for part in parts), expected, rtol=1e-12, atol=1e-12)


def test_sums_that_may_have_underflowed_are_done_again(generator):
    query = np.array([[0.0], [25.0], [30.0]])
    key = generator.normal(size=(KEYS, 1))
    problem = Problem.from_arrays(query, key, np.sin(key[:, 0]), degree=1)
    assert FusedMoments.can_do(problem)
    _, doubtful = FusedMoments(problem).sums(slice(0, 3), slice(0, KEYS))
    assert doubtful.tolist() == [False, True, True]
    brute, exact = (choose(problem, name).reduce(problem) for name in ("brute", "reference"))
    np.testing.assert_allclose(brute.log_denominator, exact.log_denominator, rtol=1e-13)
    arrays = query, key, np.sin(key[:, 0])
    by_brute, by_reference = (pool(*arrays, degree=1, algorithm=name) for name in ("brute", "reference"))
    np.testing.assert_allclose(by_brute, by_reference, rtol=1e-9)


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        (4, {}),
        (1, {"kernel": "epanechnikov"}),
        (2, {"kernel": "laplace", "composition": "product"}),
    ],
)
def test_what_is_left_to_the_stages(columns, options, generator):
    problem = problem_of(columns, generator, **options)
    assert not FusedMoments.can_do(problem)
    assert not CompiledBlocks(problem).faster
