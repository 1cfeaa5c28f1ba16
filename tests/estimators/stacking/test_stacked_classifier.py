"""Stacked kernel classification: mixtures of probabilities with weights of largest leave-one-out likelihood."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LogisticRegression

from kernpool import KernelStackingClassifier, LocalLinearRegressor, NadarayaWatsonClassifier
from kernpool.estimators.stacking.stack import ScoreCalibration, mixture_weights

N = 60
LOCAL = NadarayaWatsonClassifier(bandwidth=0.6)


@pytest.fixture
def rows(generator):
    X = generator.normal(size=(N, 2))
    score = X[:, 0] + X[:, 1] + 0.5 * generator.normal(size=N)
    return X, np.array(["low", "mid", "high"])[np.digitize(score, [-0.7, 0.7])]


def test_probabilities_are_the_mixture_of_the_members(rows):
    X, y = rows
    model = KernelStackingClassifier(LOCAL).fit(X, y)
    local, *ridges = model.members_.values()
    columns = (X - X.mean(axis=0)) / X.std(axis=0)
    label = np.searchsorted(model.classes_, y)
    weights = np.array(list(model.member_weights_.values()))
    each, left_out = [local.predict_proba(X)], [local.leave_one_out().probability]
    for ridge in ridges:
        logistic = LogisticRegression(C=10.0, max_iter=10_000).fit(ridge.left_out, label)
        each.append(logistic.predict_proba(ridge.predict(columns)))
        left_out.append(logistic.predict_proba(ridge.left_out))
    expected = np.tensordot(weights, each, 1)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (model.predict(X) == model.classes_[expected.argmax(axis=1)]).all()
    mixed = weights @ np.stack(left_out)[:, np.arange(N), label]
    assert model.loo_log_loss_ == pytest.approx(-np.mean(np.log(mixed)))


def test_sets_are_thresholds_of_the_probabilities_of_the_mixture(rows):
    X, y = rows
    model = KernelStackingClassifier(LOCAL).fit(X, y)
    label = np.searchsorted(model.classes_, y)
    left_out = model.leave_one_out().probability[np.arange(N), label]
    found = model.predict_set(X + 0.3, 0.8, allow_empty=True)
    threshold = np.sort(1.0 - left_out)[int(np.ceil(0.8 * (N + 1))) - 1]
    assert found.threshold == pytest.approx(threshold)
    assert (found.member == (1.0 - model.predict_proba(X + 0.3) <= threshold + 1e-12)).all()
    others = model.predict_set(X + 0.3, 0.8, X_calibration=X, y_calibration=y)
    own = np.sort(1.0 - model.predict_proba(X)[np.arange(N), label])
    assert others.threshold == pytest.approx(own[int(np.ceil(0.8 * (N + 1))) - 1])
    far = KernelStackingClassifier(NadarayaWatsonClassifier("epanechnikov", 0.5, empty="nan")).fit(X, y)
    assert far.predict_set(X[:3] + 9.0).member.any(axis=1).all()  # the priors, where the window is empty


def test_mixture_weights_are_half_way_between_the_most_likely_and_equal_ones(generator):
    likelihood, weight = generator.uniform(0.05, 1.0, (40, 2)), generator.uniform(0.5, 2.0, 40)
    loss = lambda p: -weight @ np.log(likelihood @ [p, 1 - p])  # noqa: E731
    best = minimize_scalar(loss, bounds=(0, 1), method="bounded", options={"xatol": 1e-9}).x
    np.testing.assert_allclose(mixture_weights(likelihood, weight), [0.5 * best + 0.25, 0.75 - 0.5 * best], atol=1e-4)
    assert mixture_weights(np.zeros((3, 2)), np.ones(3)).tolist() == [0.5, 0.5]


def test_classes_of_one_row_and_single_classes_are_answered(rows):
    X, _ = rows
    rare = np.array(["common"] * (N - 1) + ["rare"])
    model = KernelStackingClassifier(LOCAL).fit(X, rare)
    assert np.isfinite(model.loo_log_loss_)
    assert (model.predict_proba(X) > 0).all()
    single = KernelStackingClassifier(LOCAL).fit(X, ["only"] * N)
    assert (single.predict_proba(X) == 1.0).all()
    each = KernelStackingClassifier(LOCAL).fit(X[:3], ["a", "b", "c"])
    np.testing.assert_allclose(each.predict_proba(X[:3]).sum(axis=1), 1.0)
    one = ScoreCalibration(np.zeros((2, 2)), np.array([1, 1]), np.ones(2))
    assert one.probability(np.ones((1, 2))).tolist() == [[0.0, 1.0]]


def test_refusals_name_the_argument(rows):
    X, y = rows
    with pytest.raises(TypeError, match="local must be None, or a NadarayaWatsonClassifier, got LocalLinearRegressor"):
        KernelStackingClassifier(LocalLinearRegressor()).fit(X, y)
    with pytest.raises(ValueError, match="at least two rows"):
        KernelStackingClassifier(LOCAL).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="continuous"):
        KernelStackingClassifier(LOCAL).fit(X, X[:, 0])


def test_left_out_probabilities_and_the_summary(rows):
    X, y = rows
    weight = np.arange(N) % 3
    model = KernelStackingClassifier(LOCAL).fit(X, y, weight)
    found = model.leave_one_out()
    kept, label = weight > 0, np.searchsorted(model.classes_, y)
    assert np.isnan(found.probability[~kept]).all()
    own = found.probability[np.arange(N), label]
    assert model.loo_log_loss_ == pytest.approx(-np.average(np.log(own[kept]), weights=weight[kept]))
    brier = np.sum((found.probability - np.eye(3)[label]) ** 2, axis=1)
    assert found.error == pytest.approx(np.average(brier[kept], weights=weight[kept]))
    summary = model.summary()
    right = found.probability[kept].argmax(axis=1) == label[kept]
    assert summary.accuracy == pytest.approx(np.average(right, weights=weight[kept]))
    assert [member.weight for member in summary.members] == list(model.member_weights_.values())
    assert summary.priors["high"] == pytest.approx(np.average(y == "high", weights=weight))
