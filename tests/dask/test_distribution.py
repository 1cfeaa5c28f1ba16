"""Distribution functions and quantiles of partitions: those of the same rows in arrays."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")
import dask.array as da

from kernpool import ExtrapolationWarning, NadarayaWatsonRegressor, pool_cdf, pool_quantile
from kernpool.distribution import multipass_quantile
from tests.support.partitions import of_partitions

LEVELS, THRESHOLDS = [0.1, 0.5, 0.9], [0.3, -99.0, -0.4, 99.0]
RNG = np.random.default_rng(0)
KEY, QUERY = RNG.uniform(-1, 1, (500, 1)), RNG.uniform(-1.5, 1.5, (30, 1))
VALUE = np.sin(3 * KEY[:, 0]) + 0.4 * RNG.normal(size=500)
WEIGHT = RNG.integers(0, 3, 500).astype(float)
ROWS = [da.from_array(array, chunks=(120, *array.shape[1:])) for array in (KEY, VALUE, WEIGHT)]


@pytest.mark.parametrize("empty", ["nearest", "mean", "zero"])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("held", [60, 1 << 22])
def test_partitions_have_the_answers_of_arrays(kernel, empty, held, monkeypatch):
    monkeypatch.setattr(multipass_quantile, "HELD_ROWS", held)
    monkeypatch.setattr(multipass_quantile, "PIECES", 12)
    options = {"kernel": kernel, "bandwidth": 0.2, "empty": empty}
    expected = pool_quantile(QUERY, KEY, VALUE, LEVELS, key_weight=WEIGHT, **options)
    found = of_partitions(pool_quantile)(QUERY, *ROWS[:2], levels=LEVELS, key_weight=ROWS[2], **options)
    assert_array_equal(found, expected)
    for y in (THRESHOLDS, np.random.default_rng(1).normal(size=(30, 2))):
        expected = pool_cdf(QUERY, KEY, VALUE, y, key_weight=WEIGHT, **options)
        found = of_partitions(pool_cdf)(QUERY, *ROWS[:2], y=y, key_weight=ROWS[2], **options)
        assert_allclose(found, expected, rtol=0, atol=1e-13)


def test_a_model_on_a_cluster():
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(*ROWS[:2])
    with pytest.warns(ExtrapolationWarning, match="3 of 30 queries"):
        model.quantile(QUERY, [0.2, 0.8])
    assert_array_equal(model.quantile(ROWS[0]), model.quantile(KEY))  # queries on Dask are computed
    computed = model.conditional_distribution(ROWS[0]).cdf(0.0)
    assert_array_equal(computed, model.conditional_distribution(KEY).cdf(0.0))
    changing = QUERY.clip(-1.2, 1.2)  # within two bandwidths of the rows
    y_at = model.conditional_distribution(changing)
    before = y_at.cdf(THRESHOLDS)
    changing[:] = 0.5
    assert_array_equal(y_at.cdf(THRESHOLDS), before)
