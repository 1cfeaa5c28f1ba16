"""How often intervals hold the next value: a few hundred samples here, thousands in the benchmarks."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor

RUNS, NEW = 120, 100  # the standard errors of 300 samples with 20 new rows each
CALIBRATED = ("split", "cqr")  # by other rows


def sample(generator, n):
    x = generator.uniform(size=n)
    return x[:, None], np.sin(2 * np.pi * x) + (0.2 + 0.6 * x) * generator.normal(size=n)


def coverage(method, n, *, model=NadarayaWatsonRegressor, bandwidth=0.1, level=0.9, runs=RUNS):
    """Share of new values that intervals hold, and its standard error over samples."""
    shares = np.empty(runs)
    for run in range(runs):
        generator = np.random.default_rng([0, run])
        X, y = sample(generator, n)
        new, value = sample(generator, NEW)
        other = sample(generator, 60) if method in CALIBRATED else (None, None)
        options = dict(zip(("X_calibration", "y_calibration"), other, strict=True))
        fitted = model(bandwidth=bandwidth).fit(X, y)
        found = fitted.prediction_interval(new, level=level, method=method, random_state=run, **options)
        shares[run] = np.mean((found.lower <= value) & (value <= found.upper))
    return shares.mean(), shares.std() / np.sqrt(runs)


@pytest.mark.slow
@pytest.mark.parametrize("model", [NadarayaWatsonRegressor, LocalLinearRegressor])
@pytest.mark.parametrize(
    ("method", "least", "most"),
    [("split", 0.9, 0.9 + 1 / 61), ("jackknife+", 0.8, 0.93), ("cv+", 0.72, 0.94),
     ("adaptive", 0.87, 0.93), ("cqr", 0.9, 0.9 + 1 / 61)],
)  # fmt: skip
def test_a_given_bandwidth_has_the_coverage_that_is_promised(model, method, least, most):
    found, error = coverage(method, 60, model=model)
    assert least - 4 * error <= found <= most + 4 * error


@pytest.mark.slow
def test_a_searched_bandwidth_costs_little():
    found, error = coverage("adaptive", 150, bandwidth="loo", runs=30)
    assert 0.87 - 4 * error <= found <= 0.92 + 4 * error


@pytest.mark.slow
def test_new_clusters_are_covered():
    inside = []
    for run in range(RUNS):
        generator = np.random.default_rng([7, run])
        size = generator.integers(1, 8, 64)
        group = np.repeat(np.arange(64), size)
        x = generator.uniform(size=len(group))
        y = np.sin(2 * np.pi * x) + 0.5 * generator.normal(size=64)[group] + 0.2 * generator.normal(size=len(group))
        old = group < 40
        fitted = NadarayaWatsonRegressor(bandwidth=0.1).fit(x[old, None], y[old])
        found = fitted.prediction_interval(x[~old, None], groups=group[old])
        held = (found.lower <= y[~old]) & (y[~old] <= found.upper)
        inside.append(np.mean([held[group[~old] == g].mean() for g in range(40, 64)]))
    error = np.std(inside) / np.sqrt(RUNS)
    assert 0.89 - 4 * error <= np.mean(inside) <= 0.93 + 4 * error
