"""Quantiles of partitions: those of the same rows in arrays."""

import numpy as np
import pytest

pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")

import dask.array as da

from kernpool import (
    ExtrapolationWarning,
    NadarayaWatsonRegressor,
    open_chunks,
    pool_quantile,
)
from kernpool.dask import pool_quantile as of_partitions
from kernpool.distribution import multipass_quantile


@pytest.fixture(params=[60, 1 << 22])
def held(request, monkeypatch):
    monkeypatch.setattr(multipass_quantile, "HELD_ROWS", request.param)
    monkeypatch.setattr(multipass_quantile, "PIECES", 12)


def make_rows(n=500, m=30):
    generator = np.random.default_rng(0)
    key, query = generator.uniform(-1, 1, (n, 1)), generator.uniform(-1.5, 1.5, (m, 1))
    return query, key, np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), generator


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_partitions_have_the_quantiles_of_arrays(kernel, held):
    query, key, value, generator = make_rows()
    weight = generator.integers(0, 3, len(key)).astype(float)
    options = {"kernel": kernel, "bandwidth": 0.2, "empty": "nearest"}
    expected = pool_quantile(query, key, value, [0.1, 0.5, 0.9], key_weight=weight, **options)
    arrays = [da.from_array(array, chunks=(120, *array.shape[1:])) for array in (key, value, weight)]
    found = of_partitions(query, arrays[0], arrays[1], [0.1, 0.5, 0.9], key_weight=arrays[2], **options)
    np.testing.assert_array_equal(found, expected)
    chunks = open_chunks([(key[:200], value[:200], weight[:200]), (key[200:], value[200:], weight[200:])])
    np.testing.assert_array_equal(of_partitions(query, chunks, levels=[0.1, 0.5, 0.9], **options), expected)


def test_a_model_on_a_cluster():
    query, key, value, _ = make_rows()
    X, y = da.from_array(key, chunks=(120, 1)), da.from_array(value, chunks=120)
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, y)
    local = NadarayaWatsonRegressor(bandwidth=0.2).fit(key, value)
    with pytest.warns(ExtrapolationWarning, match="3 of 30 queries"):
        found = model.quantile(query, [0.2, 0.8])
    with pytest.warns(ExtrapolationWarning, match="3 of 30 queries"):
        np.testing.assert_array_equal(found, local.quantile(query, [0.2, 0.8]))
    assert model.quantile(query[:4]).shape == (4,)
    np.testing.assert_array_equal(model.quantile(X), model.quantile(key))  # queries on Dask are computed


def test_what_is_refused():
    query, key, value, _ = make_rows()
    nothing = da.zeros(len(key), chunks=120)
    with pytest.raises(ValueError, match="no pairs of positive weight"):
        of_partitions(query, da.from_array(key, chunks=(120, 1)), da.from_array(value, chunks=120), key_weight=nothing)
    with pytest.raises(ValueError, match="levels must be between 0 and 1"):
        of_partitions(query, da.from_array(key, chunks=(120, 1)), da.from_array(value, chunks=120), 50)
