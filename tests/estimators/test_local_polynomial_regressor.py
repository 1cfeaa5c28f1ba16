"""Local polynomials of degree 0, 1 and 2 as one estimator: the fits of others, dense sums, refusals, saved models."""

import numpy as np
import pytest

from kernpool import (
    LocalLinearRegressor,
    LocalPolynomialRegressor,
    NadarayaWatsonRegressor,
    Nearest,
    RankDeficiencyWarning,
    open_chunks,
)
from tests.support.dense_inference import Dense

RANDOM = np.random.default_rng(0)
X = RANDOM.uniform(size=(120, 3))
Y = np.sin(5 * X[:, 0]) + X[:, 1] ** 2 + 0.2 * RANDOM.normal(size=120)
PLANE, AT = X[:, :2], X[:9, :2] + 0.01


def quadratic(bandwidth="regularised", **options):
    return LocalPolynomialRegressor(bandwidth=bandwidth, degree=2, **options)


@pytest.mark.parametrize(("degree", "kind"), [(0, NadarayaWatsonRegressor), (1, LocalLinearRegressor)])
def test_the_first_degrees_are_the_other_estimators(degree, kind):
    one, other = kind().fit(PLANE, Y), LocalPolynomialRegressor(degree=degree).fit(PLANE, Y)
    np.testing.assert_array_equal(one.predict(AT), other.predict(AT))


@pytest.mark.parametrize(("criterion", "columns"), [("loo", 1), ("regularised", 2), ("loo", 3), ("aicc", 1)])
def test_a_search_finds_one_factor_of_least_criterion(criterion, columns):
    key = X[:, :columns]
    model = quadratic(criterion).fit(key, Y)

    def value(factor):
        dense = Dense(key, Y[:, None], model.bandwidth_ * factor, np.ones(120), degree=2)
        trace = dense.leverage().sum()
        penalty = np.exp(1 + 2 * (trace + 1) / (118 - trace)) if criterion == "aicc" else 1.0
        return np.mean(dense.squared("hc0" if criterion == "aicc" else "hc3")) * penalty

    best = value(1.0)
    assert best < min(value(0.98), value(1.02))
    assert np.ptp(model.bandwidth_ / quadratic("scott").fit(key, Y).bandwidth_) < 1e-9
    if criterion != "aicc":
        assert model.loo_error_ == pytest.approx(best) == model.leave_one_out().error


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_errors_and_slopes_are_those_of_dense_sums(columns):
    key, at = X[:, :columns], X[:9, :columns] + 0.01
    model, dense = quadratic(0.4).fit(key, Y), Dense(key, Y[:, None], np.full(columns, 0.4), np.ones(120), degree=2)
    share = dense.shares(at)
    np.testing.assert_allclose(model.attention_weights(at), share, atol=1e-11)
    for variance in ("hc0", "hc3"):
        found, squared = model.get_prediction(at, variance=variance), dense.squared(variance)
        np.testing.assert_allclose(found.standard_error, np.sqrt(share**2 @ squared)[:, 0], rtol=1e-7)
    slopes = dense.shares(at, row=1)
    np.testing.assert_allclose(found.slope[:, 0], slopes @ Y, rtol=1e-9)
    np.testing.assert_allclose(found.slope_standard_error[:, 0], np.sqrt(slopes**2 @ squared)[:, 0], rtol=1e-7)
    interval = model.confidence_interval(at)
    assert interval.method == "naive"
    np.testing.assert_array_equal(interval.center, model.predict(at))


def test_slopes_of_quadratics_are_reproduced():
    y = 1 + X[:, 0] - 2 * X[:, 1] + X[:, 0] * X[:, 1] - 3 * X[:, 0] ** 2
    model = LocalPolynomialRegressor("tricube", window=Nearest(0.5), degree=2).fit(PLANE, y)
    found = model.get_prediction(AT)
    np.testing.assert_allclose(found.slope, np.column_stack([1 + AT[:, 1] - 6 * AT[:, 0], AT[:, 0] - 2]), atol=1e-9)


def test_windows_of_few_rows_are_said():
    with pytest.warns(RankDeficiencyWarning, match="quadratic"):
        quadratic(0.4, kernel="boxcar").fit([[0.0], [1.0], [1.2]], [0.0, 1.0, 3.0]).predict([[1.1]])


REFUSED = {
    "robust=": lambda: quadratic(robust=True).fit(PLANE, Y),
    "periodic": lambda: quadratic(periodic={0: 1}).fit(PLANE, Y),
    "categorical": lambda: quadratic(unordered=[0]).fit(PLANE.round(), Y),
    "one to 3 columns": lambda: quadratic(0.4).fit(np.tile(X, 2), Y),
    "not in memory": lambda: quadratic(0.4).fit(open_chunks([(PLANE, Y)])),
    "explain": lambda: FITTED.get_prediction(AT).explain(),
    "additive_terms": lambda: FITTED.get_prediction(AT).additive_terms(),
    "jackknife": lambda: FITTED.prediction_interval(AT, method="jackknife+"),
    "corrected": lambda: FITTED.confidence_interval(AT, method="robust"),
    "significance_test": lambda: FITTED.significance_test(0),
    "0, 1 or 2, got 3": lambda: LocalPolynomialRegressor(degree=3).fit(PLANE, Y),
}
FITTED = quadratic(0.4).fit(PLANE, Y)


@pytest.mark.parametrize("words", REFUSED)
def test_what_a_quadratic_does_not_have_is_refused(words):
    with pytest.raises(ValueError, match=words):
        REFUSED[words]()
