"""Distribution functions and quantiles over chunks: those of the same rows in arrays."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import (
    EmptyWindowWarning,
    NadarayaWatsonRegressor,
    kernel_names,
    make_kernel,
    open_chunks,
    pool_cdf,
    pool_quantile,
    pooling_weights,
)
from kernpool.distribution import multipass_quantile, weighted_cdf
from kernpool.pooling import ChunkPairs
from tests.support.dense_quantiles import assert_quantiles
from tests.support.ordered_sums import never_by_table

THRESHOLDS = [0.3, -99.0, -0.4, 99.0, 0.3, 0.95]
LEVELS = [0.4983, 0.0, 0.9017, 0.0511, 1.0, 0.2571]  # that no few equal weights meet


def hold_few_rows(monkeypatch, way):
    """So few rows may be held that it takes some rounds; masses come from sums, or from tables."""
    if way == "all rows":
        return
    for name, size in {"HELD_ROWS": 40, "PIECES": 12, "MOST_PIECES": 4, "SAMPLED_ROWS": 60}.items():
        monkeypatch.setattr(multipass_quantile, name, size)
    if way == "few rows":
        monkeypatch.setattr(multipass_quantile, "DENSE_PAIRS", 0)


WAYS = ["few rows", "tables", "all rows"]


@pytest.fixture(params=[("cdf", "tables"), ("cdf", "sums"), *(("quantile", way) for way in WAYS)], ids=" ".join)
def asked(request, monkeypatch):
    asked, way = request.param
    if asked == "quantile":
        hold_few_rows(monkeypatch, way)
    elif way == "sums":
        never_by_table(monkeypatch)
        monkeypatch.setattr(weighted_cdf, "FEWEST_KEYS", 7)
        monkeypatch.setattr(weighted_cdf, "QUICK_PAIRS", 1)
    return asked


def make_rows(n=300, m=30, d=1, seed=0):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, d)), generator.uniform(-1.2, 1.2, (m, d))
    return query, key, np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), generator


def cut(key, value, weight=None):
    """Cut rows into chunks, of which one is empty and one has a single row."""
    ends = [slice(a, b) for a, b in pairwise([0, 75, 75, 76, 226, len(key)])]
    columns = (key, value) if weight is None else (key, value, weight)
    return open_chunks([tuple(column[part] for column in columns) for part in ends])


def check(asked, query, key, value, weight=None, empty="zero", **options):
    if asked == "quantile":
        found = pool_quantile(query, cut(key, value, weight), levels=LEVELS, empty=empty, **options)
        expected = pool_quantile(query, key, value, LEVELS, key_weight=weight, empty=empty, **options)
        some = [0, 2, 3, 5]
        assert_array_equal(found[:, some], expected[:, some])
        weights = pooling_weights(query, key, key_weight=weight, empty="zero", **options)
        if empty == "zero":
            assert_quantiles(found, weights, value, LEVELS, empty=0.0)
        return
    value = np.round(value, 1)
    own = np.round(np.random.default_rng(7).normal(size=(len(query), 3)), 1)
    for y in (THRESHOLDS, own):
        for smooth in ({}, {"y_bandwidth": 0.3}):
            found = pool_cdf(query, cut(key, value, weight), y=y, empty=empty, **smooth, **options)
            expected = pool_cdf(query, key, value, y, key_weight=weight, empty=empty, **smooth, **options)
            assert_allclose(found, expected, rtol=0, atol=1e-13)
            if not smooth:
                assert_array_equal(found[expected == 0], 0.0)
                assert_array_equal(found[expected == 1], 1.0)
                order = np.argsort(np.broadcast_to(y, found.shape), axis=1)
                assert (np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= 0).all()


@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", [*kernel_names(), make_kernel("slow", lambda u: 1 / (1 + u) ** 4)], ids=str)
def test_chunks_have_the_answers_of_arrays(kernel, columns, weighted, asked):
    query, key, value, generator = make_rows(d=columns)
    weight = generator.integers(0, 3, len(key)).astype(float) if weighted else None
    if weighted:
        weight[:75] = 0.0
    check(asked, query, key, value, weight, kernel=kernel, bandwidth=0.4 if columns == 1 else 0.8)


@pytest.mark.parametrize("what", ["ties", "one value", "outliers", "two values", "large"])
@pytest.mark.parametrize("way", WAYS)
def test_values_of_any_kind(what, way, monkeypatch):
    hold_few_rows(monkeypatch, way)
    query, key, value, generator = make_rows()
    value = {
        "ties": np.round(value, 1),
        "one value": np.full(len(value), 3.0),
        "outliers": value * 10.0 ** generator.integers(0, 200, len(value)),
        "two values": np.where(value > 0.7, 1.0, -1.0),
        "large": 1e15 + np.round(value * 100),
    }[what]
    found = pool_quantile(query, cut(key, value), levels=LEVELS, bandwidth=0.3)
    assert_quantiles(found, pooling_weights(query, key, bandwidth=0.3), value, LEVELS)


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero"])
def test_empty_windows(empty, asked):
    query, key, value, generator = make_rows()
    weight, query = generator.integers(1, 3, len(key)).astype(float), np.round(2 * query, 2)
    check(asked, query, np.round(key, 1), value, weight, kernel="epanechnikov", bandwidth=0.03, empty=empty)


def test_empty_windows_warn_or_are_refused(asked):
    query, key, value, _ = make_rows()
    ask, options = pool_quantile, {"kernel": "boxcar", "bandwidth": 0.1}
    if asked == "cdf":
        ask, options = pool_cdf, options | {"y": 0.1}
    query = 0.8 * query
    query[3] = 9.0
    with pytest.warns(EmptyWindowWarning, match="the first is query 3"):
        assert np.isnan(ask(query, cut(key, value), **options)[3])
    with pytest.raises(ValueError, match="no key with positive weight"):
        ask(query, cut(key, value), empty="raise", **options)


def test_passes_are_few(monkeypatch):
    """One where all rows may be held; where a hundredth may, rounds and then as many parts as there are."""
    query, key, value, _ = make_rows(n=20_000, m=10)
    answers = []
    ask = ChunkPairs.ask

    def counted(*given):
        answers.append(ask(*given))
        return answers[-1]

    monkeypatch.setattr(ChunkPairs, "ask", counted)
    chunks = open_chunks(key, value, rows=3000)
    expected = pool_quantile(query, chunks, levels=[0.1, 0.5], bandwidth=0.05)
    assert len(answers) == 1
    monkeypatch.setattr(multipass_quantile, "HELD_ROWS", 200)
    monkeypatch.setattr(multipass_quantile, "MOST_PIECES", 16)
    answers.clear()
    assert_array_equal(pool_quantile(query, chunks, levels=[0.1, 0.5], bandwidth=0.05), expected)
    assert 4 <= len(answers) <= 7
    held = [sum(len(chunk.key) for chunk in one) for one in answers if isinstance(one, list) and hasattr(one[0], "key")]
    assert held
    assert max(held) <= 200


def test_rounding_that_leads_too_far_is_taken_back(monkeypatch):
    """With more needed than there is, the last value that counts is found, whatever range that is in."""
    query, key, value, _ = make_rows()
    monkeypatch.setattr(multipass_quantile, "SLACK", -1e-13)
    for name, size in {"HELD_ROWS": 40, "PIECES": 12, "MOST_PIECES": 4}.items():
        monkeypatch.setattr(multipass_quantile, name, size)
    for kernel in ("epanechnikov", "gaussian", "triangular"):
        found = pool_quantile(query, cut(key, value), levels=[1.0, 0.5], kernel=kernel, bandwidth=0.3, empty="zero")
        weights = pooling_weights(query, key, kernel=kernel, bandwidth=0.3, empty="zero")
        assert_quantiles(found, weights, value, [1.0, 0.5], empty=0.0)


def test_progress_counts_the_rows_of_each_pass():
    query, key, value, _ = make_rows()
    seen = []
    pool_quantile(query, open_chunks(key, value, rows=100), bandwidth=0.3, progress=lambda *given: seen.append(given))
    assert seen == [(100, 300), (200, 300), (300, 300)]


def test_what_can_be_read_once_is_read_once():
    query, key, value, _ = make_rows()

    def once():
        return open_chunks(pair for pair in [(key[:100], value[:100]), (key[100:], value[100:])])

    found = pool_cdf(query, once(), y=THRESHOLDS, bandwidth=0.3)
    assert_allclose(found, pool_cdf(query, key, value, THRESHOLDS, bandwidth=0.3), rtol=0, atol=1e-13)
    for options in ({"kernel": "boxcar", "empty": "mean"}, {"kernel": "gaussian"}):
        with pytest.raises(ValueError, match="once more, which an iterator does not allow; give a list"):
            pool_cdf([[1e6]], once(), y=0.0, bandwidth=0.3, **options)


def test_quantiles_have_a_column_per_output_and_an_axis_of_levels():
    query, key, value, generator = make_rows(d=2)
    both = np.column_stack([value, generator.normal(size=len(value))])
    found = pool_quantile(query, cut(key, both), levels=[0.2, 0.6])
    assert_array_equal(found, pool_quantile(query, key, both, [0.2, 0.6]))
    assert pool_quantile(query, cut(key, value)).shape == (30,)
    assert pool_quantile(query, cut(key, value), levels=[0.5]).shape == (30, 1)
    assert pool_quantile(query, cut(key, both)).shape == (30, 2)


QUERY, KEY, VALUE, _ = make_rows()
ROWS, NOTHING, EMPTY = cut(KEY, VALUE), cut(KEY, VALUE, np.zeros(300)), np.zeros((0, 1))
MODEL = NadarayaWatsonRegressor(bandwidth=0.4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pool_cdf(QUERY, cut(KEY, np.c_[VALUE, VALUE]), y=0.0), ValueError, "value must be one column, got 2"),
        (lambda: pool_cdf(QUERY, ROWS), TypeError, "y must be given"),
        (lambda: pool_cdf(QUERY, KEY, y=0.0), TypeError, "value"),
        (lambda: pool_cdf(QUERY, ROWS, y=[]), ValueError, "y must hold thresholds, one at least"),
        (lambda: pool_cdf(QUERY, ROWS, y=np.zeros((3, 1))), ValueError, r"y\[:, None\]"),
        (lambda: pool_cdf(QUERY, ROWS, y=0.0, exclude_self=True), ValueError, "bring their own weights"),
        (lambda: pool_cdf(QUERY, ROWS, y=0.0, y_bandwidth=0.0), ValueError, "positive number.*got 0.0"),
        (lambda: pool_cdf(QUERY, ROWS, y=0.0, y_bandwidth="rule"), TypeError, "positive number here"),
        (lambda: pool_cdf(QUERY, NOTHING, y=0.0), ValueError, "no pairs of positive weight"),
        (lambda: pool_cdf(EMPTY, ROWS, y=0.0), ValueError, "query must have at least one row"),
        (
            lambda: MODEL.fit(ROWS).conditional_distribution(QUERY, y_bandwidth="rule").pdf(0.0),
            TypeError,
            r"positive number here, got 'rule'.*sample",
        ),
        (lambda: pool_quantile(QUERY, open_chunks(iter([(KEY, VALUE)]))), ValueError, "an iterator does not allow"),
        (lambda: pool_quantile(QUERY, ROWS, key_weight=np.ones(300)), ValueError, "chunks bring their own weights"),
        (lambda: pool_quantile(QUERY, KEY), TypeError, "value is missing"),
        (lambda: pool_quantile(QUERY, NOTHING), ValueError, "no pairs of positive weight"),
        (lambda: pool_quantile(EMPTY, ROWS), ValueError, "query must have at least one row"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
