"""Conditional quantiles: every answer is that of a table of weights, sorted by value, whichever way is taken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernpool import EmptyWindowWarning, Problem, kernel_names, make_kernel, pool_quantile, pooling_weights
from kernpool.core import Factors
from kernpool.distribution import KernelWeights, weighted_quantile
from kernpool.distribution import weighted_quantile as of_places
from kernpool.kernels import categorical_kernel_names, get_categorical_kernel
from kernpool.pooling import Recipe
from kernpool.pooling.weights import weight_tables
from tests.support.dense_quantiles import assert_quantiles
from tests.support.ordered_sums import never_by_table

LEVELS = [0.5, 0.0, 0.9, 0.05, 1.0, 0.25]  # in no order


@pytest.fixture(params=["dense", "loops", "descent"])
def way(request, monkeypatch):
    """Few pairs are done densely; as many would be, loops and the tree have to find the same."""
    if request.param != "dense":
        never_by_table(monkeypatch)
    if request.param == "descent":
        monkeypatch.setattr(weighted_quantile, "FEWEST_KEYS", 7)
        monkeypatch.setattr(weighted_quantile, "QUICK_PAIRS", 1)
        monkeypatch.setattr(weighted_quantile, "PAIR_BY_PAIR", frozenset())
    return request.param


def make_rows(n=160, m=25, d=1, seed=0, ties=True):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, d)), generator.uniform(-1.2, 1.2, (m, d))
    value = np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n)
    return query, key, np.round(value, 1) if ties else value, generator


def check(query, key, value, **options):
    found = pool_quantile(query, key, value, LEVELS, empty="zero", **options)
    weights = pooling_weights(query, key, empty="zero", **options)
    assert_quantiles(found, weights, value, LEVELS, empty=0.0)


@pytest.mark.covering
@pytest.mark.parametrize(
    "situation", ["plain", "weights", "self", "mask", "bias", "large bias", "small bias", "weights and self"]
)
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("composition", ["radial", "product"])
@pytest.mark.parametrize("kernel", kernel_names())
def test_every_quantile_is_that_of_the_table_of_weights(kernel, composition, columns, situation, way):
    query, key, value, generator = make_rows(d=columns)
    options = {"kernel": kernel, "composition": composition, "bandwidth": 0.4 if columns == 1 else 0.6}
    if "weights" in situation:
        options["key_weight"] = generator.integers(0, 4, len(key)).astype(float)
    if "self" in situation:
        query = key[:25]
        options |= {"exclude_self": True, "self_index": np.arange(25)}
    if situation == "mask":
        options["attn_mask"] = generator.random((len(query), len(key))) < 0.5
    if "bias" in situation:
        level = {"large bias": 800.0, "small bias": -800.0}.get(situation, 0.0)
        options["attn_mask"] = level + generator.normal(size=(len(query), len(key)))
    check(query, key, value, **options)


def test_a_kernel_of_the_users_own(way):
    query, key, value, _ = make_rows()
    check(query, key, value, kernel=make_kernel("slow", lambda u: 1 / (1 + u) ** 4), bandwidth=0.3)


@pytest.mark.parametrize("name", categorical_kernel_names())
def test_categorical_columns(name, way):
    query, key, value, generator = make_rows(n=300)
    table = categorical_table(name)
    code, asked = generator.integers(0, 4, (300, 1)), generator.integers(-1, 4, (len(query), 1))
    problem = Problem.from_arrays(query, key, value, bandwidth=0.3)
    problem = problem.with_factors(Factors(asked, code, (table,), (np.zeros_like(table),)))
    check_problem(problem, value)


def categorical_table(name):
    kernel = get_categorical_kernel(name)
    return kernel.table(np.arange(4.0) if kernel.ordered else 4, 0.3)


def test_groups_that_are_left_out(way):
    query, key, value, generator = make_rows(n=300)
    asked, code = generator.integers(-1, 5, len(query)), generator.integers(0, 5, 300)
    check_problem(Problem.from_arrays(query, key, value, bandwidth=0.3).with_groups(asked, code), value)


def check_problem(problem, value):
    order, level = np.argsort(value, kind="stable"), np.tile(LEVELS, (len(problem.query), 1))
    places = KernelWeights.of(problem, Recipe.of()).places(order, level)
    assert places.min() >= 0
    assert_quantiles(value[places], weight_tables(lambda _: problem)[0], value, LEVELS)


def test_more_columns_than_profiles_can_be_multiplied_in(way):
    query, key, value, _ = make_rows(n=300, d=7)
    check(query, key, value, kernel="triweight", composition="product", bandwidth=1.7)


@pytest.mark.parametrize("where", [40.0, 1e5, 1e7, 1e9, 1e15])
@pytest.mark.parametrize("ties", [1, 10])
def test_far_away_the_nearest_keys_decide(where, ties, way):
    _, key, value, _ = make_rows()
    key[:ties], key[ties : 2 * ties] = 1.5, -1.5
    check(np.array([[-where], [where]]), key, value, bandwidth=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("digits", [1, 6])
def test_windows_that_are_empty_have_the_quantiles_of_the_nearest_keys(digits, way):
    """On a grid several are nearest, in a limit of bandwidths whose logarithms of weights have no digits to spare."""
    generator = np.random.default_rng(0)
    key, value = np.round(generator.uniform(size=(200, 1)), digits), generator.normal(size=200)
    query = np.round(generator.uniform(-1, 2, size=(150, 1)), digits + 1)
    options = {"kernel": "epanechnikov", "bandwidth": 0.002, "empty": "nearest"}
    found = pool_quantile(query, key, value, LEVELS, **options)
    assert_quantiles(found, pooling_weights(query, key, **options), value, LEVELS)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("columns", [1, 2])
def test_halves_of_the_keys_may_have_no_weight(kernel, columns, way):
    query, key, value, _ = make_rows(d=columns)
    for weight in ((value > 0.2) * 1.0, np.where(value > 0.2, 1.0, 1e-40), np.where(value > 0.2, 0.0, 1e-40)):
        check(query, key, value, kernel=kernel, bandwidth=0.6, key_weight=weight)


def test_requests_that_rounding_leads_past_all_keys_find_the_last_that_counts(monkeypatch):
    """More is needed than there is, and the descent comes to nodes that are empty, round after round."""
    never_by_table(monkeypatch)
    for name, value in (("FEWEST_KEYS", 7), ("QUICK_PAIRS", 1), ("PAIR_BY_PAIR", frozenset())):
        monkeypatch.setattr(weighted_quantile, name, value)
    monkeypatch.setattr(of_places, "SLACK", -1e-13)
    rounds, nodes = [], weighted_quantile.SkippedRange.nodes
    monkeypatch.setattr(
        weighted_quantile.SkippedRange, "nodes", lambda self, some: rounds.append(len(some)) or nodes(self, some)
    )
    query, key, value, _ = make_rows(ties=False)
    for kernel in ("epanechnikov", "gaussian", "triangular"):
        check(query, key, value, kernel=kernel, bandwidth=0.3)
    assert max(rounds) > 0


@pytest.mark.parametrize("weight", [None, 1 / 3, 0.1])
@pytest.mark.parametrize("kernel", ["constant", "gaussian", "cosine"])
def test_equal_weights_meet_levels_exactly(kernel, weight, way):
    for n in (3, 30, 300, 3000):
        value, weights = np.arange(float(n)), None if weight is None else np.full(n, weight)
        for q in (0.0, 0.1234, 0.7):
            found = pool_quantile([q], np.zeros(n), value, np.arange(1, n + 1) / n, kernel=kernel, key_weight=weights)
            np.testing.assert_array_equal(found[0], value)
        if kernel == "constant" and weight is None:
            expected = np.quantile(value, LEVELS, method="inverted_cdf")
            np.testing.assert_array_equal(pool_quantile([0.0], np.zeros(n), value, LEVELS, kernel=kernel)[0], expected)


def test_levels_in_float32_are_what_they_are_written_as():
    levels = np.array([0.1, 0.3, 0.7], dtype=np.float32)
    assert pool_quantile([0.0], np.zeros(30), np.arange(30.0), levels, kernel="constant").tolist() == [[2.0, 8.0, 20.0]]


def test_a_mask_of_one_row_is_not_written_out_for_each_query():
    query, key, value, generator = make_rows(n=300, m=40)
    mask = generator.random((1, 300)) < 0.5
    found = pool_quantile(query, key, value, LEVELS, attn_mask=mask, bandwidth=0.3)
    np.testing.assert_array_equal(found, pool_quantile(query, key[mask[0]], value[mask[0]], LEVELS, bandwidth=0.3))
    problem = Problem.from_arrays(query, key, value, attn_mask=np.broadcast_to(mask, (40, 300)))
    assert problem.block(slice(None), np.arange(10)).attn_mask.strides[0] == 0


def test_constant_values_and_a_single_key(way):
    np.testing.assert_array_equal(pool_quantile([0.0, 3.0], [0.0, 1.0], [4.0, 4.0], [0.1, 0.9]), np.full((2, 2), 4.0))
    assert pool_quantile([[5.0]], [[0.0]], [0.1]).tolist() == [0.1]


def test_a_weight_of_three_is_three_rows(way):
    query, key, value, generator = make_rows(ties=False)
    times = generator.integers(0, 4, len(key))
    weighted = pool_quantile(query, key, value, LEVELS, bandwidth=0.3, key_weight=times)
    repeated = pool_quantile(query, np.repeat(key, times, axis=0), np.repeat(value, times), LEVELS, bandwidth=0.3)
    np.testing.assert_array_equal(weighted, repeated)


@settings(max_examples=25)
@given(
    levels=st.lists(st.floats(0, 1), min_size=2, max_size=5),
    seed=st.integers(0, 1000),
    shift=st.sampled_from([0.0, 1e9, -3e-7]),
)
def test_monotone_in_the_level_and_equivariant(levels, seed, shift):
    query, key, value, _ = make_rows(n=40, m=6, seed=seed)
    levels = sorted(levels)
    found = pool_quantile(query, key, value, levels, bandwidth=0.3)
    assert (np.diff(found, axis=1) >= 0).all()
    np.testing.assert_array_equal(pool_quantile(query, key, np.exp(value) + shift, levels, bandwidth=0.3),
                                  np.exp(found) + shift)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["sweep", "kd_tree", "brute", "auto"])
def test_a_large_problem_compared_in_full(algorithm):
    query, key, value, _ = make_rows(n=6000, m=500, ties=False)
    options = {"bandwidth": 0.02, "kernel": "gaussian"}
    found = pool_quantile(query, key, value, LEVELS, algorithm=algorithm, **options)
    assert_quantiles(found, pooling_weights(query, key, **options), value, LEVELS)


@pytest.mark.slow
def test_the_tree_is_gone_down_where_sums_are_quick(monkeypatch):
    query, key, value, _ = make_rows(n=4000, m=3000, ties=False)
    monkeypatch.setattr(weighted_quantile, "QUICK_PAIRS", 1 << 16)
    kept: list[slice] = []
    scan = weighted_quantile.Bisection._scan_keys
    monkeypatch.setattr(
        weighted_quantile.Bisection,
        "_scan_keys",
        lambda self, leaves, *more: kept.extend(leaf.keys for leaf in leaves) or scan(self, leaves, *more),
    )
    found = pool_quantile(
        query, key, value, LEVELS, bandwidth=0.02, algorithm="sweep"
    )  # of so few rows auto takes brute
    assert max(keys.stop - keys.start for keys in kept) <= 512
    assert_quantiles(found, pooling_weights(query, key, bandwidth=0.02), value, LEVELS)


def test_the_same_bits_for_any_number_of_threads_and_calls():
    query, key, value, _ = make_rows(n=5000, m=800, ties=False)
    found = [pool_quantile(query, key, value, LEVELS, bandwidth=0.05, n_jobs=n) for n in (1, 2, 3, 1)]
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)


def test_shapes_types_and_batches():
    query, key, value, generator = make_rows()
    two = np.column_stack([value, -value])
    assert pool_quantile(query, key, value).shape == (25,)
    assert pool_quantile(query, key, value, [0.5]).shape == (25, 1)
    both = pool_quantile(query, key, two, [0.1, 0.6])
    assert both.shape == (25, 2, 2)
    np.testing.assert_array_equal(both[:, 1], pool_quantile(query, key, -value, [0.1, 0.6]))
    narrow = pool_quantile(query.astype(np.float32), key.astype(np.float32), value.astype(np.float32))
    assert narrow.dtype == np.float32
    assert np.isin(narrow, value.astype(np.float32)).all()
    batched = generator.normal(size=(3, 4, 1))
    found = pool_quantile(batched, key, value, [0.2, 0.8])
    assert found.shape == (3, 4, 2)
    np.testing.assert_array_equal(found[1], pool_quantile(batched[1], key, value, [0.2, 0.8]))


def test_progress_ends_where_it_should():
    query, key, value, _ = make_rows(n=5000, m=800)
    seen = []
    pool_quantile(query, key, np.column_stack([value, value]), bandwidth=0.05, progress=lambda *a: seen.append(a))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)


def test_empty_windows():
    key, value = [0.0, 1.0, 1.0, 9.0], [3.0, 1.0, 2.0, 8.0]
    options = {"kernel": "boxcar", "bandwidth": 0.5}
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries have no key with positive weight"):
        assert np.isnan(pool_quantile([0.0, 4.0], key, value, **options)).tolist() == [False, True]
    assert pool_quantile([4.0], key, value, [0.5, 1.0], empty="nearest", **options).tolist() == [[1.0, 2.0]]
    assert pool_quantile([4.0], key, value, [0.5, 1.0], empty="mean", **options).tolist() == [[2.0, 8.0]]
    with pytest.raises(ValueError, match="no key with positive weight"):
        pool_quantile([4.0], key, value, empty="raise", **options)


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        (50, "levels must be between 0 and 1, got 50.0; a median is 0.5, not 50"),
        ([0.1, -0.2], "levels must be between 0 and 1, got -0.2"),
        ([0.1, np.nan], "levels"),
        ([], "levels must be one number or a list of them"),
        ([[0.1]], "levels must be one number or a list of them"),
    ],
)
def test_levels_that_are_none(levels, message):
    with pytest.raises(ValueError, match=message):
        pool_quantile([0.0], [0.0], [1.0], levels)


def test_levels_of_another_kind():
    with pytest.raises(TypeError, match="levels"):
        pool_quantile([0.0], [0.0], [1.0], "median")
