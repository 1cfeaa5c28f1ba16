"""Conditional distribution functions: every answer is that of a table of weights, whichever way is taken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernpool import (
    EmptyWindowWarning,
    Problem,
    kernel_names,
    make_kernel,
    pool_cdf,
    pool_quantile,
    pooling_weights,
)
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Factors
from kernpool.distribution import weighted_cdf
from kernpool.distribution.weighted_cdf import ranks, two_sided_sums
from kernpool.kernels import categorical_kernel_names, get_categorical_kernel
from kernpool.pooling import Recipe
from kernpool.pooling.weights import weight_tables
from tests.support.dense_distribution import dense_cdf
from tests.support.ordered_sums import never_by_table

THRESHOLDS = [0.3, -99.0, -0.4, 99.0, 0.3, 0.95]  # in no order; values are rounded to tenths


@pytest.fixture(params=["tables", "sums"])
def way(request, monkeypatch):
    """Few pairs are done by tables; as many would be, sums over ranges and down the tree have to find the same."""
    if request.param == "sums":
        never_by_table(monkeypatch)
        monkeypatch.setattr(weighted_cdf, "FEWEST_KEYS", 7)
        monkeypatch.setattr(weighted_cdf, "QUICK_PAIRS", 1)
    return request.param


def make_rows(n=160, m=25, d=1, seed=0):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, d)), generator.uniform(-1.2, 1.2, (m, d))
    value = np.round(np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), 1)
    return query, key, value, generator


def check(query, key, value, **options):
    generator = np.random.default_rng(7)
    weights = pooling_weights(query, key, empty="zero", **options)
    own = np.round(generator.normal(size=(len(query), 3)), 1)
    for y in (np.array(THRESHOLDS), own):
        found = pool_cdf(query, key, value, y, empty="zero", **options)
        assert_shares(found, dense_cdf(weights, value, y), y)


def assert_shares(found, expected, y):
    np.testing.assert_allclose(found, np.where(np.isnan(expected), y >= 0, expected), rtol=0, atol=1e-12)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    order = np.argsort(np.broadcast_to(y, found.shape), axis=1)
    assert (np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= 0).all()
    np.testing.assert_array_equal(found[expected == 0], 0.0)  # exactly: below all keys that count
    everything = np.broadcast_to(y, found.shape) == 99.0
    np.testing.assert_array_equal(found[everything], 1.0)


@pytest.mark.covering
@pytest.mark.parametrize("situation", ["plain", "weights", "self", "mask", "bias", "weights and self"])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("composition", ["radial", "product"])
@pytest.mark.parametrize("kernel", kernel_names())
def test_every_share_is_that_of_the_table_of_weights(kernel, composition, columns, situation, way):
    query, key, value, generator = make_rows(d=columns)
    options = {"kernel": kernel, "composition": composition, "bandwidth": 0.4 if columns == 1 else 0.6}
    if "weights" in situation:
        options["key_weight"] = generator.integers(0, 4, len(key)).astype(float)
    if "self" in situation:
        query = key[:25]
        options |= {"exclude_self": True, "self_index": np.arange(25)}
    if situation == "mask":
        options["attn_mask"] = generator.random((len(query), len(key))) < 0.5
    if situation == "bias":
        options["attn_mask"] = 800.0 + generator.normal(size=(len(query), len(key)))
    check(query, key, value, **options)


def test_a_kernel_of_the_users_own(way):
    query, key, value, _ = make_rows()
    check(query, key, value, kernel=make_kernel("slow", lambda u: 1 / (1 + u) ** 4), bandwidth=0.3)


@pytest.mark.parametrize("name", categorical_kernel_names())
def test_categorical_columns(name, way):
    query, key, value, generator = make_rows(n=300)
    kernel = get_categorical_kernel(name)
    table = kernel.table(np.arange(4.0) if kernel.ordered else 4, 0.3)
    code, asked = generator.integers(0, 4, (300, 1)), generator.integers(-1, 4, (len(query), 1))
    problem = Problem.from_arrays(query, key, value, bandwidth=0.3)
    check_problem(problem.with_factors(Factors(asked, code, (table,), (np.zeros_like(table),))), value)


def test_groups_that_are_left_out(way):
    query, key, value, generator = make_rows(n=300)
    asked, code = generator.integers(-1, 5, len(query)), generator.integers(0, 5, 300)
    check_problem(Problem.from_arrays(query, key, value, bandwidth=0.3).with_groups(asked, code), value)


def check_problem(problem, value):
    order, generator = np.argsort(value, kind="stable"), np.random.default_rng(3)
    weights = weight_tables(lambda _: problem)[0]
    for y in (np.array([THRESHOLDS]), np.round(generator.normal(size=(len(problem.query), 2)), 1)):
        found = two_sided_sums(Recipe.of(), problem, order, ranks(value[order], y)).share(y)
        assert_shares(found, dense_cdf(weights, value, y), y)


@pytest.mark.parametrize("where", [40.0, 1e5, 1e9, 1e15])
@pytest.mark.parametrize("ties", [1, 10])
def test_far_away_the_nearest_keys_decide(where, ties, way):
    _, key, value, _ = make_rows()
    key[:ties], key[ties : 2 * ties] = 1.5, -1.5
    check(np.array([[-where], [where]]), key, value, bandwidth=0.2)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_sides_of_a_threshold_may_have_no_weight(kernel, way):
    query, key, value, _ = make_rows()
    for weight in ((value > 0.2) * 1.0, np.where(value > 0.2, 1.0, 1e-40), np.where(value > 0.2, 0.0, 1e-40)):
        check(query, key, value, kernel=kernel, bandwidth=0.6, key_weight=weight)


def test_within_a_window_shares_are_exactly_none_and_all(way):
    _, key, value, _ = make_rows()
    value = value + 10.0 * (key[:, 0] > 0)  # another range of values on either side
    found = pool_cdf([[-0.6], [0.6]], key, value, [5.0], kernel="triangular", bandwidth=0.3)
    assert found.tolist() == [[1.0], [0.0]]


def test_small_shares_have_all_of_their_digits(way):
    key, value = np.arange(20.0)[:, None], np.arange(20.0)
    found = pool_cdf([[12.0]], key, value, [2.0, 5.0], bandwidth=1.0)
    np.testing.assert_allclose(found, dense_cdf(pooling_weights([[12.0]], key), value, [2.0, 5.0]), rtol=1e-12)
    assert found[0, 0] < 1e-20


def test_a_weight_of_three_is_three_rows(way):
    query, key, value, generator = make_rows()
    times = generator.integers(0, 4, len(key))
    weighted = pool_cdf(query, key, value, THRESHOLDS, bandwidth=0.3, key_weight=times)
    repeated = pool_cdf(query, np.repeat(key, times, axis=0), np.repeat(value, times), THRESHOLDS, bandwidth=0.3)
    np.testing.assert_allclose(weighted, repeated, rtol=0, atol=1e-13)


@settings(max_examples=25)
@given(levels=st.lists(st.floats(0.001, 0.999), min_size=1, max_size=4), seed=st.integers(0, 1000))
def test_it_is_the_inverse_of_quantiles(levels, seed):
    """Q(tau) is the least value at which F is tau or more."""
    query, key, value, _ = make_rows(n=40, m=6, seed=seed)
    found = pool_quantile(query, key, value, levels, bandwidth=0.3)
    at, before = (pool_cdf(query, key, value, y, bandwidth=0.3) for y in (found, np.nextafter(found, -np.inf)))
    assert (at >= np.array(levels) - 1e-13).all()
    assert (before < np.array(levels) + 1e-13).all()


@pytest.mark.parametrize("algorithm", ["sweep", "brute", "auto", "reference"])
def test_a_large_problem_compared_in_full(algorithm):
    query, key, value, generator = make_rows(n=3000, m=150)
    options = {"bandwidth": 0.02, "algorithm": algorithm}
    weights = pooling_weights(query, key, bandwidth=0.02)
    for y in (np.linspace(-2, 2, 9), generator.normal(size=(150, 2))):
        found = pool_cdf(query, key, value, y, **options)
        np.testing.assert_allclose(found, dense_cdf(weights, value, y), rtol=0, atol=1e-12)


def test_every_pair_is_looked_at_about_once_in_several_columns(monkeypatch):
    """Halves on either side of a rank are disjoint, so the way down the tree costs no more than one pass."""
    pairs, sum_problem = [], weighted_cdf.sum_problem

    def counting(part, *arguments, **options):
        pairs.append(np.prod(part.shape))
        return sum_problem(part, *arguments, **options)

    monkeypatch.setattr(weighted_cdf, "sum_problem", counting)
    monkeypatch.setattr(
        weighted_cdf, "QUICK_PAIRS", 1
    )  # or so few pairs would be looked through at once, on both sides
    query, key, value, generator = make_rows(n=4000, m=100, d=2)
    pool_cdf(query, key, value, generator.normal(size=(100, 1)), bandwidth=0.3)
    assert sum(pairs) <= 1.3 * 100 * 4000


def test_the_same_bits_for_any_number_of_threads():
    query, key, value, generator = make_rows(n=4000, m=300)
    for y in (np.linspace(-2, 2, 5), generator.normal(size=(300, 1))):
        found = [pool_cdf(query, key, value, y, bandwidth=0.05, n_jobs=n) for n in (1, 2, 3)]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


def test_named_algorithms_do_what_they_can_under_masks():
    """Keys of a leaf go under a mask, which a sweep does not do; the rest of the tree is still its own."""
    assert not ALGORITHMS["sweep"].attn_mask
    query, key, value, generator = make_rows(n=2000, m=100)
    y = generator.normal(size=(100, 1))
    found = [pool_cdf(query, key, value, y, bandwidth=0.3, algorithm=name) for name in ("sweep", "auto")]
    np.testing.assert_allclose(*found, rtol=0, atol=1e-13)


def test_shapes_and_batches():
    query, key, value, generator = make_rows()
    assert pool_cdf(query, key, value, 0.0).shape == (25,)
    assert pool_cdf(query, key, value, [0.0]).shape == (25, 1)
    assert pool_cdf(query, key, value[:, None], [0.0, 1.0]).shape == (25, 2)
    assert pool_cdf(query, key, value, np.zeros((25, 4))).shape == (25, 4)
    batched = generator.normal(size=(3, 4, 1))
    found = pool_cdf(batched, key, value, [0.2, 0.8])
    assert found.shape == (3, 4, 2)
    np.testing.assert_array_equal(found[1], pool_cdf(batched[1], key, value, [0.2, 0.8]))


def test_infinite_thresholds():
    query, key, value, _ = make_rows()
    found = pool_cdf(query, key, value, [-np.inf, np.inf])
    np.testing.assert_array_equal(found, np.tile([0.0, 1.0], (25, 1)))


def test_empty_windows():
    key, value = [0.0, 1.0, 1.0, 9.0], [3.0, 1.0, 2.0, 8.0]
    options = {"kernel": "boxcar", "bandwidth": 0.5}
    with pytest.warns(EmptyWindowWarning, match="1 of 2 queries have no key with positive weight"):
        assert np.isnan(pool_cdf([0.0, 4.0], key, value, 2.0, **options)).tolist() == [False, True]
    assert pool_cdf([4.0], key, value, [1.0, 2.0], empty="nearest", **options).tolist() == [[0.5, 1.0]]
    assert pool_cdf([4.0], key, value, [1.0, 3.0], empty="mean", **options).tolist() == [[0.25, 0.75]]
    assert pool_cdf([4.0], key, value, [-1.0, 0.0], empty="zero", **options).tolist() == [[0.0, 1.0]]
    with pytest.raises(ValueError, match="no key with positive weight"):
        pool_cdf([4.0], key, value, 0.0, empty="raise", **options)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([[0.1], [0.2], [0.3]], ValueError, r"for each row its own, got shape \(3, 1\)"),
        ([np.nan], ValueError, "y"),
        (np.zeros((1, 1, 1)), ValueError, r"got shape \(1, 1, 1\)"),
        ("median", TypeError, "y"),
    ],
)
def test_thresholds_that_are_none(y, error, message):
    with pytest.raises(error, match=message):
        pool_cdf([0.0, 1.0], [0.0], [1.0], y)


def test_what_is_refused():
    with pytest.raises(ValueError, match="value must be one column, got 2"):
        pool_cdf([0.0], [0.0], [[1.0, 2.0]], 1.0)
    with pytest.raises(ValueError, match="sweep"):
        pool_cdf([[0.0, 0.0]], [[0.0, 1.0]], [1.0], 1.0, algorithm="sweep")
