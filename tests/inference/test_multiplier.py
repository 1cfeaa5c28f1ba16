"""Bands by random draws: against tables of shares, the tube formula, and their laws."""

import numpy as np
import pytest
from scipy.special import ndtri

from kernpool import EmptyWindowWarning, LocalLinearRegressor, NadarayaWatsonRegressor, kernel_names
from kernpool.core import Keys
from kernpool.inference import fit_training, interval
from kernpool.inference.confidence.simultaneous_bands import critical_values, largest_errors
from kernpool.inference.resampling import random_draws
from kernpool.inference.variance.standard_errors import errors_of
from kernpool.smoother import EvaluationPoints, Smoother, estimate
from kernpool.smoother.bias_correction import METHODS
from tests.support.inference_cases import bend, pair, smoother_of_bend

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")

SITUATIONS = ["line", "weighted line", "ridge", "product", "levels"]
KERNELS = kernel_names()


def expected(dense, share, squared, n_resamples, seed):
    """Largest errors, one draw after the other, of repeated rows."""
    times = dense.w.astype(int)
    unit = np.repeat(np.arange(len(times)), times)
    share = (share / np.maximum(dense.w, 1))[:, unit]
    found = []
    for residual in np.sqrt(squared[unit]).T:
        drawn = random_draws.multipliers("gaussian", seed, slice(0, n_resamples), len(unit))
        error = (share * residual) @ drawn / np.linalg.norm(share * residual, axis=1)[:, None]
        found.append(np.abs(error).max(axis=0))
    return np.stack(found, axis=1)


@pytest.mark.covering
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_largest_errors_are_those_of_the_reference(kernel, situation, monkeypatch):
    smoother, dense, places = pair(kernel, situation, 1)
    training = fit_training(smoother)
    ones, squared, last = np.ones((len(dense.w), 1)), dense.squared("hc3"), smoother.columns - 1
    for column, method, variance in [(None, "robust", "sandwich"), (last, "quadratic", "local")]:
        found = estimate(smoother, places, method, column)
        errors = errors_of(smoother, training, places, [found], variance)[0]
        share = dense.shares(places.query, places.code, method, row=0 if column is None else 1 + column)
        target = expected(dense, share, ones if variance == "local" else squared, 20, 7)
        for numbers in (1 << 23, 0):  # by tables, and by pooling
            monkeypatch.setattr("kernpool.inference.confidence.simultaneous_bands.NUMBERS", numbers)
            options = {"method": method, "n_resamples": 20, "random_state": 7}
            largest = largest_errors(smoother, places, found, errors, **options)
            np.testing.assert_allclose(largest, target, rtol=1e-11, atol=1e-11)


