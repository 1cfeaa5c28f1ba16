"""Conditional distribution functions and quantiles: those of a table of weights, whichever way is taken."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import EmptyWindowWarning, Problem, kernel_names, make_kernel, pool_cdf, pool_quantile, pooling_weights
from kernpool.algorithms import ALGORITHMS
from kernpool.core import Exclusion, Factors
from kernpool.distribution import weighted_cdf, weighted_quantile
from kernpool.distribution.weighted_cdf import ranks, two_sided_sums
from kernpool.distribution.weighted_quantile import KernelWeights, bare
from kernpool.kernels import categorical_kernel_names, get_categorical_kernel
from kernpool.pooling import Recipe
from kernpool.pooling.weights import weight_tables
from tests.support.dense_distribution import dense_cdf
from tests.support.dense_quantiles import assert_quantiles
from tests.support.ordered_sums import never_by_table
from tests.support.problems import with_products

THRESHOLDS = [0.3, -99.0, -0.4, 99.0, 0.3, 0.95]  # in no order; values are rounded to tenths
LEVELS = [0.5, 0.0, 0.9, 0.05, 1.0, 0.25]


def by_loops(monkeypatch, way):
    """Few pairs are done by tables; as many would be, loops, sums over ranges and the tree have to find the same."""
    if way != "tables":
        never_by_table(monkeypatch)
    if way == "tree":
        for module in (weighted_cdf, weighted_quantile):
            monkeypatch.setattr(module, "FEWEST_KEYS", 7)
            monkeypatch.setattr(module, "QUICK_PAIRS", 1)
        monkeypatch.setattr(weighted_quantile, "PAIR_BY_PAIR", frozenset())


@pytest.fixture(params=["cdf tables", "cdf tree", "quantile tables", "quantile loops", "quantile tree"])
def asked(request, monkeypatch):
    asked, way = request.param.split()
    by_loops(monkeypatch, way)
    return asked


def make_rows(n=160, m=25, d=1, seed=0, ties=True):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, d)), generator.uniform(-1.2, 1.2, (m, d))
    value = np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n)
    return query, key, np.round(value, 1) if ties else value, generator


def thresholds(m):
    return np.array(THRESHOLDS), np.round(np.random.default_rng(7).normal(size=(m, 3)), 1)


def check(asked, query, key, value, algorithm="auto", **options):
    weights = pooling_weights(query, key, empty="zero", **options)
    options |= {"empty": "zero", "algorithm": algorithm}
    if asked == "quantile":
        assert_quantiles(pool_quantile(query, key, value, LEVELS, **options), weights, value, LEVELS, empty=0.0)
        return
    for y in thresholds(len(query)):
        assert_shares(pool_cdf(query, key, value, y, **options), dense_cdf(weights, value, y), y)


def check_problem(asked, problem, value):
    order, weights = np.argsort(value, kind="stable"), weight_tables(lambda _: problem)[0]
    if asked == "quantile":
        places = KernelWeights(bare(problem), Recipe.of()).places(order, np.tile(LEVELS, (len(problem.query), 1)))
        assert places.min() >= 0
        assert_quantiles(value[places], weights, value, LEVELS)
        return
    for y in thresholds(len(problem.query)):
        y = np.atleast_2d(y)
        found = two_sided_sums(Recipe.of(), problem, order, ranks(value[order], y)).share(y)
        assert_shares(found, dense_cdf(weights, value, y), y)


def assert_shares(found, expected, y):
    assert_allclose(found, np.where(np.isnan(expected), y >= 0, expected), rtol=0, atol=1e-12)
    assert found.min() >= 0.0
    assert found.max() <= 1.0
    order = np.argsort(np.broadcast_to(y, found.shape), axis=1)
    assert (np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= 0).all()
    assert_array_equal(found[expected == 0], 0.0)  # exactly: below all keys that count
    everything = np.broadcast_to(y, found.shape) == 99.0
    assert_array_equal(found[everything], 1.0)


@pytest.mark.covering
@pytest.mark.parametrize(
    "situation", ["plain", "weights", "self", "mask", "bias", "large bias", "small bias", "weights and self"]
)
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", with_products(kernel_names()))
def test_every_answer_is_that_of_the_table_of_weights(kernel, columns, situation, asked):
    query, key, value, generator = make_rows(d=columns)
    options = {"kernel": kernel, "bandwidth": 0.4 if columns == 1 else 0.6}
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
    check(asked, query, key, value, **options)


def test_kernels_of_the_users_own_and_more_columns_than_profiles_can_be_multiplied_in(asked):
    check(asked, *make_rows()[:3], kernel=make_kernel("slow", lambda u: 1 / (1 + u) ** 4), bandwidth=0.3)
    check(asked, *make_rows(n=300, d=7)[:3], kernel="product triweight", bandwidth=1.7)


@pytest.mark.parametrize("name", [None, *categorical_kernel_names()])
def test_categorical_columns_and_groups_that_are_left_out(name, asked):
    query, key, value, generator = make_rows(n=300)
    problem = Problem.from_arrays(query, key, value, bandwidth=0.3)
    if name is None:
        problem = problem.excluding(generator.integers(-1, 5, len(query)), Exclusion(generator.integers(0, 5, 300)))
    else:
        kernel = get_categorical_kernel(name)
        table = kernel.table(np.arange(4.0) if kernel.ordered else 4, 0.3)
        code, given = generator.integers(0, 4, (300, 1)), generator.integers(-1, 4, (len(query), 1))
        problem = problem.with_factors(Factors(given, code, (table,), (np.zeros_like(table),)))
    check_problem(asked, problem, value)


@pytest.mark.parametrize("where", [40.0, 1e5, 1e7, 1e9, 1e15])
@pytest.mark.parametrize("ties", [1, 10])
def test_far_away_the_nearest_keys_decide(where, ties, asked):
    _, key, value, _ = make_rows()
    key[:ties], key[ties : 2 * ties] = 1.5, -1.5
    check(asked, np.array([[-where], [where]]), key, value, bandwidth=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("digits", [1, 6])
@pytest.mark.parametrize("way", ["tables", "loops", "tree"])
def test_windows_that_are_empty_have_the_quantiles_of_the_nearest_keys(digits, way, monkeypatch):
    """On a grid several are nearest, in a limit of bandwidths whose logarithms of weights have no digits to spare."""
    by_loops(monkeypatch, way)
    generator = np.random.default_rng(0)
    key, value = np.round(generator.uniform(size=(200, 1)), digits), generator.normal(size=200)
    query = np.round(generator.uniform(-1, 2, size=(150, 1)), digits + 1)
    options = {"kernel": "epanechnikov", "bandwidth": 0.002, "empty": "nearest"}
    found = pool_quantile(query, key, value, LEVELS, **options)
    assert_quantiles(found, pooling_weights(query, key, **options), value, LEVELS)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("columns", [1, 2])
def test_halves_of_the_keys_may_have_no_weight(kernel, columns, asked):
    query, key, value, _ = make_rows(d=columns)
    for weight in ((value > 0.2) * 1.0, np.where(value > 0.2, 1.0, 1e-40), np.where(value > 0.2, 0.0, 1e-40)):
        check(asked, query, key, value, kernel=kernel, bandwidth=0.6, key_weight=weight)


@pytest.mark.parametrize("way", ["tables", "tree"])
def test_shares_are_exactly_none_and_all_or_small_with_all_of_their_digits(way, monkeypatch):
    by_loops(monkeypatch, way)
    _, key, value, _ = make_rows()
    value = value + 10.0 * (key[:, 0] > 0)  # another range of values on either side
    found = pool_cdf([[-0.6], [0.6]], key, value, [5.0], kernel="triangular", bandwidth=0.3)
    assert found.tolist() == [[1.0], [0.0]]
    key, value = np.arange(20.0)[:, None], np.arange(20.0)
    found = pool_cdf([[12.0]], key, value, [2.0, 5.0], bandwidth=1.0)
    assert_allclose(found, dense_cdf(pooling_weights([[12.0]], key), value, [2.0, 5.0]), rtol=1e-12)
    assert found[0, 0] < 1e-20


def test_requests_that_rounding_leads_past_all_keys_find_the_last_that_counts(monkeypatch):
    """More is needed than there is, and the descent comes to nodes that are empty."""
    by_loops(monkeypatch, "tree")
    monkeypatch.setattr(weighted_quantile, "SLACK", -1e-13)
    for kernel in ("epanechnikov", "gaussian", "triangular"):
        check("quantile", *make_rows(ties=False)[:3], kernel=kernel, bandwidth=0.3)


@pytest.mark.parametrize("weight", [None, 1 / 3, 0.1])
@pytest.mark.parametrize("kernel", ["constant", "gaussian", "cosine"])
@pytest.mark.parametrize("way", ["tables", "loops", "tree"])
def test_equal_weights_meet_levels_exactly(kernel, weight, way, monkeypatch):
    by_loops(monkeypatch, way)
    for n in (3, 30, 300, 3000):
        value, weights = np.arange(float(n)), None if weight is None else np.full(n, weight)
        for q in (0.0, 0.1234, 0.7):
            found = pool_quantile([q], np.zeros(n), value, np.arange(1, n + 1) / n, kernel=kernel, key_weight=weights)
            assert_array_equal(found[0], value)
        if kernel == "constant" and weight is None:
            expected = np.quantile(value, LEVELS, method="inverted_cdf")
            assert_array_equal(pool_quantile([0.0], np.zeros(n), value, LEVELS, kernel=kernel)[0], expected)
    assert_array_equal(pool_quantile([0.0, 3.0], [0.0, 1.0], [4.0, 4.0], [0.1, 0.9]), np.full((2, 2), 4.0))
    assert pool_quantile([[5.0]], [[0.0]], [0.1]).tolist() == [0.1]


def test_levels_in_float32_are_what_they_are_written_as():
    levels = np.array([0.1, 0.3, 0.7], dtype=np.float32)
    assert pool_quantile([0.0], np.zeros(30), np.arange(30.0), levels, kernel="constant").tolist() == [[2.0, 8.0, 20.0]]


def test_a_mask_of_one_row_is_not_written_out_for_each_query():
    query, key, value, generator = make_rows(n=300, m=40)
    mask = generator.random((1, 300)) < 0.5
    found = pool_quantile(query, key, value, LEVELS, attn_mask=mask, bandwidth=0.3)
    assert_array_equal(found, pool_quantile(query, key[mask[0]], value[mask[0]], LEVELS, bandwidth=0.3))
    problem = Problem.from_arrays(query, key, value, attn_mask=np.broadcast_to(mask, (40, 300)))
    assert problem.block(slice(None), np.arange(10)).attn_mask.strides[0] == 0


@settings(max_examples=25)
@given(
    levels=st.lists(st.floats(0, 1), min_size=2, max_size=5),
    seed=st.integers(0, 1000),
    shift=st.sampled_from([0.0, 1e9, -3e-7]),
)
def test_quantiles_are_monotone_equivariant_and_the_inverse_of_functions(levels, seed, shift):
    """Q(tau) is the least value at which F is tau or more."""
    query, key, value, _ = make_rows(n=40, m=6, seed=seed)
    levels = sorted(levels)
    found = pool_quantile(query, key, value, levels, bandwidth=0.3)
    assert (np.diff(found, axis=1) >= 0).all()
    assert_array_equal(pool_quantile(query, key, np.exp(value) + shift, levels, bandwidth=0.3),
                                  np.exp(found) + shift)  # fmt: skip
    at, before = (pool_cdf(query, key, value, y, bandwidth=0.3) for y in (found, np.nextafter(found, -np.inf)))
    assert (at >= np.array(levels) - 1e-13).all()
    assert (before < np.array(levels) + 1e-13).all()


@pytest.mark.parametrize("algorithm", ["sweep", "kd_tree", "brute", "auto", "reference"])
@pytest.mark.parametrize("asked", ["cdf", pytest.param("quantile", marks=pytest.mark.slow)])
def test_a_large_problem_compared_in_full(asked, algorithm):
    n, m = (3000, 150) if asked == "cdf" or algorithm == "reference" else (4000, 300)
    check(asked, *make_rows(n=n, m=m, ties=False)[:3], bandwidth=0.02, algorithm=algorithm)


def test_every_pair_is_looked_at_about_once_in_several_columns(monkeypatch):
    """Halves on either side of a rank are disjoint, so the way down the tree costs no more than one pass."""
    pairs, sum_problem = [], weighted_cdf.sum_problem

    def counting(part, *arguments, **options):
        pairs.append(np.prod(part.shape))
        return sum_problem(part, *arguments, **options)

    monkeypatch.setattr(weighted_cdf, "sum_problem", counting)
    monkeypatch.setattr(weighted_cdf, "QUICK_PAIRS", 1)  # or so few would be looked through at once, on both sides
    query, key, value, generator = make_rows(n=4000, m=100, d=2)
    pool_cdf(query, key, value, generator.normal(size=(100, 1)), bandwidth=0.3)
    assert sum(pairs) <= 1.3 * 100 * 4000


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
    check("quantile", query, key, value, bandwidth=0.02, algorithm="sweep")  # of so few rows auto takes brute
    assert max(keys.stop - keys.start for keys in kept) <= 512


@pytest.mark.parametrize("ask", [pool_quantile, pool_cdf])
def test_the_same_bits_for_any_number_of_threads_and_calls(ask):
    query, key, value, generator = make_rows(n=5000, m=800, ties=ask is pool_cdf)
    for at in [LEVELS] if ask is pool_quantile else [np.linspace(-2, 2, 5), generator.normal(size=(800, 1))]:
        first, *others = [ask(query, key, value, at, bandwidth=0.05, n_jobs=n) for n in (1, 2, 3, 1)]
        for other in others:
            assert_array_equal(first, other)


def test_named_algorithms_do_what_they_can_under_masks():
    """Keys of a leaf go under a mask, which a sweep does not do; the rest of the tree is still its own."""
    assert not ALGORITHMS["sweep"].attn_mask
    query, key, value, generator = make_rows(n=2000, m=100)
    y = generator.normal(size=(100, 1))
    found = [pool_cdf(query, key, value, y, bandwidth=0.3, algorithm=name) for name in ("sweep", "auto")]
    assert_allclose(*found, rtol=0, atol=1e-13)


def test_shapes_types_and_batches():
    query, key, value, generator = make_rows()
    for ask in (pool_cdf, pool_quantile):
        assert ask(query, key, value, 0.5).shape == (25,)
        assert ask(query, key, value, [0.5]).shape == (25, 1)
        batched = generator.normal(size=(3, 4, 1))
        found = ask(batched, key, value, [0.2, 0.8])
        assert found.shape == (3, 4, 2)
        assert_array_equal(found[1], ask(batched[1], key, value, [0.2, 0.8]))
    assert pool_cdf(query, key, value, np.zeros((25, 4))).shape == (25, 4)
    assert pool_cdf(query, key, value[:, None], [0.2, 0.8]).shape == (25, 2)
    assert_array_equal(pool_cdf(query, key, value, [-np.inf, np.inf]), np.tile([0.0, 1.0], (25, 1)))
    both = pool_quantile(query, key, np.column_stack([value, -value]), [0.1, 0.6])
    assert both.shape == (25, 2, 2)
    assert_array_equal(both[:, 1], pool_quantile(query, key, -value, [0.1, 0.6]))
    narrow = pool_quantile(query.astype(np.float32), key.astype(np.float32), value.astype(np.float32))
    assert narrow.dtype == np.float32
    assert np.isin(narrow, value.astype(np.float32)).all()


def test_progress_ends_where_it_should():
    query, key, value, _ = make_rows(n=5000, m=800)
    seen = []
    pool_quantile(query, key, np.column_stack([value, value]), bandwidth=0.05, progress=lambda *a: seen.append(a))
    assert seen[-1][0] == seen[-1][1]
    assert seen == sorted(seen)


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (pool_quantile, {"nearest": ([0.5, 1.0], [1.0, 2.0]), "mean": ([0.5, 1.0], [2.0, 8.0])}),
        (
            pool_cdf,
            {
                "nearest": ([1.0, 2.0], [0.5, 1.0]),
                "mean": ([1.0, 3.0], [0.25, 0.75]),
                "zero": ([-1.0, 0.0], [0.0, 1.0]),
            },
        ),
    ],
)
def test_empty_windows(ask, expected):
    key, value = [0.0, 1.0, 1.0, 9.0], [3.0, 1.0, 2.0, 8.0]
    options = {"kernel": "boxcar", "bandwidth": 0.5}
    with pytest.warns(EmptyWindowWarning, match=r"1 of 2 queries \(.*\) have no key with positive weight"):
        assert np.isnan(ask([0.0, 4.0], key, value, 0.5, **options)).tolist() == [False, True]
    for empty, (at, answer) in expected.items():
        assert ask([4.0], key, value, at, empty=empty, **options).tolist() == [answer]
    with pytest.raises(ValueError, match="no key with positive weight"):
        ask([4.0], key, value, 0.5, empty="raise", **options)


@pytest.mark.parametrize(
    ("ask", "at", "error", "message"),
    [
        (pool_quantile, 50, ValueError, "levels must be between 0 and 1, got 50.0; a median is 0.5, not 50"),
        (pool_quantile, [0.1, -0.2], ValueError, "levels must be between 0 and 1, got -0.2"),
        (pool_quantile, [0.1, np.nan], ValueError, "levels"),
        (pool_quantile, [], ValueError, "levels must be one number or a list of them"),
        (pool_quantile, [[0.1]], ValueError, "levels must be one number or a list of them"),
        (pool_quantile, "median", TypeError, "levels"),
        (pool_cdf, [[0.1], [0.2], [0.3]], ValueError, r"for each row its own, got shape \(3, 1\)"),
        (pool_cdf, [np.nan], ValueError, "y"),
        (pool_cdf, np.zeros((1, 1, 1)), ValueError, r"got shape \(1, 1, 1\)"),
        (pool_cdf, "median", TypeError, "y"),
    ],
)
def test_levels_and_thresholds_that_are_none(ask, at, error, message):
    with pytest.raises(error, match=message):
        ask([0.0, 1.0], [0.0], [1.0], at)
    with pytest.raises(ValueError, match="value must be one column, got 2"):
        pool_cdf([0.0], [0.0], [[1.0, 2.0]], 1.0)
