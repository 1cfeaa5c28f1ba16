"""The search for probabilities: the criterion against a dense reference, its slopes, and what it finds."""

import numpy as np
import pytest
from scipy.optimize import check_grad

from kernpool import get_kernel
from kernpool.bandwidth.criteria import prior_of_others, prior_share
from kernpool.bandwidth.search import search
from kernpool.bandwidth.search.log_loss import LogLoss
from kernpool.core import Categories
from kernpool.core.input_validation import column_spread
from kernpool.kernels import get_categorical_kernel
from tests.support.searches import canonical_rows, objective_of, search_log_loss

GAUSSIAN = get_kernel("gaussian")


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(60, 2))
    code = generator.integers(0, 3, (60, 1))
    number = (X[:, 0] + code[:, 0] + 0.5 * generator.normal(size=60) > 1).astype(int) + (X[:, 1] > 1)
    return X, np.eye(3)[number], code, generator.integers(1, 4, 60).astype(float)


def criterion_of(X, label, weight=None, code=None, kernel="gaussian"):
    levels = () if code is None else (3,)
    kernels = () if code is None else (get_categorical_kernel("aitchison_aitken"),)
    rows = canonical_rows(X, label, weight, code)
    options = {"categories": Categories(kernels, levels), "kernel": get_kernel(kernel)}
    fits = objective_of(rows, "log_loss", kind=search.fastest_objective, **options)
    return LogLoss(fits, column_spread(rows.X, rows.weight))


def test_the_criterion_is_that_of_a_dense_reference(table):
    X, label, _, weight = table
    spread, h = column_spread(X, weight), np.array([0.5, 0.8])
    kernel = np.exp(-0.5 * np.sum(((X[:, None] - X) / h) ** 2, axis=2)) * (weight - np.eye(60))
    pooled = np.sum(label * (kernel @ label), axis=1) / kernel.sum(axis=1)
    found = prior_share(pooled, prior_of_others(label, weight), weight)
    expected = found.log_loss + np.sum(spread / h) / weight.sum()
    assert criterion_of(X, label, weight).at(np.log(h)).penalised == pytest.approx(expected, rel=1e-10)


def test_empty_windows_cost_what_they_cost_squared_errors_and_once(table):
    """Half a logarithm of squares is a log likelihood; such a row is predicted by the mean of the others."""
    X, label, _, _ = table
    spread, h = column_spread(X), np.array([0.3, 0.4])
    kernel = np.maximum(1 - np.sum(((X[:, None] - X) / h) ** 2, axis=2), 0) * (1 - np.eye(60))
    empty = kernel.sum(axis=1) == 0
    kernel[empty] = (1 - np.eye(60))[empty]
    pooled = np.sum(label * (kernel @ label), axis=1) / kernel.sum(axis=1)
    expected = prior_share(pooled, prior_of_others(label)).log_loss + np.sum(spread / h) / 60 - np.log(1 - empty.mean())
    assert 0.2 < empty.mean() < 0.8
    found = criterion_of(X, label, kernel="epanechnikov").evaluate(np.log(h)).penalised
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("kernel", ["gaussian", "triweight"])
def test_slopes_are_those_of_differences(table, kernel):
    X, label, code, weight = table
    criterion = criterion_of(X, label, weight, code, kernel)
    x = np.array([1.2, 0.9, 0.7])

    def value(x):
        return criterion.at(x, slope=False).penalised

    off = check_grad(value, lambda x: criterion.at(x).slope, x, epsilon=1e-6)
    assert off < 1e-5 * np.linalg.norm(criterion.at(x).slope) + 1e-6


def test_a_column_of_noise_is_smoothed_away():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(150, 4))
    label = np.eye(2)[(X[:, 0] + 0.3 * generator.normal(size=150) > 0).astype(int)]
    found = search_log_loss(X, label, kernel=GAUSSIAN)
    assert found.relevance[0] > 0.5
    assert found.relevance[1:].sum() < 0.5
    assert found.values.min() == pytest.approx(found.value)


def test_structure_that_wide_windows_do_not_see():
    """A checkerboard is flat in wide windows; the ladder of common factors finds it."""
    X = np.random.default_rng(2).uniform(size=(300, 2))
    label = np.eye(2)[(np.floor(3 * X).sum(axis=1) % 2).astype(int)]
    assert search_log_loss(X, label, kernel=GAUSSIAN).value < 0.5


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "epanechnikov"])
def test_one_factor_is_the_best_of_all(kernel):
    generator = np.random.default_rng(3)
    X = generator.uniform(size=(120, 1))
    label = np.eye(2)[(generator.uniform(size=120) < 0.5 + 0.4 * np.sin(20 * X[:, 0])).astype(int)]
    found = search_log_loss(X, label, kernel=get_kernel(kernel))
    criterion = criterion_of(X, label, kernel=kernel)
    values = [criterion.evaluate(criterion.log_spread + np.log([h])).penalised for h in np.geomspace(0.02, 20, 150)]
    assert found.value <= min(values) + 2e-3
    assert found.common_factor


@pytest.mark.parametrize("columns", [1, 2])
def test_many_rows_start_from_few(columns, monkeypatch):
    generator = np.random.default_rng(4)
    X = generator.normal(size=(400, columns))
    label = np.eye(2)[(X[:, 0] + 0.5 * generator.normal(size=400) > 0).astype(int)]
    whole = search_log_loss(X, label, kernel=GAUSSIAN)
    monkeypatch.setattr(search, "MOST_ROWS_FOR_GRID", 100)
    found = search_log_loss(X, label, kernel=GAUSSIAN)
    assert found.rows == 400
    assert found.value == pytest.approx(whole.value, abs=5e-3)
