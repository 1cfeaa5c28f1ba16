"""Rows in clusters: each cluster counts as one row, and new rows are of a new one."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor

PLACES = np.array([[0.1], [0.5], [0.9]])


def clustered(count=24, seed=0):
    generator = np.random.default_rng(seed)
    size = generator.integers(1, 6, count)
    group = np.repeat(np.arange(count), size)
    X = generator.uniform(size=(len(group), 1))
    shock = 0.4 * generator.normal(size=count)
    return X, np.sin(6 * X[:, 0]) + shock[group] + 0.2 * generator.normal(size=len(group)), group


def weighted_rank(score, share, level, count):
    """The least score that shares of at least this level are at or below, one share being infinite."""
    order = np.argsort(score)
    reached = np.cumsum(share[order]) >= level * (count + 1) - 1e-9
    return score[order][np.argmax(reached)] if reached.any() else np.inf


def test_the_jackknife_plus_is_of_fits_without_each_cluster():
    X, y, group = clustered()
    fitted = LocalLinearRegressor(bandwidth=0.2).fit(X, y)
    lower, upper, share = (np.empty((3, len(y))), np.empty((3, len(y))), 1.0 / np.bincount(group)[group])
    for g in np.unique(group):
        rest, mine = group != g, group == g
        left = LocalLinearRegressor(bandwidth=0.2).fit(X[rest], y[rest])
        reach = np.abs(y[mine] - left.predict(X[mine]))
        lower[:, mine] = left.predict(PLACES)[:, None] - reach
        upper[:, mine] = left.predict(PLACES)[:, None] + reach
    found = fitted.prediction_interval(PLACES, method="jackknife+", groups=group, level=0.9)
    for place in range(3):
        assert found.upper[place] == pytest.approx(weighted_rank(upper[place], share, 0.9, 24), rel=1e-11)
        assert found.lower[place] == pytest.approx(-weighted_rank(-lower[place], share, 0.9, 24), rel=1e-11)
    assert "at least 0.8 (1 - 2 alpha)" in found.guarantee


@pytest.mark.parametrize("method", ["adaptive", "split"])
def test_calibration_clusters_count_as_one_row_each(method):
    X, y, group = clustered()
    fitted = NadarayaWatsonRegressor(bandwidth=0.2).fit(X[group < 10], y[group < 10])
    there = group >= 10
    found = fitted.prediction_interval(
        PLACES, method=method, X_calibration=X[there], y_calibration=y[there], groups=group[there], level=0.9
    )
    if method == "split":
        score = np.abs(y[there] - fitted.predict(X[there]))
        share = 1.0 / np.bincount(group)[group[there]]
        assert_allclose(found.upper - found.center, weighted_rank(score, share, 0.9, 14), rtol=1e-11)
    assert "a value of a new cluster with a probability of at least 0.9" in found.guarantee
    # Every row of a cluster twice changes no share.
    again = np.r_[np.flatnonzero(there), np.flatnonzero(there)]
    doubled = fitted.prediction_interval(
        PLACES, method=method, X_calibration=X[again], y_calibration=y[again], groups=group[again], level=0.9
    )
    assert_allclose(doubled.upper, found.upper, rtol=1e-12)


def test_groups_of_the_fit_are_the_default():
    X, y, group = clustered()
    with_groups = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, y, groups=group)
    without = NadarayaWatsonRegressor(bandwidth=0.2).fit(X, y)
    for method in ("adaptive", "jackknife+"):
        one = with_groups.prediction_interval(PLACES, method=method)
        other = without.prediction_interval(PLACES, method=method, groups=group)
        assert_array_equal(one.upper, other.upper)
        assert np.all(one.upper != without.prediction_interval(PLACES, method=method).upper)
    # Groups of one row each are rows.
    single = with_groups.prediction_interval(PLACES, groups=np.arange(len(y)))
    assert_allclose(single.upper, without.prediction_interval(PLACES).upper, rtol=1e-11)
