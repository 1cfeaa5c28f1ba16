"""Kernel ridge regression with an intercept, compared with refits, with weights as copies and with scikit-learn."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as PlainRidge

from kernpool.estimators.stacking import kernel_ridge
from kernpool.estimators.stacking.kernel_ridge import KernelRidge, Spectrum, fit_kernel_ridge
from kernpool.estimators.stacking.ridge_kernels import AnovaKernel, ColumnKernel, LaplaceKernel
from kernpool.estimators.stacking.standard_columns import centered, mean_of, spread_of
from tests.support.problems import rows_of

N, D = 40, 3
SCALE = np.diag([0.9, 0.6, 0.2])
KERNELS = {
    "laplace": lambda d: LaplaceKernel(SCALE[:d, :d]),
    "anova": lambda d: AnovaKernel(
        tuple(ColumnKernel(slice(j, j + 1), None, None) for j in range(d)), np.diag(SCALE)[:d] / SCALE[0, 0]
    ),
}


@pytest.fixture
def rows(generator):
    columns = generator.normal(size=(N, D))
    value = np.column_stack([np.sin(columns[:, 0]), 5 * columns[:, 1]]) + 0.1 * generator.normal(size=(N, 2))
    return columns, value, generator.integers(1, 4, N).astype(float)


def fit(name, columns, value, weight, group=None, landmarks=None):
    kernel = KERNELS[name](columns.shape[1])
    kernels = [replace(kernel, setting=setting) for setting in kernel.SETTINGS]
    return fit_kernel_ridge(
        kernels, rows_of(columns, value, weight, group), None if landmarks is None else columns[landmarks]
    )


def refit(found: KernelRidge, columns, value, weight, at):
    """The prediction of the same kernel and ridge, fitted to rows with other weights."""
    kept = weight > 0
    spectrum = Spectrum.of(found.kernel, columns[kept], weight[kept], columns[kept])
    coefficients = spectrum.coefficients(value[kept], found.ridge)
    kernel = found.kernel.at(at, spectrum.landmarks) - spectrum.mean_kernel
    return mean_of(value[kept], weight[kept]) + kernel @ coefficients


@pytest.mark.parametrize("name", KERNELS)
def test_leave_one_out_is_a_refit_without_one_unit_of_the_row(name, rows):
    columns, value, weight = rows
    found = fit(name, columns, value, weight)
    for i in range(N):
        without = weight - (np.arange(N) == i)
        expected = refit(found, columns, value, without, columns[i : i + 1])
        np.testing.assert_allclose(found.left_out[i : i + 1], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_leave_cluster_out_is_a_refit_without_the_cluster(name, rows):
    columns, value, weight = rows
    group = np.arange(N) % 7
    found = fit(name, columns, value, weight, group=group)
    for g in range(7):
        there = group == g
        expected = refit(found, columns, value, np.where(there, 0.0, weight), columns[there])
        np.testing.assert_allclose(found.left_out[there], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_it_is_the_ridge_of_scikit_learn_around_the_intercept(name, rows):
    """Which has no intercept: that of ours is taken away from the outputs first."""
    columns, value, _ = rows
    found = fit(name, columns, value, np.ones(N))
    intercept = found.center - found.spectrum.mean_kernel @ found.coefficients
    plain = PlainRidge(alpha=found.ridge, kernel="precomputed").fit(
        found.kernel.at(columns, columns), value - intercept
    )
    at = rows[0][:5] + 0.3
    expected = plain.predict(found.kernel.at(at, columns)) + intercept
    np.testing.assert_allclose(found.predict(at), expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.coefficients.sum(axis=0), 0.0, atol=1e-8)  # what makes the intercept the best


@pytest.mark.parametrize("name", KERNELS)
def test_weights_are_copies(name, rows):
    columns, value, weight = rows
    times = weight.astype(int)
    weighted = fit(name, columns, value, weight)
    copied = fit(name, np.repeat(columns, times, axis=0), np.repeat(value, times, axis=0), np.ones(times.sum()))
    assert weighted.kernel.setting == copied.kernel.setting
    assert weighted.ridge == pytest.approx(copied.ridge)
    np.testing.assert_allclose(weighted.predict(columns + 0.2), copied.predict(columns + 0.2), atol=1e-7)
    np.testing.assert_allclose(np.repeat(weighted.left_out, times, axis=0), copied.left_out, atol=1e-7)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("landmarks", [None, np.arange(0, N, 3)], ids=["all", "landmarks"])
def test_it_is_a_linear_smoother(name, landmarks, rows):
    columns, value, weight = rows
    found = fit(name, columns, value, weight, landmarks=landmarks)
    at = columns + 0.25
    weights = found.weights(at)
    np.testing.assert_allclose(weights @ value, found.predict(at), atol=1e-8)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-9)
    hat = found.weights(columns)
    np.testing.assert_allclose(found.spectrum.leverages(np.array([found.ridge]))[0], np.diag(hat) / weight, atol=1e-9)


@pytest.mark.parametrize("landmarks", [None, np.arange(0, N, 3)], ids=["all", "landmarks"])
def test_blocks_of_rows_change_nothing(landmarks, monkeypatch, rows):
    columns, value, weight = rows
    whole = fit("laplace", columns, value, weight, landmarks=landmarks)
    monkeypatch.setattr(kernel_ridge, "BLOCK_CELLS", 100)
    found = fit("laplace", columns, value, weight, landmarks=landmarks)
    np.testing.assert_allclose(found.predict(columns + 0.2), whole.predict(columns + 0.2), atol=1e-9)
    np.testing.assert_allclose(found.left_out, whole.left_out, atol=1e-9)


def test_noise_is_flattened(generator):
    """The ridge grid reaches as far as outputs without a signal need."""
    columns = generator.normal(size=(60, D))
    found = [fit("laplace", columns, generator.normal(size=(60, 1)), np.ones(60)) for _ in range(15)]
    leverages = [each.spectrum.leverages(np.array([each.ridge])).sum() for each in found]
    assert np.median(leverages) < 10.0
    assert min(leverages) < 2.0


def test_gradients_are_finite_differences(rows):
    columns, value, weight = rows
    found, at, step = fit("laplace", columns, value, weight), columns + 0.1, 1e-6
    gradients = found.kernel.gradients(found.spectrum.landmarks, found.coefficients, at)
    for a in range(D):
        move = step * np.eye(D)[a]
        expected = (found.predict(at + move) - found.predict(at - move)) / (2 * step)
        np.testing.assert_allclose(gradients[:, a], expected, atol=1e-6)


def test_the_laplace_kernel_has_no_slope_where_points_coincide():
    slopes = LaplaceKernel(np.eye(1), (2.0,)).gradients(np.array([[0.0], [2.0]]), np.ones((2, 1)), np.zeros((1, 1)))
    assert slopes.item() == pytest.approx(np.exp(-1.0) / 2.0)


@pytest.mark.parametrize("name", KERNELS)
def test_singular_kernels_are_solved(name, generator):
    """Copies of rows, rows that are all the same, and a constant output."""
    columns = np.repeat(generator.normal(size=(5, 2)), 4, axis=0)
    value = generator.normal(size=(20, 1))
    found = fit(name, columns, value, np.ones(20))
    np.testing.assert_allclose(
        (found.weights(columns) @ value).reshape(5, 4), np.repeat(found.predict(columns[::4]), 4, axis=1)
    )
    same = fit(name, np.zeros((4, 2)), value[:4], np.ones(4))
    np.testing.assert_allclose(same.predict(np.ones((1, 2))), value[:4].mean(axis=0, keepdims=True))
    flat = fit(name, columns, np.full((20, 1), 0.1), np.ones(20))
    assert flat.error == 0.0
    assert (flat.predict(columns) == 0.1).all()


def test_the_spread_of_huge_and_tiny_outputs():
    value = np.array([[1e200, 1e-200, 7.0], [3e200, 3e-200, 7.0]])
    np.testing.assert_allclose(spread_of(value, np.ones(2)), [1e200, 1e-200, 1.0])
    assert (centered(np.full((3, 1), 0.1), np.array([0.1, 0.2, 0.3])) == 0.0).all()
