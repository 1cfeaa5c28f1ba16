"""Rails: what cannot be a weighted mean is computed again, counted and told; and nothing ever has to be."""

import logging
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import PoolState, Problem, choose, kernel_names, pool
from kernpool.algorithms import ALGORITHMS, verification
from kernpool.algorithms.tree import blocks as tree_block
from kernpool.algorithms.verification import FAULTS, SAMPLE_QUERIES, corrected
from kernpool.core import solve
from tests.support.problems import VARIANTS, make_problem


@pytest.fixture
def faults():
    """Counts of this test, which the fixture of all tests must not see."""
    FAULTS.clear()
    yield FAULTS
    FAULTS.clear()


def damaged(state, rows, what):
    parts = [part.copy() for part in (state.shift, state.denominator, state.numerator)]
    if what == "denominator":
        parts[1][rows] = [np.nan, np.inf, -1.0]
    elif what == "numerator":
        parts[2][rows] = np.array([np.nan, np.inf, 1e9])[:, None]
    elif what == "too low":
        parts[2][rows] = -1e9
    else:  # an empty window of a kernel that is positive everywhere
        parts[1][rows], parts[2][rows] = 0.0, 0.0
    return PoolState(*parts)


@pytest.mark.parametrize("what", ["denominator", "numerator", "too low", "empty"])
@pytest.mark.parametrize("variant", ["plain", "weighted", "leave-one-out", "far"])
def test_impossible_answers_are_computed_again_and_counted(variant, what, faults, caplog):
    problem = make_problem("gaussian", 2, variant)
    plan, rows = choose(problem, "brute"), [3, 40, 77]
    right = plan.reduce(problem)
    wrong = replace(
        plan, _chosen=replace(ALGORITHMS["brute"], reduce=lambda *_: damaged(problem.reduced(right), rows, what))
    )
    with caplog.at_level(logging.DEBUG, logger="kernpool"):
        found = wrong.reduce(problem)
    assert_allclose(found.finalize(), right.finalize(), rtol=1e-12)
    assert faults.counts() == {"brute": 3}
    assert "brute: 3 of 90 answers were impossible" in caplog.text


