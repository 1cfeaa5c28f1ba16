"""Lowess: the numbers of statsmodels, the formula pair by pair, laws, ties and errors."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from statsmodels.nonparametric.smoothers_lowess import lowess as peer

from kernpool import EmptyWindowWarning, lowess

KINDS = {
    "uniform": lambda random, n: random.uniform(size=n),
    "exponential": lambda random, n: random.exponential(size=n),
    "lognormal": lambda random, n: random.lognormal(size=n),
    "pareto": lambda random, n: random.pareto(1.0, n),  # far rows have nearly all others at the edge of their window
}


def rows(kind="uniform", n=300, seed=0):
    random = np.random.default_rng(seed)
    x = KINDS[kind](random, n)
    return x, np.sin(3 * x) + 0.3 * random.normal(size=n) + 5 * (random.uniform(size=n) < 0.05)


def dense(x, y, frac, it, at):
    """The definition, window by window; the mean of coincident rows."""
    k, n = min(max(int(frac * len(x) + 1e-10), 2), len(x)), len(x)

    def fit(points, robust):
        out = np.full(len(points), np.nan)
        for i, q in enumerate(points):
            r = np.abs(x - q)
            s = np.sort(r)[k - 1]
            w = robust * (r == 0 if s == 0 else (1 - np.minimum(r / (s or 1), 1) ** 3) ** 3)
            if np.sum(w > 1e-12) >= (2 if s else 1):
                mean, center = np.average(y, weights=w), np.average(x, weights=w)
                spread = w @ (x - center) ** 2
                slope = w @ ((x - center) * (y - mean)) / spread if spread > 1e-20 * w.sum() * s**2 and s else 0.0
                out[i] = mean + slope * (q - center)
        return out

    robust = np.ones(n)
    for _ in range(it):
        fitted = fit(x, robust)
        residual = np.abs(y - np.where(np.isnan(fitted), y, fitted))
        robust = (1 - np.minimum(residual / (6 * np.median(residual)), 1) ** 2) ** 2
    return fit(at, robust)


def test_points_in_a_gap_above_whole_bins_of_rows():
    random = np.random.default_rng(1)
    x = np.r_[random.uniform(0, 10, 1600), random.uniform(19, 22, 4000)]
    y, points = np.sin(3 * x) + 0.1 * random.normal(size=5600), np.linspace(10, 19, 100)
    for side in (1.0, -1.0):
        found = lowess(y, side * x, frac=0.2, it=0, xvals=side * points)
        assert_allclose(found, dense(x, y, 0.2, 0, points), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [40, 300, 1500])
@pytest.mark.parametrize("kind", KINDS)
def test_rows_have_the_numbers_of_statsmodels(kind, n):
    x, y = rows(kind, n)
    for frac in (0.1, 0.3, 2 / 3, 1.0):
        for it in (0, 1, 3):
            found = lowess(y, x, frac=frac, it=it, return_sorted=False)
            assert_allclose(found, peer(y, x, frac=frac, it=it, return_sorted=False), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_points_have_the_numbers_of_statsmodels(kind):
    x, y = rows(kind)
    at = np.random.default_rng(1).permutation(np.append(np.quantile(x, np.linspace(0, 0.95, 41)), [np.nan, x[3]]))
    for frac in (0.1, 2 / 3, 1.0):
        for it in (0, 1, 3):
            found, expected = lowess(y, x, frac, it, xvals=at), peer(y, x, frac=frac, it=it, xvals=at)
            assert_allclose(found, expected, rtol=0, atol=1e-11)
            assert np.isnan(found).sum() == 1


@pytest.mark.parametrize("frac", [0.1, 0.4, 1.0])
def test_narrow_windows_of_many_rows_agree_with_statsmodels(frac):
    x, y = rows("uniform", 6000, seed=2)
    found, expected = lowess(y, x, frac / 10, it=0), peer(y, x, frac=frac / 10, it=0)
    assert_allclose(found, expected, rtol=0, atol=1e-11)


def test_the_calling_conventions_are_those_of_statsmodels():
    x, y = rows(n=60)
    y[[3, 20]], x[7] = [np.nan, np.inf], np.nan
    for options in ({}, {"return_sorted": False}, {"missing": "drop", "frac": 0.5}):
        assert_allclose(lowess(y, x, **options), peer(y, x, **options), rtol=0, atol=1e-12)
    good = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[good])
    x, y = x[good][order], y[good][order]
    for options in ({}, {"missing": "none"}, {"missing": "raise"}, {"xvals": np.array([0.1, 0.5])}):
        found = lowess(y, x, is_sorted=True, **options)
        assert_allclose(found, peer(y, x, **options | {"missing": "drop"}), rtol=0, atol=1e-12)
    assert np.array_equal(lowess(y, x, delta=0.5), lowess(y, x))
    assert np.array_equal(lowess(list(y), list(x)), lowess(y, x))


@pytest.mark.parametrize(("n", "k"), [(30, 7), (400, 90), (400, 390)])
def test_ties_have_the_fit_of_the_formula(n, k):
    """Statsmodels takes the first y where a window has no width."""
    random = np.random.default_rng(n + k)
    x = random.integers(0, 6, n) / 4.0
    x[: n // 2] = 0.5  # more rows than some windows have
    y = x**2 + random.normal(size=n)
    place, first, count = np.unique(x, return_index=True, return_counts=True)
    at, own = np.append(place, 0.6), np.append(np.where(count == 1, y[first], np.nan), np.nan)
    for it in (0, 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EmptyWindowWarning)  # 0.6 has equal rows alone, at the edge of its window
            found = lowess(y, x, k / n, it, xvals=at)
        expected = dense(x, y, k / n, it, at)
        assert_allclose(found, np.where(np.isnan(expected), own, expected), rtol=0, atol=1e-11)


def test_clusters_far_apart_have_the_fit_of_the_formula():
    """Windows whose rows are nearly all at the edge, or close together and away from the query."""
    random = np.random.default_rng(5)
    x = np.concatenate([10 + 1e-6 * random.uniform(size=200), random.uniform(20, 20.5, 300), [0.0, 15.0, 1e4]])
    y = np.cos(x) + random.normal(size=len(x))
    at = np.append(x, [14.0, 16.0, 5000.0])
    for frac in (0.15, 0.5, 0.9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EmptyWindowWarning)
            found = lowess(y, x, frac, 1, xvals=at)
        expected = dense(x, y, frac, 1, at)
        expected = np.where(np.isnan(expected), np.append(y, [np.nan] * 3), expected)  # a row without a fit has its y
        assert np.array_equal(np.isnan(found), np.isnan(expected))
        # A line through rows 1e-6 apart is right to their rounding, at 4 units from them.
        assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(st.integers(5, 200), st.floats(0.1, 1.0), st.integers(0, 2**32 - 1), st.sampled_from([0, 2]))
def test_laws(n, frac, seed, it):
    it = it if n >= 40 else 0  # of few rows more than half may be fitted exactly, of which lowess warns
    if int(frac * n + 1e-10) < (20 if it else 5):
        frac = 1.0
    random = np.random.default_rng(seed)
    x, y = random.exponential(size=n), random.normal(size=n)
    fitted = lowess(y, x, frac, it, return_sorted=False)
    order = random.permutation(n)
    assert np.array_equal(lowess(y[order], x[order], frac, it, return_sorted=False), fitted[order])
    assert np.array_equal(lowess(y, x * 2.0**-80, frac, it, return_sorted=False), fitted)
    # Few rows around a query determine its line badly; twice the rounding of x moves it.
    close = {"rtol": 0, "atol": 1e-7}
    assert_allclose(lowess(y, -3.0 * x + 1.0, frac, it, return_sorted=False), fitted, **close)
    assert_allclose(lowess(2.0 - 50.0 * y, x, frac, it, return_sorted=False), 2.0 - 50.0 * fitted, **close)
    line = 2.0 * x - 1.0
    assert_allclose(lowess(line, x, frac, it, return_sorted=False), line, **close)


@pytest.mark.parametrize("frac", [0.02, 0.2, 1.0])
def test_threads_change_no_bit(frac):
    x, y = rows("lognormal", 70_000)
    assert np.array_equal(lowess(y, x, frac, 2, n_jobs=1), lowess(y, x, frac, 2, n_jobs=2))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_have_their_own_y(n):
    x, y = np.array([1.0, 2.0, 4.0])[:n], np.array([3.0, 1.0, 7.0])[:n]
    assert np.array_equal(lowess(y, x, return_sorted=False), y)
    assert np.array_equal(lowess(y, x, frac=0.0, return_sorted=False), y)


def test_coincident_rows_have_their_mean():
    y = np.array([1.0, 5.0, 3.0])
    assert np.array_equal(lowess(y, np.full(3, 2.0), frac=1.0, it=0, return_sorted=False), np.full(3, 3.0))
    assert lowess(y, [0.0, 0.0, 5e-324], frac=1.0, it=0)[:, 1].tolist() == [3.0, 3.0, 3.0]  # its reciprocal overflows


def test_a_constant_is_reproduced_without_a_warning():
    x = np.random.default_rng(0).uniform(size=200)
    assert np.array_equal(lowess(np.full(200, 0.1), x)[:, 1], np.full(200, 0.1))


def test_the_others_have_no_weight_where_most_rows_are_fitted_exactly():
    """The limit of ever smaller noise."""
    x = np.arange(1.0, 17.0)
    y = np.where(x < 16, x, 1000.0)
    with pytest.warns(UserWarning, match=r"more than half of the rows are fitted exactly.* 1 rows.*larger frac"):
        found = lowess(y, x, return_sorted=False)
    assert_allclose(found, x, atol=1e-6)
    assert_allclose(lowess(y + 1e-5 * np.random.default_rng(0).normal(size=16), x, return_sorted=False), x, atol=1e-4)


def test_points_without_rows_are_nan_with_a_warning():
    x, y = rows(n=100)
    with pytest.warns(EmptyWindowWarning, match=r"2 of 3 points of xvals, such as -1e\+06, .*use a larger frac"):
        found = lowess(y, x, frac=0.5, xvals=[1e6, 0.5, -1e6])
    assert np.isnan(found).tolist() == [True, False, True]


def test_points_at_rows_have_the_fit_of_the_rows():
    """Also where a window of few rows has no two weights, or of outliers alone; there statsmodels has NaN."""
    x = np.arange(200.0)
    y = np.sin(x)
    y[100:103] = [1e3, 1e3, -1e3]  # fits through two of these rows leave residuals of the third alone
    for frac, it in ((4 / 200, 1), (3 / 200, 0)):
        found = lowess(y, x, frac, it, xvals=x)
        assert_allclose(found, lowess(y, x, frac, it, return_sorted=False), rtol=0, atol=1e-9)
        expected = peer(y, x, frac=frac, it=it, xvals=x)
        known = ~np.isnan(expected)
        assert_allclose(found[~known], y[~known], rtol=1e-15)
        assert_allclose(found[known], expected[known], rtol=0, atol=1e-9)


X, Y = np.array([0.0, 1.0, 3.0, 4.0]), np.array([1.0, 0.0, 2.0, 5.0])
ERRORS = [
    ({"frac": 1.5}, ValueError, "frac must be a number from 0 to 1.*got 1.5"),
    ({"it": -1}, ValueError, "it must be an integer.*-1"),
    ({"it": True}, ValueError, "it must be an integer.*True"),
    ({"delta": -1.0}, ValueError, "delta must be a number, 0 or more, got -1.0; leave it out"),
    ({"missing": "ignore"}, ValueError, "missing must be one of 'drop', 'raise', 'none'"),
    ({"is_sorted": "yes"}, TypeError, "is_sorted must be True or False"),
    ({"n_jobs": 0}, ValueError, "n_jobs must be"),
    ({"endog": Y[:3]}, ValueError, r"endog and exog must have one entry per row each, got \[3, 4\]"),
    ({"exog": X[:, None]}, ValueError, r"exog must be a vector, got shape \(4, 1\); .*exog.ravel\(\)"),
    ({"xvals": 1.0}, ValueError, r"xvals must be a vector, got shape \(\)"),
    ({"exog": list("abcd")}, TypeError, "exog must hold real numbers"),
    ({"endog": [2**60 + 1, 0, 0, 0]}, ValueError, "endog holds the integer"),
    ({"exog": [0.0, np.nan, 1.0, 2.0], "missing": "raise"}, ValueError, "exog holds nan at index 1.*missing='drop'"),
    ({"xvals": [np.nan], "missing": "raise"}, ValueError, "xvals holds nan at index 0"),
    ({"exog": np.full(4, np.nan)}, ValueError, "exog must have at least one row.*none among 4"),
    ({"span": 0.5}, TypeError, r"lowess\(\) has no argument 'span'"),
]


@pytest.mark.parametrize(("change", "error", "message"), ERRORS)
def test_errors(change, error, message):
    with pytest.raises(error) as found:
        lowess(**{"endog": Y, "exog": X} | change)
    assert re.search(message, str(found.value)), str(found.value)
