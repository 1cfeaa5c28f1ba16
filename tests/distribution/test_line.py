"""Quantiles at many places on a line: blocks of neighbouring queries find what a table of all weights finds."""

from dataclasses import replace

import numpy as np
import pytest

from kernpool import Problem, kernel_names, make_kernel, pool_quantile, pooling_weights
from kernpool.core import Factors
from kernpool.distribution import KernelWeights, one_column_quantile
from kernpool.distribution import weighted_quantile as of_places
from kernpool.distribution.one_column_quantile import smoothness_of
from kernpool.kernels import get_kernel
from kernpool.pooling import Recipe
from tests.support.dense_quantiles import assert_quantiles

LEVELS = [0.4983, 0.9017, 1.0, 0.0123, 0.2571]  # that no few equal weights meet
KERNELS = [name for name in kernel_names() if smoothness_of(get_kernel(name)) is not None]
SMALL = {"BUCKET": 16, "FEWEST_KEYS": 64, "MOST_QUERIES": 150, "QUERIES_PER_BLOCK": 40}


@pytest.fixture
def by_blocks(monkeypatch):
    """Let blocks do what they can, whatever it costs, and say which queries they left to others."""
    monkeypatch.setattr(of_places, "FEW_PAIRS", 0)
    monkeypatch.setattr(of_places, "is_quicker", lambda *_: True)
    done = {"found": 0, "left": 0}
    places = one_column_quantile.SortedLine.places

    def counted(self, *given):
        for rows, place in places(self, *given):
            known = (place >= 0).all(axis=1)
            done["found"] += int(known.sum())
            done["left"] += int((~known).sum())
            yield rows, place

    monkeypatch.setattr(one_column_quantile.SortedLine, "places", counted)
    return done


@pytest.fixture(params=["small", "as they are"])
def sizes(request, monkeypatch):
    if request.param == "small":
        for name, value in SMALL.items():
            monkeypatch.setattr(one_column_quantile, name, value)


def make_rows(n=700, m=500, seed=0):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, n), generator.uniform(-1.1, 1.1, m)
    return query, key, np.sin(3 * key) + 0.4 * generator.normal(size=n), generator


def check(query, key, value, levels=LEVELS, **options):
    found = pool_quantile(query, key, value, levels, empty="zero", **options)
    assert_quantiles(found, pooling_weights(query, key, empty="zero", **options), value, levels, empty=0.0)


