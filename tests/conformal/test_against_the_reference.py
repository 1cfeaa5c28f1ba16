"""Every method against fits that are made again from the rows, and sets that are searched."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool.conformal import METHODS
from kernpool.conformal.jackknife_plus import fold_sizes
from kernpool.inference.resampling.random_draws import generator as draws_of
from kernpool.smoother import EvaluationPoints, absolute_residuals
from tests.support.conformal_cases import case, other_setting, own_setting
from tests.support.dense_conformal import jackknife_plus, ranks, residuals, units

SITUATIONS = ["line", "weighted line", "product", "ridge", "levels"]
CASES = [("gaussian", situation, degree) for degree in (0, 1) for situation in SITUATIONS] + [
    ("epanechnikov", "line", 0),
    ("epanechnikov", "weighted line", 1),
    ("epanechnikov", "product", 1),
    ("tricube", "levels", 0),
    ("laplace", "weighted line", 1),
    ("boxcar", "line", 0),
]


def close(found, expected, tolerance):
    assert_array_equal(np.isinf(found), np.isinf(expected))
    assert_allclose(found, expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("kernel", "situation", "degree"), CASES)
def test_jackknife_plus_is_of_fits_without_each_row(kernel, situation, degree):
    smoother, dense, places, code = case(kernel, situation, degree)
    expected = jackknife_plus(dense, places.query, 0.8, code)
    found = METHODS["jackknife+"].find(own_setting(smoother, places, 0.8))
    close(np.stack(found[1:]), expected, 1e-12 * max(1.0, np.abs(dense.y).max()))


@pytest.mark.parametrize("degree", [0, 1])
def test_split_counts_the_errors_of_other_rows(degree):
    smoother, dense, places, _ = case("gaussian", "weighted line", degree)
    generator = np.random.default_rng(1)
    there, value = generator.uniform(size=(25, 1)), generator.normal(size=(25, 2))
    found = METHODS["split"].find(other_setting(smoother, places, EvaluationPoints(there), value, 0.8))
    error = np.sort(np.abs(value - dense.coefficients(there)[:, 0] @ dense.y), axis=0)[20]  # the 21st of 25
    center = dense.coefficients(places.query)[:, 0] @ dense.y
    close(np.stack(found[1:]), np.stack([center - error, center + error]), 1e-12 * 20)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("degree", [0, 1])
def test_adaptive_scales_scores_by_the_residuals_around(degree, own):
    smoother, dense, places, _ = case("gaussian", "weighted line", degree)
    residual = residuals(dense)
    wide = dense.__class__(dense.x, residual, 3.0 * dense.h, dense.w, dense.kernel, degree=0)
    there = wide.coefficients(places.query)[:, 0] @ residual
    if own:
        setting, rows = own_setting(smoother, places, 0.8), units(dense.w)
        score = (residual / wide.deleted())[rows]
    else:
        generator = np.random.default_rng(1)
        x, value = generator.uniform(size=(25, 1)), generator.normal(size=(25, 2))
        setting = other_setting(smoother, places, EvaluationPoints(x), value, 0.8)
        score = np.abs(value - dense.coefficients(x)[:, 0] @ dense.y) / (wide.coefficients(x)[:, 0] @ residual)
    _, rank = ranks(0.8, len(score))
    center = dense.coefficients(places.query)[:, 0] @ dense.y
    width = there * np.sort(score, axis=0)[rank - 1]
    found = METHODS["adaptive"].find(setting)
    close(np.stack(found[1:]), np.stack([center - width, center + width]), 1e-10)


def test_cv_plus_leaves_out_its_folds():
    smoother, dense, places, _ = case("gaussian", "weighted line", 1)
    setting = own_setting(smoother, places, 0.8, random_state=3)
    rows = units(dense.w)
    folds, size = fold_sizes(float(len(rows)))
    drawn = rows_in_order(rows, dense.w)[draws_of(3, 0).permutation(len(rows))][: folds * size]
    fits, score = np.empty((len(places.query), len(drawn), 2)), np.empty((len(drawn), 2))
    for fold in range(folds):
        mine = np.arange(len(drawn)) % folds == fold
        left = dense.w - np.bincount(drawn[mine], minlength=len(dense.w))
        without = dense.coefficients(np.vstack([places.query, dense.x]), frequency=np.tile(left, (4 + len(left), 1)))
        values = without[:, 0] @ dense.y
        fits[:, mine] = values[:4, None]
        score[mine] = np.abs(dense.y - values[4:])[drawn[mine]]
    low, high = ranks(0.8, len(drawn))
    _, lower, upper = METHODS["cv+"].find(setting)
    close(lower, np.sort(fits - score, axis=1)[:, low - 1], 1e-11)
    close(upper, np.sort(fits + score, axis=1)[:, high - 1], 1e-11)


def rows_in_order(rows, weight):
    return np.repeat(np.flatnonzero(weight > 0), weight[weight > 0].astype(int))


def test_the_scale_is_of_rows_that_have_a_residual():
    smoother, _, _, _ = case("gaussian", "line", 0)
    residual = np.full((30, 2), 2.0)
    residual[:10] = np.nan
    scale = absolute_residuals(smoother, residual)
    assert_array_equal(scale.weight, np.r_[np.zeros(10), np.ones(20)])
    assert_allclose(scale.predict(scale.problem(EvaluationPoints(np.array([[0.5]])))), 2.0)
