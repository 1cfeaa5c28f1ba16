"""Distribution functions over chunks: those of the same rows in arrays."""

from itertools import pairwise

import numpy as np
import pytest

from kernpool import (
    EmptyWindowWarning,
    NadarayaWatsonRegressor,
    kernel_names,
    make_kernel,
    open_chunks,
    pool_cdf,
)
from kernpool.distribution import weighted_cdf
from tests.support.ordered_sums import never_by_table

THRESHOLDS = [0.3, -99.0, -0.4, 99.0, 0.3, 0.95]


@pytest.fixture(params=["tables", "sums"])
def way(request, monkeypatch):
    if request.param == "sums":
        never_by_table(monkeypatch)
        monkeypatch.setattr(weighted_cdf, "FEWEST_KEYS", 7)
        monkeypatch.setattr(weighted_cdf, "QUICK_PAIRS", 1)


def make_rows(n=300, m=30, d=1, seed=0):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, d)), generator.uniform(-1.2, 1.2, (m, d))
    return query, key, np.round(np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), 1), generator


def cut(key, value, weight=None):
    """Cut rows into chunks, of which one is empty and one has a single row."""
    ends = [slice(a, b) for a, b in pairwise([0, 75, 75, 76, 226, len(key)])]
    columns = (key, value) if weight is None else (key, value, weight)
    return open_chunks([tuple(column[part] for column in columns) for part in ends])


def check(query, key, value, weight=None, **options):
    own = np.round(np.random.default_rng(7).normal(size=(len(query), 3)), 1)
    for y in (THRESHOLDS, own):
        found = pool_cdf(query, cut(key, value, weight), y=y, **options)
        expected = pool_cdf(query, key, value, y, key_weight=weight, **options)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
        np.testing.assert_array_equal(found[expected == 0], 0.0)
        np.testing.assert_array_equal(found[expected == 1], 1.0)
        order = np.argsort(np.broadcast_to(y, found.shape), axis=1)
        assert (np.diff(np.take_along_axis(found, order, axis=1), axis=1) >= 0).all()
        found = pool_cdf(query, cut(key, value, weight), y=y, y_bandwidth=0.3, **options)
        expected = pool_cdf(query, key, value, y, y_bandwidth=0.3, key_weight=weight, **options)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)


@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", kernel_names())
def test_chunks_have_the_functions_of_arrays(kernel, columns, weighted, way):
    query, key, value, generator = make_rows(d=columns)
    weight = generator.integers(0, 3, len(key)).astype(float) if weighted else None
    if weighted:
        weight[:75] = 0.0
    check(query, key, value, weight, kernel=kernel, bandwidth=0.4 if columns == 1 else 0.8)


def test_a_kernel_of_the_users_own(way):
    query, key, value, _ = make_rows()
    check(query, key, value, kernel=make_kernel("slow", lambda u: 1 / (1 + u) ** 4), bandwidth=0.3)


@pytest.mark.parametrize("where", [1e5, 1e9])
@pytest.mark.parametrize("ties", [1, 10])
def test_far_away_the_nearest_rows_decide(where, ties, way):
    query, key, value, _ = make_rows()
    key[:ties], key[ties : 2 * ties] = 1.5, -1.5
    query[:2] = [[-where], [where]]
    check(query, key, value, bandwidth=0.2)


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero"])
def test_empty_windows(empty, way):
    query, key, value, generator = make_rows()
    weight = generator.integers(1, 3, len(key)).astype(float)
    check(np.round(2 * query, 2), np.round(key, 1), value, weight, kernel="epanechnikov", bandwidth=0.03, empty=empty)


def test_empty_windows_warn_or_are_refused():
    query, key, value, _ = make_rows()
    options = {"y": 0.1, "kernel": "boxcar", "bandwidth": 0.1}
    query = 0.8 * query
    query[3] = 9.0
    with pytest.warns(EmptyWindowWarning, match="the first is query 3"):
        assert np.isnan(pool_cdf(query, cut(key, value), **options)[3])
    with pytest.raises(ValueError, match="no key with positive weight"):
        pool_cdf(query, cut(key, value), empty="raise", **options)


