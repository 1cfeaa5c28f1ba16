"""Fused loops of gradients: every number of every query and key, beside the stages and beside dense sums."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool import Problem
from kernpool.algorithms import reference
from kernpool.algorithms.brute import brute
from kernpool.algorithms.brute.fused import FusedGradients
from kernpool.algorithms.brute.tiles import CompiledBlocks

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


# A loop is compiled for each: one of them is among the quick.
CASES = [
    pytest.param(
        kernel, columns, name, marks=() if (kernel, columns, name) == ("laplace", 2, "both") else pytest.mark.slow
    )
    for kernel in ("gaussian", "laplace")
    for columns in (1, 2, 3)
    for name in ("plain", "weights", "own", "both")
]


@pytest.mark.parametrize(("kernel", "columns", "name"), CASES)
@pytest.mark.parametrize("bounded", [1, 0])
@pytest.mark.parametrize("wanted", [WANTED, ("log_bandwidth",), ("value",), ("key", "query")])
def test_every_gradient(kernel, columns, name, wanted, bounded, generator):
    problem = problem_of(columns, generator, kernel, np.linspace(0.5, 1.0, columns), **situation(name, generator))
    if not bounded:  # some are so far away that their weights are out of range
        key = problem.key.copy()
        key[600:650] += 1e5
        problem = replace(problem, key=key)
    assert FusedGradients(problem).arrays.bounded == bounded
    assert FusedGradients.can_do(problem)
    cotangent = generator.normal(size=(QUERIES, 1))
    exact = reference.reduce(problem)
    expected = reference.pullback(problem, exact, cotangent, frozenset(wanted))
    found = brute.pullback(problem, brute.reduce(problem), cotangent, frozenset(wanted), 2)
    staged = CompiledBlocks(problem)
    staged.fused_gradients = None
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
    real = FusedGradients.add
    monkeypatch.setattr(FusedGradients, "add", lambda self, *given: called.append(given[2] > 0) or real(self, *given))
    brute.pullback(problem, brute.reduce(problem), np.ones((QUERIES, 1)), frozenset({"log_bandwidth"}))
    assert called
    assert all(some.all() for some in called)


@pytest.mark.parametrize(("columns", "options"), [(4, {}), (1, {"kernel": "epanechnikov"}), (2, {"degree": 1})])
def test_what_is_left_to_the_stages(columns, options, generator):
    problem = problem_of(columns, generator, **options)
    assert not FusedGradients.can_do(problem)
    assert CompiledBlocks(problem).fused_gradients is None
