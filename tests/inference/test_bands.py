"""Bands: paths and largest errors against tables of shares, published constants, and what has no band."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import ndtri

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, kernel_names, make_kernel
from kernpool.core import Exclusion, Keys
from kernpool.inference import interval
from kernpool.inference.confidence.simultaneous_bands import (
    critical_value,
    critical_values,
    largest_errors,
    path_length,
)
from kernpool.inference.resampling import random_draws
from kernpool.inference.variance.standard_errors import errors_of
from kernpool.smoother import EvaluationPoints, Smoother, estimate
from kernpool.smoother.bias_correction import METHODS
from tests.support.inference_cases import bend, pair, smoother_of_bend

# Samples of tests are not about the bias that these bandwidths leave.
pytestmark = pytest.mark.filterwarnings("ignore:.*the correction for bias is larger than two standard errors")

SMOOTH = [name for name in kernel_names() if name not in ("boxcar", "constant")]


def length(share, weight):
    """Sum of the angles between neighbouring shares of unit rows."""
    share = share[:, weight > 0] / np.sqrt(weight[weight > 0])
    unit = share / np.linalg.norm(share, axis=1, keepdims=True)
    return np.sum(2 * np.arcsin(0.5 * np.linalg.norm(np.diff(unit, axis=0), axis=1)))


def grid(number, low=0.0, high=1.0):
    return EvaluationPoints(np.linspace(low, high, number)[:, None])


def test_published_constants():
    """Of locfit: kappa0 of the local linear fit by the same path, 12.53726, with 2.97965 at 95 percent."""
    smoother = smoother_of_bend()
    kappa, pieces = path_length(smoother, grid(101), "robust")
    assert kappa == pytest.approx(15.355769972827396, rel=1e-12)
    assert pieces == 1
    assert critical_value(kappa, 0.95) == pytest.approx(3.043171055918386, rel=1e-12)
    assert critical_value(kappa, 0.90) == pytest.approx(2.80734365233044, rel=1e-12)
    plain, _ = path_length(smoother, grid(2001), "naive")
    assert plain == pytest.approx(12.53726, abs=1e-4)
    assert critical_value(plain, 0.95) == pytest.approx(2.97965, abs=1e-5)
    constant, _ = path_length(smoother_of_bend(degree=0), grid(2001), "naive")
    assert constant == pytest.approx(11.33318, abs=1e-4)


@pytest.mark.covering
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", SMOOTH)
def test_paths_are_those_of_the_reference(kernel, method, degree):
    smoother, dense, _ = pair(kernel, "weighted line", degree)
    places = grid(40)
    # Where no key lies between two places, their shares of Laplace are equal, and an angle of zero is known to 1e-8.
    for column in (None, 0)[: 1 + (degree == 1 and method == "robust")]:
        expected = length(dense.shares(places.query, method=method, row=0 if column is None else 1), dense.w)
        assert path_length(smoother, places, method, column)[0] == pytest.approx(expected, rel=1e-8)


def test_the_length_does_not_depend_on_units_and_hardly_on_the_grid():
    x, y = bend()
    one = LocalLinearRegressor(bandwidth=0.06).fit(x[:, None], y)
    other = LocalLinearRegressor(bandwidth=60.0).fit(1000 * x[:, None] - 7, y)
    at = np.linspace(0, 1, 11)[:, None]
    options = {"method": "robust", "simultaneous": True}
    found = one.confidence_interval(at, **options), other.confidence_interval(1000 * at - 7, **options)
    assert found[0].critical == pytest.approx(found[1].critical, rel=1e-9)
    assert found[0].critical == pytest.approx(3.043171, abs=2e-3)


@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_critical_values_are_those_of_the_formula_and_grow(level):
    assert critical_value(0.0, level) < critical_value(5.0, level) < critical_value(5.0, level, pieces=2)
    c = critical_value(5.0, level)
    from scipy.stats import norm

    assert 5 / np.pi * np.exp(-(c**2) / 2) + 2 * norm.sf(c) == pytest.approx(1 - level, rel=1e-10)


@pytest.mark.filterwarnings("ignore:.*no key with positive weight")
@pytest.mark.filterwarnings("ignore:.*determine no slope in some direction")
def test_gaps_make_pieces():
    x = np.r_[np.linspace(0, 1, 40), np.linspace(3, 4, 40)]
    model = NadarayaWatsonRegressor("epanechnikov", bandwidth=0.2).fit(x[:, None], np.cos(99 * x))
    found = model.confidence_interval(np.linspace(0, 4, 81)[:, None], method="robust", simultaneous=True)
    assert np.isnan(found.width).any()
    assert np.isfinite(found.critical)
    smoother, _, _ = pair("epanechnikov", "line", 0)
    assert path_length(smoother, grid(50, 0.0, 9.0), "naive")[1] == 1


@pytest.mark.filterwarnings("ignore:.*determine no slope in some direction")
@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # which is one of the cases
def test_where_the_tube_does_not_hold_it_is_refused_and_the_multiplier_bootstrap_takes_over():
    x, y = bend(60)
    at = np.linspace(0.1, 0.9, 5)[:, None]
    edge = make_kernel("half a boxcar", lambda u: np.where(u < 1, 2 - u, 0.0), support=1.0)
    two = NadarayaWatsonRegressor(bandwidth=0.3).fit(np.column_stack([x, y]), y)
    cases = [
        (NadarayaWatsonRegressor("boxcar", bandwidth=0.3).fit(x[:, None], y), at, "jumps wherever a row enters"),
        (NadarayaWatsonRegressor(edge, bandwidth=0.3).fit(x[:, None], y), at, "jumps wherever a row enters"),
        (two, np.column_stack([x, y])[:3], "one numeric column, and there are 2"),
        (NadarayaWatsonRegressor(bandwidth=0.1).fit(x[:, None], y), [[0.5], [30000.0]], "bandwidths apart"),
    ]
    for model, places, reason in cases:
        with pytest.raises(ValueError, match=f"{reason}.*simultaneous='multiplier'"):
            model.confidence_interval(places, simultaneous="tube")
        assert model.confidence_interval(places, simultaneous=True).band == "multiplier"
    assert cases[-1][0].confidence_interval(at, simultaneous=True).band == "tube"


def test_a_tube_is_of_one_combination_of_levels():
    x, y = bend(80)
    frame = pd.DataFrame({"x": x, "kind": pd.Categorical(np.where(np.arange(80) % 2, "a", "b"))})
    model = LocalLinearRegressor(bandwidth=0.1, smoothing=0.2, unordered=["kind"]).fit(frame, y)
    found = model.confidence_interval(frame[frame.kind == "a"], simultaneous=True)
    assert found.critical > 2.5
    with pytest.raises(ValueError, match="several combinations of categories"):
        model.confidence_interval(frame, simultaneous="tube")
    both = model.confidence_interval(frame, simultaneous=True)
    assert both.band == "multiplier"
    assert both.critical > found.critical


def largest(dense, share, residual, n_resamples, seed, code=None):
    """Largest errors, one draw for each repeated row or for each cluster, output by output."""
    unit = np.repeat(np.arange(len(dense.w)), dense.w.astype(int))
    group = np.arange(len(unit)) if code is None else code[unit]
    drawn = random_draws.multipliers("gaussian", seed, slice(0, n_resamples), group.max() + 1)
    found = []
    for one in residual.T:
        error = (share / np.maximum(dense.w, 1) * one)[:, unit] @ np.equal.outer(group, np.arange(group.max() + 1))
        found.append(np.abs(error @ drawn / np.linalg.norm(error, axis=1)[:, None]).max(axis=0))
    return np.stack(found, axis=1)


@pytest.mark.covering
@pytest.mark.parametrize("situation", ["line", "weighted line", "ridge", "product", "levels"])
@pytest.mark.parametrize("kernel", kernel_names())
def test_largest_errors_are_those_of_the_reference(kernel, situation, monkeypatch):
    smoother, dense, places = pair(kernel, situation, 1)
    code, last = np.arange(70) % 9, smoother.columns - 1
    clusters = replace(smoother, exclusion=Exclusion(code)).residual_of_units
    for column, method, variance, residual, groups in [
        (None, "robust", "sandwich", np.sqrt(dense.squared("hc3")), None),
        (last, "quadratic", "local", np.ones((70, 1)), None),
        (None, "robust", "local", clusters, code),
    ]:
        found = estimate(smoother, places, method, column)
        grouped = smoother if groups is None else replace(smoother, exclusion=Exclusion(code))
        (errors,) = errors_of(grouped, places, [found], variance)
        share = dense.shares(places.query, places.code, method, row=0 if column is None else 1 + column)
        target = largest(dense, share, residual, 20, 7, groups)
        for numbers, pairs, most in ((1 << 23, 1 << 20, 64), (1 << 23, 200, 7), (0, 1 << 20, 7)):  # tables, pooling
            monkeypatch.setattr("kernpool.inference.confidence.simultaneous_bands.NUMBERS", numbers)
            monkeypatch.setattr("kernpool.smoother.quadratic_forms.PAIRS", pairs)
            monkeypatch.setattr(random_draws, "MOST_COLUMNS", most)
            options = {"method": method, "n_resamples": 20, "random_state": 7}
            one = largest_errors(smoother, places, found, errors, **options)
            assert_allclose(one, target, rtol=1e-11, atol=1e-11)


def test_fractions_of_weights_have_the_law_of_whole_numbers():
    smoother, dense, places = pair("gaussian", "ridge", 1)
    near = Smoother(Keys.read(dense.x, dense.y, np.where(dense.w > 0, dense.w + 1e-9, 0.0)), smoother.recipe)
    options = {"simultaneous": True, "variance": "sandwich", "n_resamples": 1999}
    one, other = (interval(each, places, **options) for each in (smoother, near))
    assert_allclose(other.critical, one.critical, rtol=0.04)


@pytest.mark.parametrize("variance", ["local", "sandwich"])
@pytest.mark.parametrize("level", [0.5, 0.95, 0.99])
def test_a_band_is_wider_than_its_intervals_and_of_one_place_it_is_one(level, variance):
    """By draws of a single place, which may happen to be small, it is no narrower."""
    smoother, options = smoother_of_bend(), {"level": level, "variance": variance}
    alone, at = EvaluationPoints(np.array([[0.3]])), grid(21)
    wide, narrow = (interval(smoother, at, simultaneous=kind, **options) for kind in ("tube", False))
    assert np.all(wide.width > 1.3 * narrow.width)
    assert_array_equal(wide.center, narrow.center)
    one, single = (interval(smoother, alone, simultaneous=kind, **options) for kind in ("tube", False))
    assert one.critical == pytest.approx(-ndtri(0.5 - 0.5 * level), rel=1e-12)
    for seed in range(5):
        options |= {"n_resamples": 99, "random_state": seed}
        drawn = interval(smoother, alone, simultaneous="multiplier", **options)
        assert drawn.critical >= one.critical * (1 - 1e-12)
        assert drawn.width >= single.width * (1 - 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_the_tube_formula_and_the_draws_agree(method):
    smoother, at = smoother_of_bend(), EvaluationPoints(np.linspace(0, 1, 201)[:, None])
    tube, drawn = (
        interval(smoother, at, method=method, simultaneous=kind, n_resamples=3999) for kind in ("tube", "multiplier")
    )
    assert drawn.critical == pytest.approx(tube.critical, abs=0.06)
    assert_array_equal(tube.center, drawn.center)
    assert (tube.band, drawn.band) == ("tube", "multiplier")


def test_too_few_draws_are_told():
    with pytest.raises(ValueError, match=r"n_resamples=18 are too few for level=0\.95.*n_resamples=19 or more"):
        critical_values(np.zeros((18, 1)), 0.95)
    assert critical_values(np.full((19, 1), 5.0), 0.95) == 5.0
