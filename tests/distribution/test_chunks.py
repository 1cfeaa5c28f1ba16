"""Quantiles over chunks: rounds of counting find the very rows that arrays have."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernpool import (
    EmptyWindowWarning,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    kernel_names,
    make_kernel,
    open_chunks,
    pool_quantile,
    pooling_weights,
)
from kernpool.distribution import multipass_quantile
from kernpool.distribution.multipass_quantile import ValueSketch
from kernpool.pooling import ChunkPairs
from tests.support.dense_quantiles import assert_quantiles

LEVELS = [0.4983, 0.0, 0.9017, 0.0511, 1.0, 0.2571]  # that no few equal weights meet


@pytest.fixture(params=["few rows held", "tables only", "all rows held"])
def held(request, monkeypatch):
    """So few rows may be held that it takes some rounds; masses come from sums, or from tables."""
    if request.param == "all rows held":
        return
    sizes = {"HELD_ROWS": 40, "PIECES": 12, "MOST_PIECES": 4}
    for name, value in sizes.items():
        monkeypatch.setattr(multipass_quantile, name, value)
    monkeypatch.setattr(multipass_quantile, "POINTS", 20)
    if request.param == "few rows held":
        monkeypatch.setattr(multipass_quantile, "DENSE_PAIRS", 0)


def make_rows(n=300, m=30, d=1, seed=0):
    generator = np.random.default_rng(seed)
    key, query = generator.uniform(-1, 1, (n, d)), generator.uniform(-1.2, 1.2, (m, d))
    return query, key, np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), generator


def cut(key, value, weight=None, sizes=(75, 0, 1, 150, 74)):
    chunks, start = [], 0
    for size in sizes:
        part = slice(start, start + size)
        chunks.append((key[part], value[part]) if weight is None else (key[part], value[part], weight[part]))
        start += size
    assert start == len(key)
    return open_chunks(chunks)


def check(query, key, value, weight=None, **options):
    found = pool_quantile(query, cut(key, value, weight), levels=LEVELS, **options)
    np.testing.assert_array_equal(
        found[:, [0, 2, 3, 5]],
        pool_quantile(query, key, value, [LEVELS[i] for i in (0, 2, 3, 5)], key_weight=weight, **options),
    )
    weights = pooling_weights(query, key, key_weight=weight, empty="zero", **options)
    assert_quantiles(found, weights, value, LEVELS)


@pytest.mark.covering
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize("kernel", kernel_names())
def test_chunks_have_the_quantiles_of_arrays(kernel, columns, weighted, held):
    query, key, value, generator = make_rows(d=columns)
    weight = generator.integers(0, 3, len(key)).astype(float) if weighted else None
    if weighted:
        weight[:75] = 0.0
    check(query, key, value, weight, kernel=kernel, bandwidth=0.4 if columns == 1 else 0.8)


@pytest.mark.parametrize("what", ["ties", "one value", "outliers", "two values", "large"])
def test_values_of_any_kind(what, held):
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


def test_a_kernel_of_the_users_own(held):
    query, key, value, _ = make_rows()
    check(query, key, value, kernel=make_kernel("slow", lambda u: 1 / (1 + u) ** 4), bandwidth=0.3)


@pytest.mark.parametrize("where", [40.0, 1e5, 1e9])
@pytest.mark.parametrize("ties", [1, 10])
def test_far_away_the_nearest_rows_decide(where, ties, held):
    query, key, value, _ = make_rows()
    key[:ties], key[ties : 2 * ties] = 1.5, -1.5
    query[:2] = [[-where], [where]]
    check(query, key, value, bandwidth=0.2)


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero"])
def test_empty_windows(empty, held):
    query, key, value, generator = make_rows()
    key, query = np.round(key, 1), np.round(2 * query, 2)
    options = {"kernel": "epanechnikov", "bandwidth": 0.03, "empty": empty}
    weight = generator.integers(1, 3, len(key)).astype(float)
    found = pool_quantile(query, cut(key, value, weight), levels=[0.3, 0.8], **options)
    expected = pool_quantile(query, key, value, [0.3, 0.8], key_weight=weight, **options)
    np.testing.assert_array_equal(found, expected)


def test_empty_windows_warn_or_are_refused(held):
    query, key, value, _ = make_rows()
    options = {"kernel": "boxcar", "bandwidth": 0.1}
    query = 0.8 * query
    query[3] = 9.0
    with pytest.warns(EmptyWindowWarning, match="the first is query 3"):
        assert np.isnan(pool_quantile(query, cut(key, value), **options)[3])
    with pytest.raises(ValueError, match="no key with positive weight"):
        pool_quantile(query, cut(key, value), empty="raise", **options)


def test_shapes():
    query, key, value, _ = make_rows()
    two = np.column_stack([value, -value])
    assert pool_quantile(query, cut(key, value)).shape == (30,)
    assert pool_quantile(query, cut(key, value), levels=[0.5]).shape == (30, 1)
    assert pool_quantile(query, cut(key, two)).shape == (30, 2)
    found = pool_quantile(query, cut(key, two), levels=[0.2, 0.6])
    np.testing.assert_array_equal(found, pool_quantile(query, key, two, [0.2, 0.6]))


def test_passes_are_few(monkeypatch):
    """Two where all rows may be held; where a hundredth may, rounds and then as many parts as there are."""
    query, key, value, _ = make_rows(n=20_000, m=10)
    passes = []
    ask = ChunkPairs.ask
    monkeypatch.setattr(
        ChunkPairs, "ask", lambda pairs, question, progress: passes.append(question) or ask(pairs, question, progress)
    )
    chunks = open_chunks(key, value, rows=3000)
    expected = pool_quantile(query, chunks, levels=[0.1, 0.5], bandwidth=0.05)
    assert len(passes) == 2
    monkeypatch.setattr(multipass_quantile, "HELD_ROWS", 200)
    monkeypatch.setattr(multipass_quantile, "MOST_PIECES", 16)
    passes.clear()
    np.testing.assert_array_equal(pool_quantile(query, chunks, levels=[0.1, 0.5], bandwidth=0.05), expected)
    assert 3 <= len(passes) <= 6
    held = []
    look = multipass_quantile.MultipassQuantile._look_among

    def counted(self, rows, *given):
        held.append(len(rows.key))
        look(self, rows, *given)

    monkeypatch.setattr(multipass_quantile.MultipassQuantile, "_look_among", counted)
    pool_quantile(query, chunks, levels=[0.1, 0.5], bandwidth=0.05)
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


def test_files(tmp_path, held):
    pq = pytest.importorskip("pyarrow.parquet", reason="Parquet needs the extra 'arrow'")
    import pyarrow as pa

    query, key, value, generator = make_rows(d=2)
    weight = generator.integers(0, 3, len(key))
    pq.write_table(pa.table({"a": key[:, 0], "b": key[:, 1], "y": value, "w": weight}), tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", np.column_stack([key, value, weight]))
    expected = pool_quantile(query, key, value, [0.1, 0.7], key_weight=weight, bandwidth=0.6)
    parquet = open_chunks(tmp_path / "rows.parquet", target="y", weight="w", rows=50)
    np.testing.assert_array_equal(pool_quantile(query, parquet, levels=[0.1, 0.7], bandwidth=0.6), expected)
    matrix = open_chunks(tmp_path / "rows.npy", target="2", weight="3", rows=50)
    np.testing.assert_array_equal(pool_quantile(query, matrix, levels=[0.1, 0.7], bandwidth=0.6), expected)


def test_a_model_that_was_fitted_to_chunks():
    query, key, value, _ = make_rows()
    chunked = NadarayaWatsonRegressor(bandwidth=0.3).fit(cut(key, value))
    arrays = NadarayaWatsonRegressor(bandwidth=0.3).fit(key, value)
    np.testing.assert_array_equal(chunked.quantile(query, [0.1, 0.9]), arrays.quantile(query, [0.1, 0.9]))
    np.testing.assert_array_equal(chunked.quantile(query), arrays.quantile(query))
    with pytest.raises(TypeError, match=r"fitted to rows that are not in memory.*fit it to arrays"):
        LocalLinearRegressor(bandwidth=0.3).fit(cut(key, value)).quantile(query)
    with pytest.raises(TypeError, match="fitted to rows that are not in memory"):
        chunked.conditional_distribution(query).sample()


def test_progress_counts_the_rows_of_each_pass():
    query, key, value, _ = make_rows()
    seen = []
    pool_quantile(query, open_chunks(key, value, rows=100), bandwidth=0.3, progress=lambda *given: seen.append(given))
    assert seen == 2 * [(100, 300), (200, 300), (300, 300)]


def test_what_is_refused():
    query, key, value, _ = make_rows()
    with pytest.raises(ValueError, match="an iterator does not allow"):
        pool_quantile(query, open_chunks(iter([(key, value)])))
    with pytest.raises(ValueError, match="chunks bring their own weights"):
        pool_quantile(query, cut(key, value), key_weight=np.ones(len(key)))
    with pytest.raises(TypeError, match="value is missing"):
        pool_quantile(query, key)
    with pytest.raises(ValueError, match="no pairs of positive weight"):
        pool_quantile(query, cut(key, value, np.zeros(len(key))))
    with pytest.raises(ValueError, match="query must have shape"):
        pool_quantile(np.empty((0, 1)), cut(key, value))


@given(st.lists(st.sampled_from([0.0, 1.0, 1.5, -2.0, 1e300]), min_size=1, max_size=60), st.integers(2, 9))
def test_pieces_of_a_summary_hold_as_many_rows_or_one_value(values, pieces):
    value = np.sort(values)
    cuts = ValueSketch.of(value).cuts(-np.inf, np.inf, pieces)
    assert (np.diff(cuts) > 0).all()
    place = np.searchsorted(value, np.concatenate([[-np.inf], cuts, [np.inf]]), side="right")
    for first, last in pairwise(place):
        assert last - first <= 2 * len(value) / pieces + 1 or value[first] == value[last - 1]


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=300), st.integers(1, 299))
def test_summaries_join(values, first):
    whole, parts = ValueSketch.of(np.array(values)), [np.array(part) for part in (values[:first], values[first:])]
    joined = ValueSketch.of(parts[0]).joined(ValueSketch.of(parts[1]))
    np.testing.assert_array_equal(joined.value, whole.value)
    np.testing.assert_array_equal(joined.rows, whole.rows)