def test_several_tables_are_one(monkeypatch):
    smoother, _, places = pair("tricube", "weighted line", 1)
    found = estimate(smoother, places)
    errors = errors_of(smoother, fit_training(smoother), places, [found], "sandwich")[0]
    whole = largest_errors(smoother, places, found, errors, n_resamples=20)
    monkeypatch.setattr("kernpool.smoother.quadratic_forms.PAIRS", 200)
    np.testing.assert_allclose(largest_errors(smoother, places, found, errors, n_resamples=20), whole, rtol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_the_tube_formula_and_the_draws_agree(method):
    smoother, at = smoother_of_bend(), EvaluationPoints(np.linspace(0, 1, 201)[:, None])
    training = fit_training(smoother)
    tube, drawn = (
        interval(smoother, training, at, method=method, simultaneous=kind, n_resamples=3999)
        for kind in ("tube", "multiplier")
    )
    assert drawn.critical == pytest.approx(tube.critical, abs=0.06)
    np.testing.assert_array_equal(tube.center, drawn.center)
    assert (tube.band, drawn.band) == ("tube", "multiplier")


@pytest.mark.covering
@pytest.mark.parametrize("variance", ["local", "sandwich"])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_a_band_is_never_narrower_than_its_intervals(level, variance):
    """With a single place the draws may happen to be small."""
    smoother, training = smoother_of_bend(), fit_training(smoother_of_bend())
    for seed in range(20):
        options = {"level": level, "variance": variance, "n_resamples": 99, "random_state": seed}
        at = EvaluationPoints(np.array([[0.3]]))
        alone = interval(smoother, training, at, simultaneous="multiplier", **options)
        assert alone.critical >= -ndtri(0.5 - 0.5 * level)
        assert alone.width >= interval(smoother, training, at, level=level, variance=variance).width * (1 - 1e-12)


def test_draws_do_not_depend_on_threads_or_blocks(monkeypatch):
    at = EvaluationPoints(np.linspace(0, 1, 50)[:, None])
    for numbers in (1 << 23, 0):
        monkeypatch.setattr("kernpool.inference.confidence.simultaneous_bands.NUMBERS", numbers)
        found = []
        for n_jobs in (1, 2, 8):
            smoother = smoother_of_bend(n_jobs=n_jobs)
            one = interval(smoother, fit_training(smoother), at, simultaneous="multiplier", n_resamples=150)
            found.append(one.critical)
        assert len(set(found)) == 1
        monkeypatch.setattr(random_draws, "MOST_COLUMNS", 7)
        smoother = smoother_of_bend()
        narrow = interval(smoother, fit_training(smoother), at, simultaneous="multiplier", n_resamples=150)
        assert narrow.critical == pytest.approx(found[0], rel=1e-12)
        monkeypatch.undo()


def test_several_outputs_are_one_by_one_and_slopes_have_shapes():
    g = np.random.default_rng(0)
    X, at = g.uniform(size=(80, 2)), g.uniform(0.2, 0.8, size=(9, 2))
    y = np.column_stack([X[:, 0], np.cos(5 * X[:, 1])]) + g.normal(size=(80, 2)) * (1 + X)
    both = LocalLinearRegressor(bandwidth=0.3).fit(X, y)
    alone = [LocalLinearRegressor(bandwidth=0.3).fit(X, column) for column in y.T]
    options = {"simultaneous": True, "n_resamples": 199}
    for variance, of in [("local", "fit"), ("sandwich", "fit"), ("local", "derivative"), ("sandwich", "derivative")]:
        found = both.confidence_interval(at, variance=variance, quantity=of, **options)
        for c, model in enumerate(alone):
            one = model.confidence_interval(at, variance=variance, quantity=of, **options)
            np.testing.assert_allclose(found.upper[..., c], one.upper, rtol=1e-10)
            critical = np.broadcast_to(found.critical, found.center.shape[1:])[..., c]
            np.testing.assert_allclose(critical, one.critical, rtol=1e-11)
            assert np.shape(one.critical) == one.center.shape[1:]
    assert isinstance(both.confidence_interval(at, **options).critical, float)


def test_a_weight_of_three_is_three_equal_rows_and_fractions_have_the_same_law():
    smoother, dense, places = pair("gaussian", "ridge", 1)
    times = dense.w.astype(int)
    rows = Smoother(Keys.read(np.repeat(dense.x, times, axis=0), np.repeat(dense.y, times, axis=0)), smoother.recipe)
    options = {"simultaneous": True, "variance": "sandwich", "n_resamples": 1999}
    one, other = (interval(each, fit_training(each), places, **options) for each in (smoother, rows))
    np.testing.assert_allclose(one.critical, other.critical, rtol=1e-11)
    np.testing.assert_allclose(one.upper, other.upper, rtol=1e-11)
    weight = dense.w + np.where(dense.w > 0, 1e-9, 0.0)
    near = Smoother(Keys.read(dense.x, dense.y, weight), smoother.recipe)
    fraction = interval(near, fit_training(near), places, **options)
    np.testing.assert_allclose(fraction.critical, one.critical, rtol=0.04)


def test_empty_windows_do_not_count():
    x, y = bend(60)
    model = NadarayaWatsonRegressor("boxcar", bandwidth=0.1).fit(x[:, None], y)
    near = model.confidence_interval([[0.3], [0.6]], simultaneous=True)
    with pytest.warns(EmptyWindowWarning):
        far = model.confidence_interval([[0.3], [0.6], [7.0]], simultaneous=True)
    assert far.critical == pytest.approx(near.critical, rel=1e-12)
    assert np.isnan(far.upper[2])


def test_too_few_draws_are_told():
    with pytest.raises(ValueError, match=r"n_resamples=18 are too few for level=0\.95.*n_resamples=19 or more"):
        critical_values(np.zeros((18, 1)), 0.95)
    assert critical_values(np.full((19, 1), 5.0), 0.95) == 5.0
    smoother, training = smoother_of_bend(), fit_training(smoother_of_bend())
    for wrong in (0, 2.5, True):
        with pytest.raises(ValueError, match="n_resamples must be a positive integer"):
            interval(smoother, training, smoother.training, simultaneous="multiplier", n_resamples=wrong)
