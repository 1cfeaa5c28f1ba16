"""Equally spaced rows, where leave-one-out is flat at narrow windows: no search ends at a staircase."""

import numpy as np
import pytest

from kernpool import (
    LocalPolynomialRegressor,
    NadarayaWatsonClassifier,
    NadarayaWatsonRegressor,
    Nearest,
    get_kernel,
    open_chunks,
)
from kernpool.bandwidth import canonical_ratio

x = np.linspace(0.0, 1.0, 50)
means, polynomials = NadarayaWatsonRegressor, LocalPolynomialRegressor


def is_wide(model, step=x[1]):
    """Whether a row a step away has the weight that .45 of a step of the Gaussian gives it, along each column."""
    profile = get_kernel(model.kernel).profile
    return np.all(profile(step / model.bandwidth_) >= np.exp(-0.5 / 0.45**2) * profile(np.zeros(1)))


MODELS = [
    means(),
    polynomials(degree=1),
    means("epanechnikov", "aicc"),
    polynomials("tricube", "loo", degree=2),
    polynomials("laplace", "gcv"),
    means(robust="huber"),
    means(gap=2),
    NadarayaWatsonClassifier(bandwidth="loo"),
]


@pytest.mark.parametrize("model", MODELS)
def test_no_default_window_is_of_one_row(model):
    for noise in (0.0, 0.01, 0.3):
        y = np.sin(6 * x) + noise * np.random.default_rng(1).normal(size=50)
        assert is_wide(model.fit(x, y > 0 if model is MODELS[-1] else y))
    assert is_wide(means().fit(x, np.sin(6 * x), groups=np.arange(50) // 5))


@pytest.mark.parametrize("model", [means(), means(window=Nearest())])
def test_errors_between_rows_are_like_those_of_lines(model):
    between = np.linspace(0.05, 0.95, 400)
    model.fit(x, x**2)
    dots = np.interp(between, x, x**2) - between**2
    assert np.linalg.norm(model.predict(between) - between**2) < 10 * np.linalg.norm(dots)
    if model.window == "fixed":
        found = model.confidence_interval([[0.5]])
        assert found.lower < found.upper


@pytest.mark.parametrize("kind", [means, polynomials])
def test_narrow_windows_that_the_rows_ask_for(kind):
    """Days of many weeks predict each other, and so do rows of a dense stretch."""
    random = np.random.default_rng(0)
    day, week = np.tile(np.arange(7.0), 20), np.repeat(np.arange(20.0), 7)
    of_day = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 1.0])
    model = kind().fit(np.column_stack([day, week]), of_day[day.astype(int)] + 0.2 * random.normal(size=140))
    week = np.column_stack([np.arange(7.0), np.full(7, 10.0)])
    np.testing.assert_allclose(model.predict(week), of_day, atol=0.3)
    X = np.append(random.uniform(0.0, 1000.0, 110), random.uniform(400.0, 404.0, 90))
    wave = np.where(abs(X - 402.0) < 2.0, np.sin(np.pi * X), 0.0)
    assert kind(bandwidth="loo").fit(X, wave).loo_error_ < 0.01


@pytest.mark.parametrize(
    "model", [means(), means("epanechnikov", "gcv"), means(bandwidth="loo"), polynomials("laplace", "loo")]
)
def test_windows_of_a_lattice_reach_the_next_row_of_each_column(model):
    """Without noise, which narrow windows do not see."""
    side, other = np.linspace(0.0, 1.0, 12), np.linspace(0.0, 2.0, 7)
    X, step = np.array([(a, b) for a in side for b in other]), np.array([side[1], other[1]])
    for curve in (lambda a, b: np.exp(a) + np.sin(3 * b), lambda a, b: a - b, lambda a, b: a**2 + 0 * b):
        assert np.all(model.fit(X, curve(*X.T)).bandwidth_ > 0.4499 * canonical_ratio(model.kernel) * step)


def test_samples_and_chunks_of_many_rows():
    X = np.linspace(0.0, 1.0, 2500)[:, None]
    y = np.sin(6 * X[:, 0])
    for rows in ((X, y), (open_chunks([(X[:900], y[:900]), (X[900:], y[900:])]),)):
        assert is_wide(means().fit(*rows), X[1])


def test_irregular_rows_repeated_values_and_given_bandwidths():
    close = np.sort(np.append(x, x[5:45:10] + 1e-4))
    assert is_wide(means().fit(close, close**2))
    level, noise = np.repeat(np.arange(5.0), 20), 0.1 * np.random.default_rng(0).normal(size=100)
    y = np.array([0.0, 9.0, 1.0, 7.0, -5.0]).repeat(20) + noise  # rows of one value predict each other
    np.testing.assert_allclose(means().fit(level, y).predict(np.arange(5.0)), y.reshape(5, 20).mean(axis=1), atol=1e-3)
    assert means(bandwidth=0.002).fit(x, x).bandwidth_ == 0.002
