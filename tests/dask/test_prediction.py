"""Prediction intervals of partitions: those of the same rows in chunks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

dask = pytest.importorskip("dask", reason="clusters need the extra 'dask'")
da = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")

from kernpool import NadarayaWatsonRegressor, open_chunks

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(600, 1))
Y = np.sin(6 * X[:, 0]) + (0.1 + 0.5 * X[:, 0]) * RNG.normal(size=600)
Q = np.array([[0.1], [0.5], [0.9]])
SAME = {"rtol": 0, "atol": 1e-12}


@pytest.fixture(autouse=True)
def in_threads():
    with dask.config.set(scheduler="threads", num_workers=2):
        yield


def cut(array, rows):
    return da.from_array(array, chunks=(rows, *array.shape[1:]))


def ends(found):
    return np.stack([found.center, found.lower, found.upper])


@pytest.mark.parametrize("size", [250, 600, (0, 170, 0, 430)])
@pytest.mark.parametrize("options", [{"bandwidth": 0.1}, {"search": {"rows": 150}}])
def test_intervals_are_those_of_chunks(size, options):
    cluster = NadarayaWatsonRegressor(**options).fit(cut(X, size), cut(Y, 600))
    chunks = NadarayaWatsonRegressor(**options).fit(open_chunks([(X, Y)]))
    for more in ({}, {"X_calibration": X[:50] + 0.01, "y_calibration": Y[:50], "method": "split"}):
        found = cluster.prediction_interval(Q, **more)
        expected = chunks.prediction_interval(Q, **more)
        assert_allclose(ends(found), ends(expected), **SAME)
        assert (found.guarantee, found.n_calibration) == (expected.guarantee, expected.n_calibration)
