"""Memory maps beyond the size of a chunk: read piece by piece, with the results of arrays in memory."""

import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import pool, pool_cdf, pool_quantile

ROWS = 3000  # three chunks of 1024


@pytest.fixture
def as_map(tmp_path, monkeypatch):
    """Chunks of a thousand rows, and what makes a memory map of an array."""
    monkeypatch.setattr("kernpool.data.chunks.base.BYTES_PER_CHUNK", 1 << 13)

    def make(array):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npy"
        np.save(path, array)
        return np.load(path, mmap_mode="r")

    return make


def pairs(generator, dtype="f8", columns=2, outputs=None):
    key = 10 * generator.normal(size=(ROWS, columns))
    value = 10 * generator.normal(size=ROWS if outputs is None else (ROWS, outputs))
    return key.astype(dtype), value.astype(dtype)


@pytest.mark.parametrize(
    "kinds", ["f8 f8 f8", "f4 f4 f4", "f4 f4 f8", "f8 f4 f4", "f4 i4 f4", "f2 f2 f2", "f4 >f4 >f4"]
)
@pytest.mark.parametrize("degree", [0, 1])
def test_results_have_the_type_that_arrays_in_memory_give(degree, kinds, as_map, generator):
    kinds = kinds.split()
    key, value = pairs(generator)
    query, key, value = key[:7].astype(kinds[0]), key.astype(kinds[1]), value.astype(kinds[2])
    options = {"bandwidth": 8.0, "degree": degree}
    expected = pool(query, np.array(key), np.array(value), **options)
    for values in (as_map(value), value):
        found = pool(query, as_map(key), values, **options)
        assert found.dtype == expected.dtype == np.result_type(*(np.dtype(k) if k[-2] == "f" else "f8" for k in kinds))
        rounding = {2: 2e-3, 4: 2e-6, 8: 1e-13}[found.dtype.itemsize]
        assert_allclose(found, expected, rtol=0, atol=rounding * np.ptp(value.astype("f8")))


@pytest.mark.parametrize("outputs", [None, 1, 3])
@pytest.mark.parametrize("shape", [(2,), (4, 2), (3, 4, 2), (2, 1, 4, 2)])
def test_queries_come_in_batches(shape, outputs, as_map, generator):
    columns = 1 if len(shape) == 1 else 2
    key, value = pairs(generator, columns=columns, outputs=outputs)
    key = key[:, 0] if columns == 1 else key
    query = generator.normal(size=shape)
    query.flat[0] = 500.0  # an empty window
    weight = generator.integers(0, 4, ROWS)
    for empty in ("nearest", "mean", "zero"):
        options = {"kernel": "epanechnikov", "bandwidth": 8.0, "key_weight": weight, "empty": empty}
        expected = pool(query, key, value, **options)
        found = pool(query, as_map(key), as_map(value), **options)
        assert found.shape == expected.shape
        assert_allclose(found, expected, rtol=1e-11, atol=1e-12)
    with pytest.raises(ValueError, match="the first is query 0"):
        pool(query, as_map(key), as_map(value), kernel="epanechnikov", bandwidth=8.0, empty="raise")


@pytest.mark.parametrize("columns", [1, 2])
def test_progress_counts_rows_and_maps_are_read_piece_by_piece(columns, as_map, generator):
    key, value = pairs(generator, columns=columns)
    for m in (4, 400):
        seen = []
        query = generator.normal(size=(2, m, columns))
        pool(query, as_map(key), value, bandwidth=5.0, progress=lambda *counts, seen=seen: seen.append(counts))
        assert seen == [(done, ROWS) for done in (1024, 2048, 3000)]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda query, key, value: (query, key * 1j, value),
        lambda query, key, value: (query, key, value * 1j),
        lambda query, key, value: (query, key, np.ma.masked_less(value, 0.0)),
        lambda query, key, value: (query, key[:, 0], value),
        lambda query, key, value: (query, key, value[:-1]),
        lambda query, key, value: (query[:0], key, value),
        lambda query, key, value: (query[None][:0], key, value),
        lambda query, key, value: (query, key, np.where(value == value[7], np.nan, value)),
        lambda query, key, value: (query, np.where(key == key[7], np.inf, key), value),
        lambda query, key, value: (query.astype(str), key, value),
        lambda query, key, value: (query[0, 0], key, value),
    ],
)
def test_what_is_refused_in_memory_is_refused_in_maps(spoil, as_map, generator):
    query, key, value = spoil(generator.normal(size=(5, 2)), *pairs(generator))
    with pytest.raises((TypeError, ValueError)) as in_memory:
        pool(query, key, value)
    with pytest.raises(in_memory.type):
        pool(query, as_map(key), value)


