"""Scores of conditional distributions are those of their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import Problem, kernel_names, pooling_weights
from kernpool.core import Exclusion, Factors
from kernpool.distribution import ArrayOutcomes, ProbabilityTransform, weighted_cdf
from kernpool.distribution.scoring_rules import known_crps
from kernpool.distribution.smoothed_cdf import known_smooth
from kernpool.pooling import Recipe, weight_rows
from tests.support.dense_distribution import dense_cdf, dense_crps, dense_pit, dense_smooth


def make_rows(n=60, m=12, seed=0):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, 1)), generator.uniform(-1.2, 1.2, (m, 1))
    value = np.round(np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), 1)
    y = np.round(generator.normal(size=m), 1)
    y[:3] = [value.min() - 2.0, value.max() + 3.0, value.max()][:m]
    return query, key, value, y, generator


@pytest.mark.parametrize("kernel", kernel_names())
@pytest.mark.parametrize("with_center", [False, True])
def test_the_crps_is_that_of_pairs_of_draws(kernel, with_center, way):
    query, key, value, y, generator = make_rows()
    weight = generator.integers(0, 3, len(key)).astype(float)
    center = generator.normal(size=len(query)) if with_center else None
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=0.6, key_weight=weight)
    weights = pooling_weights(query, key, kernel=kernel, bandwidth=0.6, key_weight=weight, empty="zero")
    found, occupied = known_crps(Recipe.of(), problem, value, y, center)
    expected = dense_crps(weights, value, y, 0.0 if center is None else center)
    assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    assert_array_equal(occupied, weights.any(axis=1))


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), y=st.floats(-4, 4))
def test_it_is_the_integral_of_squares(seed, y):
    query, key, value, _, _ = make_rows(n=25, m=2, seed=seed)
    problem = Problem.from_arrays(query, key, value, bandwidth=0.3)
    found, _ = known_crps(Recipe.of(), problem, value, np.full(2, y))
    ends = np.unique(np.append(value, y))
    middle = (ends[1:] + ends[:-1]) / 2  # the integrand is constant between
    steps = dense_cdf(pooling_weights(query, key, bandwidth=0.3), value, middle)
    assert_allclose(found, ((steps - (y <= middle)) ** 2) @ np.diff(ends), rtol=0, atol=1e-13)


def transforms(recipe, problem, value, y, uniform):
    found, occupied = ArrayOutcomes(recipe, problem, value[:, None]).compute(
        ProbabilityTransform(y[:, None], uniform[:, None])
    )
    assert occupied.all()
    return found[:, 0, 0]


def test_the_transform_is_between_both_sides_of_a_step(way, monkeypatch):
    monkeypatch.setattr(weighted_cdf, "FEWEST_KEYS", 7)
    monkeypatch.setattr(weighted_cdf, "QUICK_PAIRS", 1)
    query, key, value, y, generator = make_rows()
    problem, uniform = Problem.from_arrays(query, key, value, bandwidth=0.3), generator.uniform(size=len(y))
    assert np.isin(y, value).any()
    assert not np.isin(y, value).all()
    found = transforms(Recipe.of(), problem, value, y, uniform)
    expected = dense_pit(pooling_weights(query, key, bandwidth=0.3), value, y, uniform)
    assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_transforms_of_draws_are_uniform():
    """Randomised at ties they are exactly so, whatever the weights."""
    generator = np.random.default_rng(0)
    query, key, value, _, _ = make_rows(m=1)
    weights = pooling_weights(query, key, bandwidth=0.3)[0]
    y = generator.choice(value, 20000, p=weights)
    problem = Problem.from_arrays(np.repeat(query, len(y), axis=0), key, value, bandwidth=0.3)
    found = transforms(Recipe.of(), problem, value, y, generator.uniform(size=len(y)))
    counts = np.histogram(found, bins=20, range=(0, 1))[0]
    assert np.abs(counts / 1000 - 1).max() < 5 / np.sqrt(1000)


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("situation", ["self", "mask", "bias", "groups", "levels", "far", "empty"])
def test_problems_of_any_kind(situation, columns, way):
    generator = np.random.default_rng(5)
    n, m = 700, 6  # more than a tile of keys on one side of y
    key, value = generator.uniform(-1, 1, (n, columns)), np.round(generator.normal(size=n), 1)
    query, options = key[:m].copy(), {"bandwidth": 0.5, "key_weight": generator.integers(0, 4, n).astype(float)}
    if situation == "self":
        options |= {"exclude_self": True, "self_index": np.arange(m)}
    if situation == "mask":
        options["attn_mask"] = generator.random((m, n)) < 0.5
    if situation == "bias":
        options["attn_mask"] = 800.0 + generator.normal(size=(m, n))
    if situation == "far":
        query[:3] = 1e5
    if situation == "empty":
        query[:3] = 9.0
        options["kernel"] = "epanechnikov"
    problem = Problem.from_arrays(query, key, value, **options)
    if situation == "groups":
        problem = problem.excluding(generator.integers(-1, 3, m), Exclusion(generator.integers(0, 3, n)))
    if situation == "levels":
        table = np.array([[1.0, 0.3, 0.1], [0.3, 1.0, 0.3], [0.1, 0.3, 1.0]])
        code, asked = generator.integers(0, 3, (n, 1)), generator.integers(-1, 3, (m, 1))
        problem = problem.with_factors(Factors(asked, code, (table,), (np.zeros_like(table),)))
    weights, y = (
        np.concatenate([table for _, table in weight_rows(problem)]),
        np.array([-9.0, -0.31, 0.0, 0.4, 3.0, 9.0]),
    )
    found, occupied = known_crps(Recipe.of(), problem, value, y)
    assert_allclose(found, dense_crps(weights, value, y), rtol=1e-12, atol=1e-13)
    assert_array_equal(occupied, weights.any(axis=1))
    for density in (False, True):
        found, _ = known_smooth(Recipe.of(), problem, value, y[:, None], 0.2, density=density)
        expected = dense_smooth(weights, value, y[:, None], 0.2, density=density)
        assert_allclose(found, expected, rtol=0, atol=2e-12)
