"""Every formula against tables of shares: kernels, degrees, frequencies, several outputs, ridges and levels."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import kernel_names
from kernpool.core import Exclusion, Keys
from kernpool.inference import interval, local_noise, squared_residuals
from kernpool.inference.variance.standard_errors import errors_of
from kernpool.smoother import Smoother, estimate, fit_training
from kernpool.smoother.bias_correction import METHODS
from tests.support.inference_cases import NAMES, pair

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")

SITUATIONS = ["line", "weighted line", "ridge", "product", "levels"]
KERNELS = kernel_names()
CLOSE = {"rtol": 1e-11, "atol": 0}


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_standard_errors(kernel, situation, degree):
    smoother, dense, places = pair(kernel, situation, degree)
    for method in ("naive", "robust", "quadratic", "undersmoothed"):
        share, found = dense.shares(places.query, places.code, method), estimate(smoother, places, method)
        assert_allclose(found.center, share @ dense.y, rtol=1e-11, atol=1e-12, err_msg=method)
        for variance in ("local", "sandwich"):
            target = dense.standard_error(share, places.query, places.code, variance)
            error = errors_of(smoother, places, [found], variance)[0].standard_error
            assert_allclose(error, target, **CLOSE, err_msg=f"{method}, {variance}")


@pytest.mark.covering
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_slopes_of_planes(kernel, situation):
    smoother, dense, places = pair(kernel, situation, 1)
    for column in range(smoother.columns):
        for method in ("naive", "robust", "quadratic"):
            share = dense.shares(places.query, places.code, method, row=1 + column)
            found = estimate(smoother, places, method, column)
            assert_allclose(found.center, share @ dense.y, rtol=1e-10, atol=1e-11)
            target = dense.standard_error(share, places.query, places.code)
            errors = errors_of(smoother, places, [found])[0]
            assert_allclose(errors.standard_error, target, **CLOSE)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_slopes_of_a_local_constant_gaussian_fit(situation):
    smoother, dense, places = pair("gaussian", situation, 0)
    weight = dense.kernel_weights(places.query, places.code) * dense.w
    share = weight / weight.sum(axis=1, keepdims=True)
    for column, h in enumerate(dense.h):
        offset = (dense.x[None, :, column] - places.query[:, column, None]) / h
        slope = share * (offset - np.sum(share * offset, axis=1, keepdims=True)) / h
        found = estimate(smoother, places, "naive", column)
        assert_allclose(found.center, slope @ dense.y, rtol=1e-11, atol=1e-12)
        error = errors_of(smoother, places, [found], "sandwich")[0].standard_error
        target = dense.standard_error(slope, places.query, places.code, "sandwich")
        assert_allclose(error, target, **CLOSE)


def test_slopes_of_other_local_constant_fits_are_refused():
    smoother, _, places = pair("epanechnikov", "line", 0)
    with pytest.raises(ValueError, match="LocalLinearRegressor"):
        estimate(smoother, places, "naive", 0)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov", "logistic"])
def test_residuals_leverages_and_noise(kernel, situation, degree):
    smoother, dense, places = pair(kernel, situation, degree)
    training, kept = fit_training(smoother), dense.w > 0
    assert_allclose(training.leverage[kept], dense.leverage()[kept], **CLOSE)
    assert_allclose(training.deleted[kept], dense.deleted()[kept], rtol=1e-11)
    for kind in ("hc0", "hc1", "hc2", "hc3", "nn"):
        found = squared_residuals(smoother, training, kind)
        assert_allclose(np.sqrt(found[kept]), np.sqrt(dense.squared(kind)[kept]), rtol=1e-9, atol=1e-12)
        assert np.all(found[~kept] == 0)
    noise, noise_df = local_noise(smoother, places, squared_residuals(smoother, training))
    variance, df = dense.noise(places.query, places.code)
    assert_allclose(noise, variance, **CLOSE)
    assert_allclose(noise_df, df, **CLOSE)


@pytest.mark.covering
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("variance", ["local", "sandwich", "nn", "hc1", "clusters"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.filterwarnings("ignore:.*fewer than two clusters")
def test_a_weight_of_three_is_three_equal_rows(method, variance, degree):
    smoother, dense, places = pair("gaussian", "ridge", degree)
    times = dense.w.astype(int)
    rows = Smoother(Keys.read(np.repeat(dense.x, times, axis=0), np.repeat(dense.y, times, axis=0)), smoother.recipe)
    code, options, found = np.arange(70) % 9, {"method": method, "variance": variance}, []
    for each, groups in ((smoother, code), (rows, np.repeat(code, times))):
        if variance == "clusters":
            each, options["variance"] = replace(each, exclusion=Exclusion(groups)), "local"
        found.append(interval(each, places, simultaneous="multiplier", n_resamples=99, **options))
    for name in (*NAMES, "critical"):
        assert_allclose(*(getattr(one, name) for one in found), rtol=1e-10, err_msg=name)
