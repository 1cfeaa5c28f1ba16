"""Kernel ridge regression with an intercept, compared with refits, with weights as copies and with scikit-learn."""

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge as PlainRidge

from kernpool.estimators.stacking import kernel_ridge
from kernpool.estimators.stacking.kernel_ridge import (
    KernelRidge,
    RidgeKernel,
    Spectrum,
    centered,
    fit_kernel_ridge,
    kernels_of,
    mean_of,
    spread_of,
)

N, D = 40, 3


@pytest.fixture
def rows(generator):
    columns = generator.normal(size=(N, D))
    value = np.column_stack([np.sin(columns[:, 0]), 5 * columns[:, 1]]) + 0.1 * generator.normal(size=(N, 2))
    return columns, value, generator.integers(1, 4, N).astype(float)


def fit(columns, value, weight, **options):
    transform = np.diag([0.9, 0.6, 0.2])[: columns.shape[1], : columns.shape[1]]
    kernels = kernels_of(columns @ transform, weight)
    return fit_kernel_ridge(kernels, columns, value, weight, transform=transform, **options)


def refit(found: KernelRidge, columns, value, weight, at):
    """The prediction of the same kernel and ridge, fitted to rows with other weights."""
    kept = weight > 0
    points = (columns @ found.transform)[kept]
    spectrum = Spectrum.of_rows(found.kernel, points, weight[kept])
    coefficients = spectrum.coefficients(value[kept], found.ridge)
    kernel = found.kernel.at(at @ found.transform, points) - spectrum.mean_kernel
    return mean_of(value[kept], weight[kept]) + kernel @ coefficients


def test_leave_one_out_is_a_refit_without_one_unit_of_the_row(rows):
    columns, value, weight = rows
    found = fit(columns, value, weight)
    for i in range(N):
        without = weight - (np.arange(N) == i)
        expected = refit(found, columns, value, without, columns[i : i + 1])
        np.testing.assert_allclose(found.left_out[i : i + 1], expected, rtol=0, atol=1e-8)


def test_leave_cluster_out_is_a_refit_without_the_cluster(rows):
    columns, value, weight = rows
    group = np.arange(N) % 7
    found = fit(columns, value, weight, group=group)
    for g in range(7):
        there = group == g
        expected = refit(found, columns, value, np.where(there, 0.0, weight), columns[there])
        np.testing.assert_allclose(found.left_out[there], expected, rtol=0, atol=1e-8)


def test_it_is_the_ridge_of_scikit_learn_around_the_intercept(rows):
    """Which has no intercept: that of ours is taken away from the outputs first."""
    columns, value, _ = rows
    found = fit(columns, value, np.ones(N))
    points = columns @ found.transform
    intercept = found.center - found.spectrum.mean_kernel @ found.coefficients
    plain = PlainRidge(alpha=found.ridge, kernel="precomputed").fit(found.kernel.at(points, points), value - intercept)
    at = rows[0][:5] + 0.3
    expected = plain.predict(found.kernel.at(at @ found.transform, points)) + intercept
    np.testing.assert_allclose(found.predict(at), expected, rtol=0, atol=1e-8)
    np.testing.assert_allclose(found.coefficients.sum(axis=0), 0.0, atol=1e-8)  # what makes the intercept the best


def test_weights_are_copies(rows):
    columns, value, weight = rows
    times = weight.astype(int)
    weighted = fit(columns, value, weight)
    copied = fit(np.repeat(columns, times, axis=0), np.repeat(value, times, axis=0), np.ones(times.sum()))
    assert (weighted.kernel.length, weighted.ridge) == (pytest.approx(copied.kernel.length), copied.ridge)
    np.testing.assert_allclose(weighted.predict(columns + 0.2), copied.predict(columns + 0.2), atol=1e-7)
    np.testing.assert_allclose(np.repeat(weighted.left_out, times, axis=0), copied.left_out, atol=1e-7)