def test_what_can_be_read_once_is_read_once():
    query, key, value, _ = make_rows()

    def once():
        return open_chunks(pair for pair in [(key[:100], value[:100]), (key[100:], value[100:])])

    found = pool_cdf(query, once(), y=THRESHOLDS, bandwidth=0.3)
    np.testing.assert_allclose(found, pool_cdf(query, key, value, THRESHOLDS, bandwidth=0.3), rtol=0, atol=1e-13)
    for options in ({"kernel": "boxcar", "empty": "mean"}, {"kernel": "gaussian"}):
        with pytest.raises(ValueError, match="once more, which an iterator does not allow; give a list"):
            pool_cdf([[1e6]], once(), y=0.0, bandwidth=0.3, **options)


def test_the_same_bits_for_any_number_of_threads():
    query, key, value, generator = make_rows(n=4000, m=300)
    for y in (np.linspace(-2, 2, 5), generator.normal(size=(300, 1))):
        chunks = open_chunks([(key[:1500], value[:1500]), (key[1500:], value[1500:])])
        found = [pool_cdf(query, chunks, y=y, bandwidth=0.05, n_jobs=n) for n in (1, 2)]
        np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("outputs", [1, 2])
def test_models_of_chunks_are_those_of_arrays(outputs):
    query, key, value, generator = make_rows(d=2)
    value = value if outputs == 1 else np.column_stack([value, generator.normal(size=len(value))])
    chunks = open_chunks([(key[:100], value[:100]), (key[100:], value[100:])])
    found = NadarayaWatsonRegressor(bandwidth=0.5).fit(chunks)
    expected = NadarayaWatsonRegressor(bandwidth=0.5).fit(key, value)
    own = generator.normal(size=(30, 4) if outputs == 1 else (30, 2, 4))
    width = 0.3 if outputs == 1 else [0.3, 0.5]
    for y in (0.2, THRESHOLDS, own):
        for options in ({}, {"y_bandwidth": width}):
            one, other = (model.conditional_distribution(query, **options).cdf(y) for model in (found, expected))
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)
        one, other = (model.conditional_distribution(query, y_bandwidth=width).pdf(y) for model in (found, expected))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    seen = value[:30]
    one, other = (model.conditional_distribution(query).pit(seen, random_state=3) for model in (found, expected))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-13)


def test_what_is_refused():
    query, key, value, _ = make_rows()
    two = np.column_stack([value, value])
    for call, error, message in (
        (lambda: pool_cdf(query, cut(key, two), y=0.0), ValueError, "value must be one column, got 2"),
        (lambda: pool_cdf(query, cut(key, value)), TypeError, "y must be given"),
        (lambda: pool_cdf(query, key, y=0.0), TypeError, "value"),
        (lambda: pool_cdf(query, cut(key, value), y=[]), ValueError, "y must hold thresholds, one at least"),
        (lambda: pool_cdf(query, cut(key, value), y=np.zeros((3, 1))), ValueError, r"y\[:, None\]"),
        (lambda: pool_cdf(query, cut(key, value), y=0.0, exclude_self=True), ValueError, "bring their own weights"),
        (lambda: pool_cdf(query, cut(key, value), y=0.0, y_bandwidth=0.0), ValueError, "positive number.*got 0.0"),
        (lambda: pool_cdf(query, cut(key, value), y=0.0, y_bandwidth="rule"), TypeError, "positive number here"),
        (lambda: pool_cdf(query, cut(key, value, np.zeros(300)), y=0.0), ValueError, "no pairs of positive weight"),
        (lambda: pool_cdf(np.zeros((0, 1)), cut(key, value), y=0.0), ValueError, "query must have shape"),
    ):
        with pytest.raises(error, match=message):
            call()
    model = NadarayaWatsonRegressor(bandwidth=0.4).fit(cut(key, value))
    with pytest.raises(TypeError, match=r"where rows are not in memory, got 'rule'.*sample"):
        model.conditional_distribution(query, y_bandwidth="rule").pdf(0.0)