def test_impossible_answers_with_moments_are_computed_again(faults):
    problem = make_problem("gaussian", 2, "weighted", degree=1)
    right = choose(problem, "brute").reduce(problem)
    found, count = corrected(problem, damaged(problem.reduced(right), [0, 1, 2], "denominator"), "brute")
    assert count == 3
    found, layout = problem.restored(found), problem.layout
    assert_allclose(solve(found, layout).intercept, solve(right, layout).intercept, rtol=0, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("kernel", kernel_names())
def test_answers_of_the_reference_are_possible(kernel, variant):
    """No false alarm: not for empty windows, masks, or values that are all equal."""
    for value in (None, 3.25):
        problem = make_problem(kernel, 2, variant, bandwidth=0.3)
        if value is not None:
            problem = replace(problem, value=np.zeros_like(problem.value), value_center=np.full(2, value))
        state = problem.reduced(choose(problem, "reference").reduce(problem))
        assert corrected(problem, state, "reference") == (state, 0)


def test_values_beyond_those_of_the_sample_are_possible(generator):
    """The range of a sample of values is looked at first, and it is narrower than that of all."""
    n = 3 * verification.SAMPLE_VALUES
    key, value = np.arange(float(n)), np.where(np.arange(n) % 3 == 1, 1e3, generator.random(n))
    problem = Problem.from_arrays(key, key, value, bandwidth=0.01)
    state = problem.reduced(choose(problem, "brute").reduce(problem))
    assert corrected(problem, state, "brute")[1] == 0


def test_padding_does_not_hide_an_impossible_answer(faults):
    key, value, weight = np.arange(100.0), np.full(100, 2.0), np.ones(100)
    value[::2], value[7], weight[7] = 3.0, 1e18, 0.0
    problem = Problem.from_arrays(key, key, value, key_weight=weight)
    state = problem.reduced(choose(problem, "brute").reduce(problem))
    state.numerator[1:4] += 100.0
    assert corrected(problem, state, "brute")[1] == 3


def test_the_tree_is_compared_with_brute_force_and_gives_way(generator, monkeypatch, faults):
    """Answers may be wrong and yet between the values."""
    key, value = generator.random((6000, 2)), generator.normal(size=6000)
    problem = Problem.from_arrays(key, key, value, bandwidth=0.05)
    expected = choose(problem, "brute").reduce(problem).finalize()
    plan, reduce = choose(problem, "kd_tree"), tree_block.visit_blocks
    assert_allclose(plan.reduce(problem).finalize(), expected, rtol=0, atol=1e-12)
    assert faults.counts() == {}

    def shrunk(*arguments):
        state, pairs = reduce(*arguments)
        return replace(state, numerator=0.999 * state.numerator), pairs

    monkeypatch.setattr(tree_block, "visit_blocks", shrunk)
    with pytest.warns(RuntimeWarning, match=f"'kd_tree' disagreed with brute force on {SAMPLE_QUERIES} of"):
        found = plan.reduce(problem).finalize()
    assert_array_equal(found, expected)
    assert faults.counts() == {"kd_tree": 6000}


@pytest.mark.parametrize("kernel", ["epanechnikov", "biweight", "triweight"])
def test_neighbours_next_to_the_edge_are_no_false_alarm(kernel, faults):
    """On a lattice of the bandwidth all weights are rounding, and leaving oneself out leaves nothing else."""
    x = np.arange(70.0)
    key = np.stack(np.meshgrid(x, x), axis=-1).reshape(-1, 2) * 0.1
    value = np.random.default_rng(1).normal(size=len(key))
    for wider in (0.0, 3e-12, 1e-11, 1e-8):
        options = {"kernel": kernel, "bandwidth": 0.1 * (1.0 + wider), "exclude_self": True, "empty": "zero"}
        pool(key, key, value, algorithm="kd_tree", **options)
    assert faults.counts() == {}


def test_a_single_key_that_is_left_out_is_no_alarm_either(monkeypatch, faults):
    monkeypatch.setattr(verification.brute, "reduce_densely", lambda _: 1 / 0)
    weight = np.array([0.0, 1.0, 0.0])
    for options in ({}, {"key_weight": weight, "self_index": np.array([0, 1, 2])}):
        key = np.arange(3.0)[: 3 if options else 1]
        found = pool(key, key, key, exclude_self=True, algorithm="brute", empty="zero", **options)
        assert found[1 if options else 0] == 0.0
    assert faults.counts() == {}


def test_many_impossible_answers_are_computed_again_by_compiled_tiles(monkeypatch, faults):
    monkeypatch.setattr(verification, "MOST_DENSELY", 0)
    problem = make_problem("product laplace", 3, "weighted leave-one-out")
    right = choose(problem, "brute").reduce(problem)
    found, count = corrected(problem, damaged(problem.reduced(right), [3, 40, 77], "denominator"), "brute")
    assert count == 3
    assert_allclose(problem.restored(found).finalize(), right.finalize(), rtol=1e-12)


@pytest.mark.parametrize("way", ["reduce_densely", "reduce_staged"])
def test_which_queries_are_compared_does_not_depend_on_threads(way, generator, monkeypatch):
    looked_at = []
    monkeypatch.setattr(verification.brute, way, lambda part: looked_at.append(part.query) or 1 / 0)
    if way == "reduce_staged":
        monkeypatch.setattr(verification, "MOST_AT_FIRST", 0)
    key = generator.random((5000, 2))
    for n_jobs in (1, 2):
        with pytest.raises(ZeroDivisionError):
            pool(key, key, key[:, 0], bandwidth=0.05, algorithm="kd_tree", n_jobs=n_jobs)
    assert_array_equal(*looked_at)
    assert len(looked_at[0]) == SAMPLE_QUERIES