@pytest.mark.parametrize("landmarks", [None, np.arange(0, N, 3)], ids=["all", "landmarks"])
def test_it_is_a_linear_smoother(landmarks, rows):
    columns, value, weight = rows
    found = fit(columns, value, weight, landmarks=landmarks)
    at = columns + 0.25
    weights = found.weights(at)
    np.testing.assert_allclose(weights @ value, found.predict(at), atol=1e-8)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-9)
    hat = found.weights(columns)
    np.testing.assert_allclose(found.spectrum.leverage(found.ridge), np.diag(hat) / weight, atol=1e-9)


@pytest.mark.parametrize("landmarks", [None, np.arange(0, N, 3)], ids=["all", "landmarks"])
def test_blocks_of_rows_change_nothing(landmarks, monkeypatch, rows):
    columns, value, weight = rows
    whole = fit(columns, value, weight, landmarks=landmarks)
    monkeypatch.setattr(kernel_ridge, "BLOCK_ROWS", 7)
    found = fit(columns, value, weight, landmarks=landmarks)
    np.testing.assert_allclose(found.predict(columns + 0.2), whole.predict(columns + 0.2), atol=1e-9)
    np.testing.assert_allclose(found.left_out, whole.left_out, atol=1e-9)


def test_noise_is_flattened(generator):
    """The ridge grid reaches as far as outputs without a signal need."""
    columns = generator.normal(size=(60, D))
    found = [fit(columns, generator.normal(size=(60, 1)), np.ones(60)).ridge for _ in range(15)]
    assert np.median(found) > 3.0
    assert max(found) == kernel_ridge.RIDGES[-1]


def test_all_rows_as_landmarks_change_nothing(rows):
    columns, value, weight = rows
    whole, approximate = fit(columns, value, weight), fit(columns, value, weight, landmarks=np.arange(N))
    np.testing.assert_allclose(approximate.predict(columns + 0.2), whole.predict(columns + 0.2), atol=1e-7)
    np.testing.assert_allclose(approximate.left_out, whole.left_out, atol=1e-7)


def test_gradients_are_finite_differences(rows):
    columns, value, weight = rows
    found, at, step = fit(columns, value, weight), columns + 0.1, 1e-6
    gradients = found.gradients(at)
    for a in range(D):
        move = step * np.eye(D)[a]
        expected = (found.predict(at + move) - found.predict(at - move)) / (2 * step)
        np.testing.assert_allclose(gradients[:, a], expected, atol=1e-6)


def test_the_kernel_has_no_slope_where_points_coincide():
    found = RidgeKernel(2.0).slope(np.zeros((1, 1)), np.array([[0.0], [2.0]]))
    assert found.tolist() == [[0.0, -np.exp(-1.0) / 4.0]]


def test_singular_kernels_are_solved(generator):
    """Copies of rows, rows that are all the same, and a constant output."""
    columns = np.repeat(generator.normal(size=(5, 2)), 4, axis=0)
    value = generator.normal(size=(20, 1))
    found = fit(columns, value, np.ones(20))
    np.testing.assert_allclose(
        (found.weights(columns) @ value).reshape(5, 4), np.repeat(found.predict(columns[::4]), 4, axis=1)
    )
    same = fit(np.zeros((4, 2)), value[:4], np.ones(4))
    np.testing.assert_allclose(same.predict(np.ones((1, 2))), value[:4].mean(axis=0, keepdims=True))
    flat = fit(columns, np.full((20, 1), 0.1), np.ones(20))
    assert flat.error == 0.0
    assert (flat.predict(columns) == 0.1).all()


def test_the_spread_of_huge_and_tiny_outputs():
    value = np.array([[1e200, 1e-200, 7.0], [3e200, 3e-200, 7.0]])
    np.testing.assert_allclose(spread_of(value, np.ones(2)), [1e200, 1e-200, 1.0])
    assert (centered(np.full((3, 1), 0.1), np.array([0.1, 0.2, 0.3])) == 0.0).all()
