"""Distributions that are smoothed in y: the distribution function, its density, its inverse, and bandwidths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri

from kernpool import Problem, kernel_names, pooling_weights
from kernpool.distribution import scoring_rules, smoothed_cdf
from kernpool.distribution.scoring_rules import find_y_bandwidth, indicators
from kernpool.distribution.smoothed_cdf import known_smooth, known_smooth_quantiles
from kernpool.pooling import Recipe
from tests.support.dense_distribution import dense_smooth, shares

LEVELS = np.array([0.5, 0.001, 0.9, 0.05])


def make_rows(n=80, m=9, seed=0):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, 1)), generator.uniform(-1.2, 1.2, (m, 1))
    return query, key, np.round(np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), 1), generator


@pytest.mark.parametrize("kernel", kernel_names())
@pytest.mark.parametrize("density", [False, True])
def test_every_answer_is_that_of_the_table_of_weights(kernel, density, way):
    query, key, value, generator = make_rows()
    weight = generator.integers(0, 3, len(key)).astype(float)
    problem = Problem.from_arrays(query, key, value, kernel=kernel, bandwidth=0.6, key_weight=weight)
    weights = pooling_weights(query, key, kernel=kernel, bandwidth=0.6, key_weight=weight, empty="zero")
    center = generator.normal(size=len(query))
    for y, shift in (
        (np.array([[0.3, -9.0, 0.0, 2.0]]), None),
        (generator.normal(size=(9, 3)), None),
        (np.array([[0.3, -9.0]]), center),
    ):
        found, occupied = known_smooth(Recipe.of(), problem, value, y, 0.2, density=density, center=shift)
        expected = dense_smooth(weights, value, y, 0.2, 0.0 if shift is None else shift, density=density)
        assert_allclose(found, expected, rtol=0, atol=1e-12 * (2.0 if density else 1.0))
        assert_array_equal(occupied, weights.any(axis=1))


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_a_large_problem_in_blocks_of_columns(kernel, monkeypatch):

    monkeypatch.setattr(smoothed_cdf, "COLUMN_NUMBERS", 5000)
    query, key, value, _ = make_rows(n=1200, m=70)
    y, options = np.linspace(-2, 2, 5)[None], {"kernel": kernel, "bandwidth": 0.1}
    problem = Problem.from_arrays(query, key, value, **options)
    for density in (False, True):
        found, _ = known_smooth(Recipe.of(), problem, value, y, 0.1, density=density)
        expected = dense_smooth(pooling_weights(query, key, empty="zero", **options), value, y, 0.1, density=density)
        assert_allclose(found, expected, rtol=0, atol=4e-12)


@settings(max_examples=15)
@given(
    width=st.sampled_from([1e-3, 0.05, 0.3, 10.0]),
    levels=st.lists(st.floats(1e-6, 1 - 1e-6), min_size=1, max_size=3),
    seed=st.integers(0, 100),
)
def test_quantiles_are_the_inverse(width, levels, seed):
    query, key, value, _ = make_rows(n=30, m=5, seed=seed)
    problem = Problem.from_arrays(query, key, value, bandwidth=0.3)
    found, occupied = known_smooth_quantiles(Recipe.of(), problem, value, np.array(levels), width)
    assert occupied.all()
    back = dense_smooth(pooling_weights(query, key, bandwidth=0.3), value, found, width)
    assert_allclose(back, np.tile(levels, (5, 1)), rtol=0, atol=1e-11)


def test_quantiles_of_a_single_value_are_normal():
    problem = Problem.from_arrays([0.0, 9.0], [0.0], [3.0], kernel="boxcar")
    found, occupied = known_smooth_quantiles(Recipe.of(), problem, np.array([3.0]), np.append(LEVELS, [0.0, 1.0]), 0.5)
    assert_allclose(found[0, :-2], 3.0 + 0.5 * ndtri(LEVELS), rtol=1e-13)
    assert found[0, -2:].tolist() == [-np.inf, np.inf]
    assert occupied.tolist() == [True, False]
    assert np.isnan(found[1]).all()


def left_out_of(n=300, seed=0, noise=None):
    generator = np.random.default_rng(seed)
    x = generator.uniform(size=(n, 1))
    y = generator.normal(size=n) if noise is None else noise(generator, n)
    problem = Problem.from_arrays(x, x, y, bandwidth=0.3, exclude_self=True)
    table = shares(pooling_weights(x, x, bandwidth=0.3, exclude_self=True)).astype(float)
    return problem, y, table


def test_the_rule_is_that_of_silverman():
    problem, y, table = left_out_of()
    residual = y - table @ y
    low, high = np.quantile(residual, [0.25, 0.75], method="inverted_cdf")
    size = np.median(1 / np.sum(table**2, axis=1))
    expected = 0.9 * min(residual.std(), (high - low) / 1.349) * size**-0.2
    found = find_y_bandwidth(problem, y, y, table @ y, np.zeros(len(y)), "rule")
    assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "noise",
    [None, lambda generator, n: generator.choice([-2.0, 2.0], n) + 0.1 * generator.normal(size=n)],
    ids=["normal", "two modes"],
)
def test_the_likeliest_bandwidth_is_that_of_a_fine_grid(noise):
    problem, y, table = left_out_of(noise=noise)
    found = find_y_bandwidth(problem, y, y, table @ y, np.zeros(len(y)), "ml")

    away = y[:, None] - y

    def likelihood(width):
        with np.errstate(divide="ignore", under="ignore"):
            return np.log(np.sum(table * np.exp(-((away / width) ** 2) / 2), axis=1) / width).sum()

    values = [likelihood(width) for width in np.geomspace(found / 20, 20 * found, 200)]
    assert likelihood(found) >= max(values) - 1e-6 * abs(max(values))


def test_many_rows_are_drawn_from(monkeypatch):

    problem, y, table = left_out_of(n=400)
    whole = find_y_bandwidth(problem, y, y, table @ y, np.zeros(len(y)), "ml")
    monkeypatch.setattr(scoring_rules, "ROWS", 150)
    some = find_y_bandwidth(problem, y, y, table @ y, np.zeros(len(y)), "ml")
    assert some != whole
    assert_allclose(some, whole, rtol=0.3)


def test_equal_outputs_have_no_likeliest_bandwidth():
    problem, y, table = left_out_of(noise=lambda generator, n: np.round(generator.normal(size=n)))
    with pytest.warns(UserWarning, match="the likelihood grows as y_bandwidth falls"):
        found = find_y_bandwidth(problem, y, y, table @ y, np.zeros(len(y)), "ml")
    rule = find_y_bandwidth(problem, y, y, table @ y, np.zeros(len(y)), "rule")
    assert_allclose(found, rule / 30)


def test_no_bandwidth_where_there_is_no_noise():
    problem, y, _ = left_out_of(noise=lambda _, n: np.ones(n))
    with pytest.raises(ValueError, match="y does not differ from the fit; give it as a number"):
        find_y_bandwidth(problem, y, y, y, np.zeros(len(y)), "rule")
    x = np.arange(5.0)[:, None]
    alone = Problem.from_arrays(x, x, x[:, 0], kernel="boxcar", bandwidth=0.1, exclude_self=True)
    with pytest.raises(ValueError, match="no row has another one in its window"):
        find_y_bandwidth(alone, x[:, 0], x[:, 0], x[:, 0], np.zeros(5), "rule")


def test_indicators_are_weighted_quantiles():
    y, weight = np.array([5.0, 1.0, 3.0, 1.0]), np.array([1.0, 2.0, 3.0, 0.0])
    repeated = np.array([5.0, 1.0, 1.0, 3.0, 3.0, 3.0])
    rows = [0, 1, 1, 2, 2, 2]
    assert_array_equal(indicators(y, weight, 19)[rows], indicators(repeated, None, 19))
    both = indicators(np.column_stack([y, -y]), None, 3)
    assert_array_equal(both, np.column_stack([indicators(y, None, 3), indicators(-y, None, 3)]))
    with pytest.raises(ValueError, match="y does not vary"):
        indicators(np.ones(4), None, 19)
    with pytest.raises(ValueError, match="thresholds must be an integer"):
        indicators(y, None, 0)
