"""Rows that are not in memory: sums row by row, and samples of rows."""

import pickle

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, open_chunks
from kernpool.kernels import get_kernel
from kernpool.kernels.squares import products
from kernpool.pooling import ChunkPairs
from kernpool.smoother import quadratic_forms, stored_rows

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(120, 2))
Y = np.sin(4 * X[:, 0]) + X[:, 1] + 0.2 * RNG.normal(size=120)
Q = RNG.uniform(0.2, 0.8, size=(4, 2))


def interval(found):
    return np.stack([found.center, found.lower, found.upper, found.standard_error])


@pytest.mark.parametrize("on_dask", [False, True])
def test_weights_outputs_and_sums_row_by_row(on_dask, monkeypatch):
    monkeypatch.setattr(quadratic_forms, "DOUBT", -1.0)  # no norm is that of moments
    both, weight = np.column_stack([Y, X[:, 0] ** 2]), RNG.integers(0, 3, 120).astype(float)
    weight[:37] = 0.0  # a chunk without weight
    rows = [open_chunks(X, both, weight, rows=37)]
    if on_dask:
        dask = pytest.importorskip("dask.array", reason="clusters need the extra 'dask'")
        rows = [dask.from_array(each, chunks=50) for each in (X, both, weight)]
    stored, known = (LocalLinearRegressor(bandwidth=0.2, ridge=0.1).fit(*each) for each in (rows, (X, both, weight)))
    for name in ("mean", "standard_error", "slope", "slope_standard_error", "effective_sample_size"):
        found, expected = (getattr(model.get_prediction(Q), name) for model in (stored, known))
        np.testing.assert_allclose(found, expected, rtol=1e-10, err_msg=name)


def test_noise_of_a_sample_is_that_of_all_rows_up_to_chance(monkeypatch):
    n, sampled = 6000, 600
    x = RNG.uniform(size=(n, 1))
    y = np.sin(5 * x[:, 0]) + (0.1 + 0.2 * x[:, 0]) * RNG.normal(size=n)
    query = np.linspace(0.0, 1.0, 7)[:, None]
    known = NadarayaWatsonRegressor(bandwidth=0.03).fit(x, y).confidence_interval(query)
    monkeypatch.setattr(stored_rows, "NOISE_ROWS", sampled)
    found, other = (
        NadarayaWatsonRegressor(bandwidth=0.03).fit(open_chunks(x, y, rows=rows)).confidence_interval(query)
        for rows in (6000, 701)
    )
    np.testing.assert_allclose(interval(found), interval(other), rtol=1e-10)  # however rows are cut
    np.testing.assert_allclose(found.center, known.center, rtol=1e-10)
    assert np.all(found.df < known.df)  # fewer residuals say it, and the intervals know
    # A standard deviation from so many residuals is off by 1 / sqrt(2 df), as a fraction.
    assert np.all(np.abs(np.log(found.standard_error / known.standard_error)) < 4.0 / np.sqrt(2.0 * found.df))


def test_a_sample_knows_the_places_of_its_rows():
    x = np.arange(40.0)
    sample = ChunkPairs(open_chunks(x, x, np.where(x < 9, 0.0, 1.0), rows=7)).sample(6, 3)
    np.testing.assert_array_equal(sample.place, sample.key[:, 0])


def test_products_of_kernels_go_to_a_cluster():
    (term,) = products(get_kernel("product tricube"), 1.5)
    u = np.linspace(0.0, 1.2, 9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(term.kernel)).profile(u), term.kernel.profile(u))
