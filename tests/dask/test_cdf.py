"""Distribution functions of partitions: those of the same rows in arrays."""

import numpy as np
import pytest

pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")

import dask.array as da

from kernpool import NadarayaWatsonRegressor, open_chunks, pool_cdf
from kernpool.dask import pool_cdf as of_partitions

THRESHOLDS = [0.3, -99.0, -0.4, 99.0]


def make_rows(n=500, m=30):
    generator = np.random.default_rng(0)
    key, query = generator.uniform(-1, 1, (n, 1)), generator.uniform(-1.5, 1.5, (m, 1))
    return query, key, np.sin(3 * key[:, 0]) + 0.4 * generator.normal(size=n), generator


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_partitions_have_the_functions_of_arrays(kernel, empty):
    query, key, value, generator = make_rows()
    weight = generator.integers(0, 3, len(key)).astype(float)
    options = {"kernel": kernel, "bandwidth": 0.2, "empty": empty}
    arrays = [da.from_array(array, chunks=(120, *array.shape[1:])) for array in (key, value, weight)]
    chunks = open_chunks([(key[:200], value[:200], weight[:200]), (key[200:], value[200:], weight[200:])])
    for y in (THRESHOLDS, generator.normal(size=(30, 2))):
        expected = pool_cdf(query, key, value, y, key_weight=weight, **options)
        found = of_partitions(query, arrays[0], arrays[1], y, key_weight=arrays[2], **options)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
        np.testing.assert_allclose(of_partitions(query, chunks, y=y, **options), expected, rtol=0, atol=1e-13)


def test_a_model_on_a_cluster():
    query, key, value, _ = make_rows()
    query = query.clip(-1.2, 1.2)  # within two bandwidths of the rows
    X, y = da.from_array(key, chunks=(120, 1)), da.from_array(value, chunks=120)
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, y)
    computed = model.conditional_distribution(X).cdf(0.0)  # queries on Dask are computed
    np.testing.assert_array_equal(computed, model.conditional_distribution(key).cdf(0.0))
    changing = query.copy()
    y_at = model.conditional_distribution(changing)
    before = y_at.cdf(THRESHOLDS)
    changing[:] = 0.5
    np.testing.assert_array_equal(y_at.cdf(THRESHOLDS), before)


def test_what_is_refused():
    query, key, value, _ = make_rows()
    rows = da.from_array(key, chunks=(120, 1)), da.from_array(value, chunks=120)
    with pytest.raises(ValueError, match="no pairs of positive weight"):
        of_partitions(query, *rows, 0.0, key_weight=da.zeros(len(key), chunks=120))
    with pytest.raises(TypeError, match="y must be given"):
        of_partitions(query, *rows)
    with pytest.raises(ValueError, match="thresholds of shape"):
        of_partitions(query, *rows, np.zeros((3, 1)))