@pytest.mark.covering
@pytest.mark.parametrize("bandwidth", [0.01, 0.3, 20.0])
@pytest.mark.parametrize("situation", ["plain", "weights", "self", "weights and self", "grid", "ties", "one place"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_quantile_is_that_of_the_table_of_weights(kernel, situation, bandwidth, sizes, by_blocks):
    query, key, value, generator = make_rows()
    options = {"kernel": kernel, "bandwidth": bandwidth}
    if "weights" in situation:
        options["key_weight"] = generator.integers(0, 4, len(key)).astype(float)
    if "self" in situation:
        query = np.concatenate([key[:300], query[:100]])
        options |= {"exclude_self": True, "self_index": np.concatenate([np.arange(300), np.full(100, -1)])}
    if situation == "grid":  # keys at the very edges of windows
        query, key = np.round(query, 2), np.round(key, 2)
    if situation == "ties":
        value = np.round(value)
    if situation == "one place":
        query[:300], key[100:400] = 0.25, 0.25
    check(query, key, value, **options)
    assert by_blocks["found"] > 0.8 * len(query) or bandwidth == 0.01


@pytest.mark.parametrize("where", [0.0, 1e6])
@pytest.mark.parametrize("kernel", KERNELS)
def test_no_digit_is_lost(kernel, where, by_blocks):
    """Levels a little below and above what the distribution function is at a key are told apart."""
    query, key, value, generator = make_rows(m=400)
    query, key = where + np.sort(query * 0.3), where + key
    options = {"kernel": kernel, "bandwidth": 0.4}
    weights, order = pooling_weights(query, key, **options), np.argsort(value)
    total = np.cumsum(weights[:, order].astype(np.longdouble), axis=1)
    total /= total[:, -1:]
    place = np.array([generator.choice(np.flatnonzero(row > 1e-4)) for row in weights[:, order]])
    reached = total[np.arange(400), place].astype(float)
    level = np.clip(np.stack([reached - 2e-13, reached + 2e-13], axis=1), 0.0, 1.0)
    problem = Problem.from_arrays(query, key, value, **options)
    found = KernelWeights.of(problem, Recipe.of()).places(order, level)
    inside = reached < 1.0 - 1e-12
    assert inside.mean() > 0.9
    np.testing.assert_array_equal(value[found[:, 0]], value[order[place]])
    assert (value[found[inside, 1]] > value[order[place[inside]]]).all()
    assert by_blocks["found"] > 350


@pytest.mark.parametrize("kernel", KERNELS)
def test_equal_weights_meet_levels_exactly_between_nodes(kernel, by_blocks):
    value = np.arange(300.0)
    found = pool_quantile(
        np.linspace(0.01, 0.09, 100), np.zeros(300), value, np.arange(1, 301) / 300, kernel=kernel, bandwidth=0.4
    )
    np.testing.assert_array_equal(found, np.broadcast_to(value, (100, 300)))
    assert by_blocks == {"found": 100, "left": 0}


@pytest.mark.parametrize("kernel", ["gaussian", "triweight", "cosine"])
@pytest.mark.parametrize("nodes", [2, 3, 4, 6])
def test_an_interpolant_that_is_off_is_not_believed(nodes, kernel, by_blocks, monkeypatch):
    """The weights of a bucket, key by key, are not what is interpolated, and the query goes down the tree."""
    monkeypatch.setattr(
        one_column_quantile, "smoothness_of", lambda kernel: replace(smoothness_of(kernel), nodes=nodes)
    )
    query, key, value, _ = make_rows()
    check(query, key, value, kernel=kernel, bandwidth=0.3)
    assert by_blocks["left"] > 300


@pytest.mark.parametrize("kernel", KERNELS)
def test_isolated_rows_and_queries_far_from_all(kernel, sizes, by_blocks):
    query, key, value, _ = make_rows(m=300)
    key[0], value[0] = 7.0, 50.0
    key[1], value[1] = -1e9, -50.0
    query = np.concatenate([query, np.linspace(-3, 10, 600), [1e9, -1e9, 1e15], np.full(30, 7.0)])
    check(query, key, value, kernel=kernel, bandwidth=0.15)
    assert by_blocks["found"] > 300


@pytest.mark.parametrize("kernel", ["gaussian", "triweight", "boxcar"])
def test_weights_of_any_size(kernel, by_blocks):
    query, key, value, generator = make_rows()
    wide = 10.0 ** generator.uniform(-12, 12, len(key))
    for weight in (wide, (value > 0.2) * 1.0, np.where(value > 1.0, 1.0, 1e-40)):
        check(query, key, value, kernel=kernel, bandwidth=0.2, key_weight=weight)


def test_the_level_zero_is_the_least_value_that_counts(by_blocks):
    query, key, value, _ = make_rows()
    for kernel in ("gaussian", "epanechnikov"):
        check(query, key, value, [0.0, 0.5], kernel=kernel, bandwidth=0.1)
    assert by_blocks["found"] == 0


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "tricube"])
def test_the_same_bits_however_it_is_cut(kernel, by_blocks, monkeypatch):
    query, key, value, _ = make_rows(n=6000, m=4000)
    query, levels = 0.9 * query, [0.4983, 0.9017, 0.0123]
    options = {"kernel": kernel, "bandwidth": 0.03}
    expected = pool_quantile(query, key, value, levels, **options)
    for n_jobs in (2, 3):
        np.testing.assert_array_equal(pool_quantile(query, key, value, levels, n_jobs=n_jobs, **options), expected)
    for name, size in SMALL.items():
        monkeypatch.setattr(one_column_quantile, name, size)
    np.testing.assert_array_equal(pool_quantile(query, key, value, levels, **options), expected)
    monkeypatch.setattr(of_places, "is_quicker", lambda *_: False)
    np.testing.assert_array_equal(pool_quantile(query, key, value, levels, **options), expected)


def test_levels_may_differ_and_draws_are_rows(by_blocks):
    query, key, value, generator = make_rows(m=600)
    problem = Problem.from_arrays(query, key, value, bandwidth=0.2)
    level = generator.uniform(size=(600, 3))
    found = KernelWeights.of(problem, Recipe.of()).places(np.arange(len(key)), level)
    total = np.cumsum(pooling_weights(query, key, bandwidth=0.2), axis=1)
    expected = np.stack([np.argmax(total >= column[:, None], axis=1) for column in level.T], axis=1)
    np.testing.assert_array_equal(found, expected)
    assert by_blocks["left"] == 0


def test_what_has_no_blocks_goes_down_the_tree(by_blocks):
    query, key, value, generator = make_rows(m=60)
    assert smoothness_of(get_kernel("laplace")) is None
    check(query, key, value, kernel="laplace", bandwidth=0.2)
    check(query, key, value, kernel=make_kernel("own", lambda u: 1 / (1 + u) ** 4), bandwidth=0.2)
    check(query, key, value, bandwidth=0.2, attn_mask=generator.random((60, len(key))) < 0.5)
    check(np.stack([query, query], axis=1), np.stack([key, -key], axis=1), value, bandwidth=0.4)
    code, table = generator.integers(0, 2, (len(key), 1)), np.eye(2)
    problem = Problem.from_arrays(query, key, value, bandwidth=0.2)
    problem = problem.with_factors(Factors(code[:60], code, (table,), (np.zeros_like(table),)))
    assert KernelWeights.of(problem, Recipe.of()).places(np.argsort(value), np.full((60, 1), 0.5)).min() >= 0
    assert by_blocks == {"found": 0, "left": 0}


def test_blocks_are_taken_where_places_are_many():
    generator = np.random.default_rng(0)
    key, places = generator.uniform(size=100_000), generator.uniform(size=100_000)
    for h in (1e-4, 0.005, 0.2):
        many = Problem.from_arrays(places, key, key, bandwidth=h)
        assert one_column_quantile.is_quicker(many, 3)
        assert not one_column_quantile.is_quicker(many.block(slice(0, 20)), 3)
    assert not one_column_quantile.is_quicker(Problem.from_arrays(places, key, key, kernel="laplace"), 3)
