"""Prediction intervals and summaries of learned estimators."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="learning needs the extra 'torch'")

from kernpool import LearnedPoolingClassifier, LearnedPoolingRegressor, NadarayaWatsonRegressor

QUICK = {"max_epochs": 3, "random_state": 0}


def draw(n, seed, columns=4):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n, columns))
    return X, np.sin(X.sum(axis=1)) + 0.3 * generator.normal(size=n)


def test_split_conformal_is_that_of_its_residuals():
    X, y = draw(200, 0)
    model = LearnedPoolingRegressor(**QUICK).fit(X[:100], y[:100])
    interval = model.prediction_interval(X[:5], level=0.8, method="split", X_calibration=X[100:], y_calibration=y[100:])
    half = np.sort(np.abs(y[100:] - model.predict(X[100:])))[int(np.ceil(0.8 * 101)) - 1]
    np.testing.assert_allclose(interval.center, model.predict(X[:5]), rtol=1e-12)
    np.testing.assert_allclose(interval.upper - interval.center, half, rtol=1e-9)
    assert interval.guarantee.startswith("Covers a new value with a probability of at least 0.8")
    assert interval.n_calibration == 100


def test_the_start_has_the_intervals_of_the_closed_form():
    X, y = draw(120, 1)
    X_calibration, y_calibration = draw(60, 2)
    rows = {"X_calibration": X_calibration, "y_calibration": y_calibration}
    model = LearnedPoolingRegressor(max_epochs=0, random_state=0).fit(X, y)
    closed = NadarayaWatsonRegressor(bandwidth="loo").fit(X, y)
    found, expected = (one.prediction_interval(X[:7], **rows) for one in (model, closed))
    np.testing.assert_allclose(found.lower, expected.lower, rtol=1e-7)
    np.testing.assert_allclose(found.upper, expected.upper, rtol=1e-7)


@pytest.mark.slow  # sixty epochs, four times
@pytest.mark.parametrize("similarity", ["linear", "encoder"])
def test_validation_rows_calibrate_what_gradient_steps_have_seen(similarity):
    """By all training rows, whose outputs the map has seen, 80 to 84 percent are covered."""
    covered = []
    for seed in range(2):
        X, y = draw(700, seed, columns=8)
        model = LearnedPoolingRegressor(similarity, max_epochs=60, random_state=0).fit(X[:200], y[:200])
        interval = model.prediction_interval(X[200:], level=0.9)
        assert interval.n_calibration == len(model.validation_rows_) == 30
        assert "without a finite-sample guarantee" in interval.guarantee
        covered.append(np.mean((interval.lower <= y[200:]) & (y[200:] <= interval.upper)))
    assert 0.86 <= np.mean(covered) <= 0.97


def test_intervals_of_several_outputs():
    X, y = draw(80, 3)
    model = LearnedPoolingRegressor(**QUICK).fit(X, np.c_[y, X[:, 0]])
    interval, auto, adaptive = (
        model.prediction_interval(X[:6], **how) for how in ({}, {"method": "auto"}, {"method": "adaptive"})
    )
    assert interval.method == auto.method == adaptive.method == "adaptive"
    np.testing.assert_array_equal([auto.lower, adaptive.lower], [interval.lower, interval.lower])
    assert interval.lower.shape == (6, 2)
    assert (interval.lower < interval.upper).all()


def test_refusals():
    X, y = draw(60, 4)
    model = LearnedPoolingRegressor(**QUICK).fit(X, y)
    with pytest.raises(ValueError, match="method must be one of 'auto', 'adaptive', 'split', got 'full'"):
        model.prediction_interval(X, method="full")
    with pytest.raises(ValueError, match=r"method='split' needs calibration rows .* give X_calibration"):
        model.prediction_interval(X, method="split")
    with pytest.raises(ValueError, match="X_calibration and y_calibration go together"):
        model.prediction_interval(X, X_calibration=X)
    with pytest.raises(ValueError, match=r"y_calibration must have shape \(60,\)"):
        model.prediction_interval(X, X_calibration=X, y_calibration=y[:3])
    with pytest.raises(ValueError, match="level"):
        model.prediction_interval(X, level=1.5)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_epochs": 2}, "max_epochs"),
        ({"max_epochs": 60, "patience": 1, "learning_rate": 0.5, "penalty": 0.0}, "patience"),
    ],
)
def test_a_model_says_why_training_ended(settings, reason):
    X, y = draw(60, 5)
    model = LearnedPoolingRegressor(random_state=0, **settings).fit(X, y)
    loss = model.history_["validation_loss"]
    assert model.stop_reason_ == reason
    assert model.n_epochs_ == len(loss) - 1
    assert model.best_validation_loss_ == loss[model.best_epoch_] == loss.min()
    if reason == "patience":
        assert model.n_epochs_ == model.best_epoch_ + 1 < 60
    lines = str(model.summary()).splitlines()
    assert lines[0] == "LearnedPoolingRegressor: 60 rows, 4 columns, 1 output"
    assert lines[1].split() == ["similarity", "linear,", "4", "to", "4"]
    assert f"{model.n_epochs_} epochs, {model.best_epoch_} is kept" in lines[2]
    assert lines[2].endswith(f"stopped by {reason}")


def test_training_that_diverges_says_so():
    X, y = draw(60, 6)
    with pytest.warns(UserWarning, match="learning ended in epoch 1"):
        model = LearnedPoolingRegressor("per_feature", learning_rate=1e4, max_epochs=20, random_state=0).fit(X, y)
    assert (model.stop_reason_, model.n_epochs_) == ("divergence", 0)


def test_the_summary_of_a_classifier():
    X, y = draw(60, 7)
    summary = LearnedPoolingClassifier(output_size=2, **QUICK).fit(X, y > 0, np.full(60, 2.0 / 3)).summary()
    assert (summary.rows, summary.outputs, summary.similarity) == (pytest.approx(40.0), 2, "linear, 4 to 2")


def test_a_model_of_another_device_is_loaded_and_predicts(tmp_path):
    """Only training needs the device."""
    X, y = draw(60, 8)
    model = LearnedPoolingRegressor(**QUICK).fit(X, y).set_params(device="cuda:7")
    model.save(tmp_path / "model")
    again = LearnedPoolingRegressor.load(tmp_path / "model")
    assert again.device == "cuda:7"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    with pytest.raises(ValueError, match=r"device 'cuda:7' cannot be used: .* device=None is the CPU"):
        again.fit(X, y)