@pytest.mark.parametrize("outputs", [None, 1, 3])
@pytest.mark.parametrize("shape", [(2,), (4, 2), (3, 4, 2)])
def test_quantiles_and_distribution_functions_read_maps_piece_by_piece(shape, outputs, as_map, generator, monkeypatch):
    columns = 1 if len(shape) == 1 else 2
    key, value = pairs(generator, "f4", columns=columns, outputs=outputs)
    key = key[:, 0] if columns == 1 else key
    query, weight = generator.normal(size=shape).astype("f4"), generator.integers(0, 4, ROWS)
    options = {"bandwidth": 8.0, "key_weight": weight}
    whole = [pool_quantile(query, key, value, levels, **options) for levels in (0.5, [0.1, 0.9])]
    one = value if outputs is None else value[:, :1]
    rows = query.shape[-2] if query.ndim > 1 else len(query)
    thresholds = (0.0, [-3.0, 4.0], np.arange(2.0 * rows).reshape(rows, 2))
    whole += [pool_cdf(query, key, one, y, y_bandwidth=h, **options) for y in thresholds for h in (None, 2.0)]
    monkeypatch.setattr("kernpool.pooling.in_memory.ArrayPairs.batch", None)  # which has all rows in memory
    found = [pool_quantile(query, as_map(key), as_map(value), levels, **options) for levels in (0.5, [0.1, 0.9])]
    found += [
        pool_cdf(query, as_map(key), as_map(one), y, y_bandwidth=h, **options) for y in thresholds for h in (None, 2.0)
    ]
    for one, other in zip(found, whole, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        assert_allclose(one, other, rtol=1e-11, atol=1e-12)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_memory_maps_are_not_brought_into_memory(tmp_path, generator):
    rows = 12_000_000  # 275 MiB of keys and values
    for name, shape in (("key", (rows, 2)), ("value", (rows,))):
        array = np.lib.format.open_memmap(tmp_path / f"{name}.npy", "w+", np.float64, shape)
        for start in range(0, rows, 1_000_000):
            array[start : start + 1_000_000] = generator.random((1_000_000, *shape[1:]))
        del array
    script = """
import re, threading, time
import numpy as np
from kernpool import pool, pool_cdf, pool_quantile

def anonymous(name):  # pages of files are not counted: the system takes them back
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024

def ask(*pairs):
    for function, options in ((pool, {}), (pool_quantile, {}), (pool_cdf, {"y": 0.1})):
        function(np.full((3, 2), 0.5), *pairs, **options)

ask(np.zeros((9, 2)), np.ones(9))  # what is loaded for it stays
maps = [np.load(name, mmap_mode="r") for name in ("key.npy", "value.npy")]
most, done = [anonymous("RssAnon")], []
def watch():
    while not done:
        most.append(anonymous("RssAnon"))
        time.sleep(0.002)
thread = threading.Thread(target=watch)
thread.start()
ask(*maps)
done.append(True)
thread.join()
print(max(most) - most[0])
"""
    found = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert float(found.stdout) < 400  # MiB: 100 to 220 measured; read as a whole 720 to 780


def test_batches_of_weights_and_what_else_chunks_cannot_do_is_done_in_memory(as_map, generator):
    key, value = pairs(generator)
    for options in (
        {"key_weight": generator.integers(1, 4, (2, ROWS))},
        {"attn_mask": generator.random((5, ROWS)) < 0.5},
        {"exclude_self": True, "self_index": np.arange(5)},
    ):
        expected = pool(key[:5], key, value, bandwidth=4.0, **options)
        assert_array_equal(pool(key[:5], as_map(key), value, bandwidth=4.0, **options), expected)
