"""Prediction intervals of rows that are not in memory: those of arrays up to 4 000 rows, and of a sample beyond."""

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, open_chunks

RNG = np.random.default_rng(0)
X, PLACES = RNG.uniform(size=(500, 2)), RNG.uniform(size=(20, 2))
Y = np.sin(6 * X[:, 0]) + (0.1 + X[:, 1]) * RNG.normal(size=500)
WEIGHT = RNG.integers(0, 3, 500) * 1.0


def test_a_sample_of_many_rows_covers():
    x = RNG.uniform(size=(20_000, 1))
    y = np.sin(6 * x[:, 0]) + (0.1 + x[:, 0]) * RNG.normal(size=20_000)
    model = NadarayaWatsonRegressor(bandwidth=0.02).fit(open_chunks(x[:10_000], y[:10_000]))
    found = model.prediction_interval(x[10_000:])
    assert np.mean((found.lower <= y[10_000:]) & (y[10_000:] <= found.upper)) == pytest.approx(0.9, abs=0.02)
    assert found.guarantee.endswith("Residuals are those of 4000 rows, drawn from all.")
    np.testing.assert_array_equal(found.center, model.predict(x[10_000:]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "cv+"}, "method='cv\\+' needs the rows themselves"),
        ({"groups": np.arange(500)}, "groups must be None"),
        ({"calibration": "unsearched"}, "calibration must be None"),
    ],
)
def test_what_is_refused(options, message):
    model = NadarayaWatsonRegressor(bandwidth=0.2).fit(open_chunks(X, Y))
    with pytest.raises(TypeError, match=message):
        model.prediction_interval(PLACES, **options)
