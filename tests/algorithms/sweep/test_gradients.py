"""Gradients on a line by series, against the reference implementation."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool import Problem
from kernpool.algorithms import reference
from kernpool.algorithms.sweep import sweep, windows
from kernpool.algorithms.sweep import sweep as sweep_gradients

M, N = 500, 900
PLACES = frozenset({"query", "key", "value"})
EXACT = 1e-16


def problem_of(situation, generator):
    """A line of single precision on which some sum could lose its digits."""
    query, key, options = generator.random(M), generator.random(N), {}
    value = generator.normal((0.0, 100.0), size=(N, 2))
    if situation == "own":
        query = key[:M]
        options = {"exclude_self": True, "self_index": np.where(np.arange(M) % 7, np.arange(M), -1)}
    if situation == "own, far from the rest":
        key[:5] += 10.0 * np.arange(5)
        query = key[:M]
        options = {"exclude_self": True, "self_index": np.arange(M)}
    if situation == "weights":
        options = {"key_weight": generator.integers(0, 5, N).astype(np.float32)}
    if situation == "far queries":
        query[:3] = 1.5, 3.0, -2.0
    if situation == "steep":
        value = np.column_stack([1e4 * key, key**2])
    arrays = [part.astype(np.float32) for part in (query, key, value)]
    return Problem.from_arrays(*arrays, bandwidth=0.1, tol=EXACT, **options).without_center()


SITUATIONS = ["plain", "own", "own, far from the rest", "weights", "far queries", "steep"]


@pytest.mark.covering
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("wanted", ["query key value", "query", "value", "key value"])
def test_series_equal_the_reference(situation, wanted, generator):
    problem, wanted = problem_of(situation, generator), frozenset(wanted.split())
    state, cotangent = sweep.reduce(problem), generator.normal(size=(M, 2))
    assert sweep_gradients.applies(problem, state, wanted)
    found = sweep_gradients.differentiate_by_series(problem, state, cotangent, wanted, n_jobs=2)
    right = reference.pullback(problem, reference.reduce(problem), cotangent, wanted)
    for name in wanted:
        got, want = getattr(found, name), getattr(right, name)
        assert np.abs(got - want).max() <= 1e-11 * np.abs(want).max(), name
    assert all(getattr(found, name) is None for name in PLACES - wanted)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_what_differences_lose_is_far_below_the_rounding_of_single_values(situation, generator):
    problem = problem_of(situation, generator)
    state, cotangent = sweep.reduce(problem), generator.normal(size=(M, 2))
    found = sweep_gradients.differentiate_by_series(problem, state, cotangent, PLACES)
    right = reference.pullback(problem, state, cotangent, PLACES)
    noise = np.float32(2.0**-24) * generator.choice([-1, 1], problem.value.shape)
    rounded = replace(problem, value=problem.value * (1.0 + noise))
    moved = reference.pullback(rounded, reference.reduce(rounded), cotangent, PLACES)
    for name in ("query", "key"):
        error = np.abs(getattr(found, name) - getattr(right, name)).max()
        assert error <= 1e-3 * np.abs(getattr(moved, name) - getattr(right, name)).max(), name


def test_series_are_for_single_precision_and_many_keys_in_reach(generator):
    problem = problem_of("plain", generator)
    state = sweep.reduce(problem)
    assert sweep_gradients.applies(problem, state, PLACES)
    assert not sweep_gradients.applies(problem, state, PLACES | {"log_bandwidth"})
    assert not sweep_gradients.applies(replace(problem, dtype=np.dtype(np.float64)), state, PLACES)
    narrow = replace(problem, similarity=replace(problem.similarity, bandwidth=np.array([1e-3])))
    assert not sweep_gradients.applies(narrow, sweep.reduce(narrow), PLACES)
    twice = replace(problem, self_index=np.zeros(M, dtype=np.int64))
    assert not sweep_gradients.applies(twice, sweep.reduce(twice), PLACES)


def test_the_sweep_takes_the_series_where_they_apply(generator, monkeypatch):
    problem = problem_of("plain", generator)
    state, cotangent = sweep.reduce(problem), generator.normal(size=(M, 2))
    monkeypatch.setattr(windows, "differentiate_windows", lambda *_: pytest.fail("by pairs"))
    found = sweep.pullback(problem, state, cotangent, PLACES)
    assert found.key.shape == (N, 1)


def test_a_state_of_more_keys_than_those_at_hand(generator):
    """The gradients of two halves, each with the state of all, add up to those of all."""
    problem = problem_of("plain", generator)
    state, cotangent = sweep.reduce(problem), generator.normal(size=(M, 2))
    whole = reference.pullback(problem, state, cotangent, PLACES)
    halves = [slice(0, N // 3), slice(N // 3, N)]
    parts = [
        sweep_gradients.differentiate_by_series(problem.block(slice(None), half), state, cotangent, PLACES)
        for half in halves
    ]
    query = sum(part.query for part in parts)
    assert np.abs(query - whole.query).max() <= 1e-11 * np.abs(whole.query).max()
    for name in ("key", "value"):
        found, want = np.concatenate([getattr(part, name) for part in parts]), getattr(whole, name)
        assert np.abs(found - want).max() <= 1e-11 * np.abs(want).max(), name


def test_progress_ends_with_the_queries(generator):
    problem, seen = problem_of("far queries", generator), []
    sweep.pullback(problem, sweep.reduce(problem), np.ones((M, 2)), PLACES, progress=lambda *at: seen.append(at))
    assert seen == [(M, M)]
