"""Searches that are stopped by their seconds. The clock ticks once per look, so that nothing is timed."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, get_kernel
from kernpool.bandwidth.search import search
from kernpool.core import Categories
from kernpool.kernels import get_categorical_kernel
from tests.support.searches import search_bandwidth

GAUSSIAN = get_kernel("gaussian")


def make_table(n=120, d=2):
    """A wave, and noise."""
    generator = np.random.default_rng(3)
    X = generator.uniform(-1, 1, size=(n, d))
    return X, np.sin(4 * X[:, 0]) + 0.3 * generator.normal(size=n)


@pytest.fixture
def ticks(monkeypatch):
    """Let a second pass whenever somebody looks at the clock; few rows for starts."""
    looks = []

    def clock():
        looks.append(1)
        return float(len(looks))

    monkeypatch.setattr(search, "perf_counter", clock)
    monkeypatch.setattr(search, "MOST_ROWS_FOR_GRID", 500)
    monkeypatch.setattr(search, "MOST_ROWS_FOR_STARTS", 500)
    return looks


SITUATIONS = {
    "few rows": (120, 2, "gaussian", 0),
    "few rows, quick": (450, 2, "gaussian", 0),
    "a column": (120, 1, "gaussian", 0),
    "a column, quick": (450, 1, "gaussian", 0),
    "ends": (120, 2, "epanechnikov", 0),
    "planes": (120, 2, "gaussian", 1),
    "many rows": (700, 2, "gaussian", 0),
    "many rows, a column": (700, 1, "gaussian", 0),
}


@pytest.mark.parametrize("seconds", [0.5, 3.5, 15.5])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_stopped_search_returns_the_best_so_far(situation, seconds, ticks):
    n, d, kernel, degree = SITUATIONS[situation]
    X, y = make_table(n, d)
    with pytest.warns(ConvergenceWarning, match="seconds") as caught:
        found = search_bandwidth(X, y[:, None], kernel=get_kernel(kernel), degree=degree, seconds=seconds)
    assert len(caught) == 1
    assert f"stopped after {seconds:g} seconds" in found.reason
    assert len(found.values) >= 1
    assert found.value <= np.nanmin(found.values) * (1 + 1e-10)
    if "on 500 rows" in found.reason or "Scott" in found.reason:
        assert found.rows == min(n, 500)
        if n > 500:  # no pass over all rows
            return
    model = (LocalLinearRegressor if degree else NadarayaWatsonRegressor)(kernel, bandwidth=found.bandwidth)
    left_out = model.fit(X, y).leave_one_out()
    occupied = 1 - left_out.empty_windows / n
    assert found.value == pytest.approx(left_out.error / occupied**2, rel=1e-9)


@pytest.mark.parametrize("kernel", ["boxcar", "epanechnikov"])
def test_a_stopped_search_does_not_leave_all_windows_empty(kernel, ticks):
    """A grid begins with its narrowest windows."""
    X, y = make_table()
    with pytest.warns(ConvergenceWarning, match="rule of Scott"):
        found = search_bandwidth(X, y[:, None], kernel=get_kernel(kernel), degree=2, seconds=3.5)
    assert found.empty_windows < len(X)
    assert NadarayaWatsonRegressor(kernel, found.bandwidth).fit(X, y).leave_one_out().empty_windows < len(X)


def test_it_is_stopped_within_a_look_at_the_clock(ticks):
    """Nothing is evaluated once the seconds are over, but once where all rows had no turn yet."""
    X, y = make_table(700, 2)
    with pytest.warns(ConvergenceWarning):
        found = search_bandwidth(X, y[:, None], kernel=GAUSSIAN, seconds=30.5)
    assert len(ticks) == 31 + 3  # and when it began, for the limit and for the record, and ended
    assert found.evaluations <= 31 + 1
    assert found.rows == 500
    sample = found.bandwidth * (700 / 500) ** (1 / (4 + np.count_nonzero(found.relevance)))
    assert found.tried[np.argmin(found.values)] == pytest.approx(sample, rel=1e-9)
    assert "on 500 rows, rescaled to all rows by the optimal rate" in found.reason


def test_more_seconds_are_never_worse(ticks):
    X, y = make_table()
    values = []
    for seconds in (1.5, 10.5, 30.5, 90.5, 1e9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            values.append(search_bandwidth(X, y[:, None], kernel=GAUSSIAN, seconds=seconds).value)
    assert values == sorted(values, reverse=True)
    assert values[-1] == search_bandwidth(X, y[:, None], kernel=GAUSSIAN).value


@pytest.mark.parametrize("seconds", [0.5, 40.5])
def test_levels_are_searched_within_the_seconds(seconds, ticks):
    X, y = make_table()
    level = np.random.default_rng(0).integers(0, 3, (len(X), 1))
    levels = Categories((get_categorical_kernel("aitchison_aitken"),), (3,))
    with pytest.warns(ConvergenceWarning):
        found = search_bandwidth(X, y[:, None], code=level, categories=levels, kernel=GAUSSIAN, seconds=seconds)
    assert np.all((found.smoothing >= 0) & (found.smoothing <= levels.largest))
    assert np.isfinite(found.value)


def test_a_criterion_that_is_not_defined_at_the_rule_falls_back_to_infinity(ticks):
    """AICc has no value where the trace of the hat matrix is as good as the number of rows."""
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(40, 12)), generator.normal(size=40)
    with pytest.warns(ConvergenceWarning, match="practically infinite"):
        found = search_bandwidth(X, y[:, None], kernel=GAUSSIAN, criterion="aicc", seconds=0.5)
    assert np.all(found.relevance == 0)


@pytest.mark.parametrize(
    ("seconds", "reason"), [(0.5, "the rule of Scott"), (30.5, "on 500 rows, rescaled to all rows")]
)
def test_classes_of_many_rows_are_searched_within_the_seconds(seconds, reason, ticks):
    X, y = make_table(700, 2)
    with pytest.warns(ConvergenceWarning):
        found = NadarayaWatsonClassifier(search={"seconds": seconds}).fit(X, y > 0).bandwidth_search_
    assert len(ticks) <= np.ceil(seconds) + 3
    assert (found.rows, np.isfinite(found.value)) == (500, True)
    assert reason in found.reason
