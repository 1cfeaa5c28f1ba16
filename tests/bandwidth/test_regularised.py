"""The regularised search: its penalty, its ridge, and what it is for."""

from functools import partial

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from kernpool import LocalLinearRegressor
from kernpool.bandwidth.search.objective import FARTHEST, penalise_bandwidths
from kernpool.core import Categories
from kernpool.kernels import get_categorical_kernel, get_kernel
from tests.support.searches import canonical_rows, check_derivatives, objective_of


def rows_with_levels(n=60, seed=0):
    generator = np.random.default_rng(seed)
    X, code = generator.normal(size=(n, 2)), generator.integers(0, 3, size=(n, 1))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * code[:, 0] + 0.2 * generator.normal(size=n)
    categories = Categories((get_categorical_kernel("aitchison_aitken"),), (3,))
    return canonical_rows(X, y[:, None], None, code), categories


def penalty_of(log_spread, varies, largest):
    return partial(penalise_bandwidths, log_spread=log_spread, varies=varies, largest=largest)


def test_the_penalty_has_the_slope_that_it_says():
    regularity = penalty_of(np.log([0.5, 2.0, 1.0]), np.array([True, True, False]), np.array([2 / 3, 0.0]))
    theta, step = np.array([-1.0, 1.2, 9.0, 0.2, 0.0]), 1e-6
    slope = regularity(theta, 50.0)[1]
    for a in range(5):
        move = step * (np.arange(5) == a)
        expected = (regularity(theta + move, 50.0)[0] - regularity(theta - move, 50.0)[0]) / (2 * step)
        assert slope[a] == pytest.approx(expected, abs=1e-8)


def test_a_column_without_effect_costs_nothing_more_when_it_is_smoothed_away():
    regularity = penalty_of(np.zeros(2), np.ones(2, dtype=bool), np.zeros(0))
    near, far = (regularity(np.array([0.0, place]), 10.0) for place in (FARTHEST, FARTHEST + 5.0))
    assert near[0] == far[0]
    assert far[1][1] == 0.0


@pytest.mark.parametrize("criterion", ["regularised", "loo", "aicc", "gcv"])
@pytest.mark.parametrize(("kernel", "width"), [("gaussian", 0.7), ("epanechnikov", 2.5), ("laplace", 0.9)])
def test_residuals_have_the_derivatives_that_they_say(criterion, kernel, width):
    rows, categories = rows_with_levels()
    regularity = penalty_of(np.zeros(2), np.ones(2, dtype=bool), categories.largest)
    objective = objective_of(
        rows, criterion, categories=categories, degree=1, kernel=get_kernel(kernel), penalty=regularity, ridge=0.4
    )
    check_derivatives(objective, np.array([np.log(width), np.log(1.5 * width), 0.2]), 1e-5, step=1e-5)


def test_the_ridge_is_one_more_number_with_a_slope():
    rows, categories = rows_with_levels()
    objective = objective_of(rows, "loo", categories=categories, degree=1, kernel=get_kernel("gaussian"))
    check_derivatives(objective, np.array([-0.4, 0.1, 0.3, np.log(0.5)]))


@pytest.mark.slow  # ten columns
def test_it_predicts_few_rows_of_many_columns_better():
    X, y = make_friedman1(400, random_state=3)
    X, y, X_new, y_new = X[:100], y[:100], X[100:], y[100:]
    errors = {
        name: np.mean((LocalLinearRegressor(bandwidth=name).fit(X, y).predict(X_new) - y_new) ** 2)
        for name in ("loo", "regularised")
    }
    assert errors["regularised"] < errors["loo"]


def test_the_criterion_is_the_penalised_leave_one_out_error():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(80, 3))
    y = X[:, 0] ** 2 + generator.normal(size=80)
    model = LocalLinearRegressor().fit(X, y)
    search = model.bandwidth_search_
    spread, varies = np.log(search.spread), np.ones(3, dtype=bool)
    penalty = penalty_of(spread, varies, np.zeros(0))(np.log(model.bandwidth_), 80.0)[0]
    assert model.loo_error_ == pytest.approx(model.leave_one_out().error, rel=1e-9)
    assert search.value == pytest.approx(model.loo_error_ * np.exp(penalty), rel=1e-9)
    assert search.value <= search.values.min() * (1 + 1e-12)
    assert search.ridge == model.ridge_


def test_its_weight_falls_with_the_number_of_rows():
    regularity = penalty_of(np.zeros(1), np.ones(1, dtype=bool), np.zeros(0))
    assert regularity(np.array([-2.0]), 1000.0)[0] == pytest.approx(regularity(np.array([-2.0]), 10.0)[0] / 100)
