"""Confidence and prediction intervals of a stack: dense formulas, and how often they cover."""

import numpy as np
import pytest
from scipy.stats import t

from kernpool import InferenceWarning, KernelStackingRegressor, LocalLinearRegressor

N = 60


def sine(generator, n=N):
    x = generator.uniform(size=(n, 1))
    curve = np.sin(2 * np.pi * x[:, 0])
    return x, curve, curve + 0.3 * generator.normal(size=n)


def fitted_to(x, y, **options):
    return KernelStackingRegressor(LocalLinearRegressor(bandwidth=0.1)).fit(x, y, **options)


@pytest.mark.parametrize("method", ["naive", "robust", "auto"])
def test_confidence_intervals_are_those_of_the_dense_formula(method, generator):
    x, _, y = sine(generator)
    model = fitted_to(x, y)
    at = np.linspace(0.1, 0.9, 5)[:, None]
    found = model.confidence_interval(at, level=0.9, method=method)
    hat = model.attention_weights(x)
    rest, robust = np.eye(N) - hat, method != "naive"
    weights = model.attention_weights(at) @ (np.eye(N) + robust * rest)
    noise = model.residuals().noise ** 2
    df = N - 2 * np.trace(hat) + np.sum(hat**2)
    without = (hat - np.diag(np.diag(hat))) / (1 - np.diag(hat))[:, None]
    explained = np.sum((rest @ y) ** 2) / df * (1 + np.sum(without**2) / N)
    unexplained = max(np.mean((y - model.leave_one_out().prediction[:, 0]) ** 2) - explained, 0)
    error = np.sqrt(weights**2 @ noise + robust * (unexplained + 0.5 * np.mean((hat @ rest @ y) ** 2)))
    half = t.ppf(0.95, df) * error
    np.testing.assert_allclose(found.center, weights @ y)
    np.testing.assert_allclose(found.standard_error, error)
    np.testing.assert_allclose(found.upper - found.center, half)
    np.testing.assert_allclose(found.center - found.lower, half)
    np.testing.assert_allclose(found.first_predictions, model.predict(at))
    assert (found.effective_rows > 1).all()


def test_errors_of_clusters_add_up_in_each(generator):
    x, _, y = sine(generator)
    group = np.arange(N) // 3
    model = fitted_to(x, y, groups=group)
    at = np.array([[0.3], [0.7]])
    weights = model.attention_weights(at)
    residual = y - model.leave_one_out().prediction[:, 0]
    sums = np.array([[row[group == g] @ residual[group == g] for g in range(20)] for row in weights])
    found = model.confidence_interval(at, method="naive")
    np.testing.assert_allclose(found.standard_error, np.sqrt(np.sum(sums**2, axis=1)))
    assert (found.df < 20).all()
    with pytest.raises(ValueError, match="groups has 4 clusters"):
        fitted_to(x, y, groups=np.arange(N) % 4).confidence_interval(at)


def test_prediction_intervals_are_scaled_leave_one_out_residuals(generator):
    x, _, y = sine(generator)
    model = fitted_to(x, y)
    at = np.array([[0.2], [0.8]])
    found = model.prediction_interval(at, level=0.9)
    np.testing.assert_allclose(found.center, model.predict(at))
    distance = (x - x.T) / 0.3
    kernel = np.exp(-0.5 * distance**2)  # three bandwidths wide
    np.fill_diagonal(kernel, 0.0)
    residual = np.abs(y - model.leave_one_out().prediction[:, 0])
    scores = np.sort(residual / (kernel @ residual / kernel.sum(axis=1)))
    there = np.exp(-0.5 * ((at - x.T) / 0.3) ** 2)
    half = scores[int(np.ceil(0.9 * (N + 1))) - 1] * (there @ residual / there.sum(axis=1))
    np.testing.assert_allclose(found.upper - found.center, half)
    assert "approximate" in found.guarantee or "about" in found.guarantee
    assert found.method == "adaptive"
    np.testing.assert_array_equal(model.prediction_interval(at, method="adaptive").upper, found.upper)


def test_calibration_rows_give_a_guarantee(generator):
    x, _, y = sine(generator)
    others, _, z = sine(generator)
    model = fitted_to(x, y)
    found = model.prediction_interval(x[:3], method="split", X_calibration=others, y_calibration=z)
    half = np.sort(np.abs(z - model.predict(others)))[int(np.ceil(0.9 * (N + 1))) - 1]
    np.testing.assert_allclose(found.upper - found.center, half)
    assert "without" not in found.guarantee
    assert model.prediction_interval(x[:3], X_calibration=others, y_calibration=z).n_calibration == N
    clustered = KernelStackingRegressor().fit(x, y, groups=np.arange(N) // 5)
    with pytest.raises(ValueError, match="X_calibration takes rows one by one, and this model was fitted with groups="):
        clustered.prediction_interval(x[:3], method="split", X_calibration=others, y_calibration=z)


def test_several_outputs_have_intervals_of_their_own(generator):
    x, _, y = sine(generator)
    both = fitted_to(x, np.column_stack([y, 10 * y]))
    for found in (both.confidence_interval(x[:3]), both.prediction_interval(x[:3])):
        np.testing.assert_allclose(found.lower[:, 1], 10 * found.lower[:, 0])


def test_refused_options_name_the_argument(generator):
    x, _, y = sine(generator)
    model = fitted_to(x, y)
    with pytest.raises(ValueError, match="method must be one of 'auto', 'robust', 'naive', got 'quadratic'"):
        model.confidence_interval(x, method="quadratic")
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        model.confidence_interval(x, level=95)
    with pytest.raises(ValueError, match="method must be one of 'auto', 'adaptive', 'split', got 'cqr'"):
        model.prediction_interval(x, method="cqr")
    with pytest.raises(ValueError, match="'split' needs calibration rows"):
        model.prediction_interval(x, method="split")
    with pytest.raises(ValueError, match="X_calibration and y_calibration go together"):
        model.prediction_interval(x, X_calibration=x)
    few = fitted_to(x[:4], y[:4])
    with pytest.warns(InferenceWarning, match="at least 9 rows"):
        assert np.isinf(few.prediction_interval(x[:1]).width).all()


@pytest.mark.slow
def test_intervals_cover_as_often_as_they_say():
    """Of 95 percent intervals 93 to 98 in a hundred, of 90 percent prediction intervals 88 to 93."""
    covered, predicted, runs = [], [], 60
    for seed in range(runs):
        generator = np.random.default_rng(seed)
        x, _, y = sine(generator, 100)
        at, curve, new = sine(generator, 200)
        model = KernelStackingRegressor().fit(x, y)
        interval, prediction = model.confidence_interval(at), model.prediction_interval(at)
        covered.append(np.mean((interval.lower <= curve) & (curve <= interval.upper)))
        predicted.append(np.mean((prediction.lower <= new) & (new <= prediction.upper)))
    assert 0.93 < np.mean(covered) < 0.97
    assert 0.88 < np.mean(predicted) < 0.93
