"""Robust kernel regression: a dense fit, bandwidths by the bounded loss, laws, inference, files and refusals."""

import warnings

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from kernpool.core.robust_weights import weighted_median

REGRESSORS = [NadarayaWatsonRegressor, LocalLinearRegressor]
of_both = pytest.mark.parametrize("kind", REGRESSORS)
GRID = np.linspace(0.05, 0.95, 19)[:, None]


def curve(x):
    return np.sin(2 * np.pi * x)


def rows(n=120, share=0.15, seed=0, size=8.0):
    random = np.random.default_rng(seed)
    x = random.uniform(size=n)
    return x[:, None], curve(x) + 0.3 * random.normal(size=n) + size * (random.uniform(size=n) < share)


def dense_fit(q, x, y, weight, h, degree):
    """Local constants or lines with Gaussian weights."""
    found = np.empty(len(q))
    for i, place in enumerate(q):
        root = np.sqrt(weight * np.exp(-0.5 * ((x - place) / h) ** 2))
        Z = np.column_stack([np.ones(len(x)), x - place])[:, : degree + 1]
        found[i] = np.linalg.lstsq(root[:, None] * Z, root * y, rcond=None)[0][0]
    return found


def dense_weights(x, y, weight, h, degree, robust):
    """The passes, written out."""
    found, units = np.ones(len(x)), np.repeat(np.arange(len(x)), weight.astype(int))
    for _ in range({"huber": 10, "tukey": 3}.get(robust, robust)):
        e = np.abs(y - dense_fit(x, x, y, weight * found, h, degree))
        median = np.median(e[units])
        tukey = np.maximum(1 - (e / (6 * median)) ** 2, 0) ** 2
        found = np.minimum(1, 1.345 * 1.4826 * median / e) if robust == "huber" else tukey
    return found


@pytest.mark.parametrize("robust", ["tukey", 1, "huber"])
@of_both
def test_fits_are_those_of_the_passes_written_out(kind, robust):
    (X, y), weight = rows(), np.random.default_rng(1).integers(1, 4, 120).astype(float)
    model = kind(bandwidth=0.08, robust=robust).fit(X, y, weight)
    expected = dense_weights(X[:, 0], y, weight, 0.08, kind._degree, robust)
    np.testing.assert_allclose(model.robust_weight_, expected, rtol=0, atol=1e-10)
    fitted = dense_fit(GRID[:, 0], X[:, 0], y, weight * expected, 0.08, kind._degree)
    np.testing.assert_allclose(model.predict(GRID), fitted, rtol=0, atol=1e-9)
    assert (robust == "huber") != np.any(model.robust_weight_ < 1e-20)
    np.testing.assert_allclose(model.attention_weights(GRID) @ y, model.predict(GRID), atol=1e-9)


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning", "ignore:more than half of the rows are fitted")
@of_both
def test_weights_count_rows_in_the_search(kind):
    (X, y), weight = rows(60), np.random.default_rng(1).integers(1, 4, 60)
    model = kind(robust=True).fit(X, y, weight)
    again = kind(robust=True).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(model.bandwidth_, again.bandwidth_, rtol=1e-3)


@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("robust", [True, "huber"])
@pytest.mark.parametrize("bandwidth", [1.0, 3.0, "loo"])
def test_the_unit_of_x_does_not_matter_where_half_of_the_rows_are_fitted_exactly(kernel, robust, bandwidth):
    """Their residuals are rounding errors, which are another scale in each unit."""
    random = np.random.default_rng(0)
    x = np.sort(random.uniform(0, 10, 21))
    y = 2 * x + 1
    y[7] += 5
    y[-3:] += random.normal(size=3)
    at, found = np.linspace(0.0, 10.0, 50), []
    for unit in (1.0, 1000.0, 3.7, 1 / 7):
        given = bandwidth if bandwidth == "loo" else bandwidth * unit
        with warnings.catch_warnings(action="ignore"):  # of rows fitted exactly
            model = LocalLinearRegressor(kernel, given, robust=robust).fit(unit * x, y)
            found.append(model.predict(unit * at))
    np.testing.assert_allclose(found, np.tile(found[0], (4, 1)), rtol=0.0, atol=1e-6)


def test_planes_are_reproduced_and_outliers_have_no_weight():
    random = np.random.default_rng(0)
    X = random.uniform(size=(150, 2))
    y = X @ [2.0, -1.0] + 1e-3 * random.normal(size=150)
    y[::10] += 5.0
    model = LocalLinearRegressor(bandwidth=0.4, robust=True).fit(X, y)
    assert (model.robust_weight_[::10] < 1e-20).all()
    np.testing.assert_allclose(model.predict(X), X @ [2.0, -1.0], atol=2e-3)
    np.testing.assert_allclose(model.get_prediction(X[:4]).slope, [[2.0, -1.0]] * 4, atol=0.02)


def test_a_search_minimises_the_bounded_loss_of_refits():
    """At the bandwidth found and at others: each row left out of a fit with the others' final weights."""
    X, y = rows(60)
    x, model = X[:, 0], LocalLinearRegressor(robust=True).fit(X, y)
    search = model.bandwidth_search_
    wide, residuals = search.tried[:, 0] > 0.02, []
    others = [np.delete(np.arange(60), i) for i in range(60)]
    for (h,) in search.tried[wide]:
        weight = dense_weights(x, y, np.ones(60), h, 1, 3)
        fits = [dense_fit(x[[i]], x[k], y[k], weight[k], h, 1)[0] for i, k in enumerate(others)]
        residuals.append(y - fits)
    scale = 4.685 * 1.4826 * np.median(np.abs(residuals), axis=1).min()
    expected = scale**2 / 3 * np.mean(1 - np.maximum(1 - (residuals / scale) ** 2, 0) ** 3, axis=1)
    ratio = search.values[wide] / expected
    np.testing.assert_allclose(ratio, ratio[0], rtol=0.02)  # one scale, that of other bandwidths if narrow ones have it
    assert search.value == search.values.min()


@pytest.mark.parametrize("robust", [True, "huber"])
@of_both
def test_outliers_cost_little(kind, robust):
    clean, spoiled = rows(200, 0.0, 3), rows(200, 0.2, 3)
    fits = [kind(robust=robust).fit(*some).predict(GRID) for some in (clean, spoiled)]
    error = [np.mean((fit - curve(GRID[:, 0])) ** 2) for fit in fits]
    assert error[1] < (0.2 if robust == "huber" else 0.03)  # the influence of an outlier is bounded, not zero
    assert np.mean((kind().fit(*spoiled).predict(GRID) - curve(GRID[:, 0])) ** 2) > 1.0
    assert error[0] < 0.02


def test_bandwidths_of_several_and_categorical_columns_ignore_outliers():
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 2))
    level = random.integers(0, 2, 150)
    y = np.sin(2 * X[:, 0]) + level + 0.2 * random.normal(size=150) + 9.0 * (random.uniform(size=150) < 0.1)
    table = np.column_stack([X, level])
    model = LocalLinearRegressor(unordered=[2], robust=True).fit(table, y)
    truth = np.sin(2 * X[:, 0]) + level
    assert np.mean((model.predict(table) - truth) ** 2) < 0.05
    assert model.relevance_[0] > 3 * model.relevance_[1]
    assert model.bandwidth_search_.criterion == "bounded"


def test_many_rows_are_drawn_for_the_search():
    X, y = rows(700)
    model = NadarayaWatsonRegressor(robust=True, search={"rows": 200}).fit(X, y)
    assert "on a sample of 200 of 700 rows" in model.bandwidth_note_
    assert model.bandwidth_[0] == pytest.approx(model.bandwidth_search_.bandwidth[0] * (200 / 700) ** 0.2, rel=1e-6)


def pseudovalues(fitted, y):
    """Of bisquare weights, by the formula."""
    e = y - fitted
    s = 6 * np.median(np.abs(e))
    z = np.clip(e / s, -1, 1)
    return fitted + s * z * (1 - z**2) ** 2 / np.mean((1 - z**2) * (1 - 5 * z**2))


@of_both
def test_inference_is_that_of_pseudovalues(kind):
    X, y = rows()
    model = kind("tricube", 0.25, robust=True).fit(X, y)
    plain = kind("tricube", 0.25).fit(X, pseudovalues(model.predict(X), y))
    found, expected = model.get_prediction(GRID), plain.get_prediction(GRID)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=1e-9)
    np.testing.assert_allclose(found.mean, expected.mean, atol=0.05)
    ours, theirs = (one.confidence_interval() for one in (found, expected))
    np.testing.assert_allclose(ours.lower, theirs.lower, rtol=1e-9)
    np.testing.assert_allclose(model.summary().trace, plain.summary().trace, rtol=1e-9)
    assert np.isfinite(model.predict(GRID, return_std=True)[1]).all()


CONTAMINATED = [(True, 0.0, 1), (True, 0.1, 1), (True, 0.2, 1), (True, 0.2, -1), ("huber", 0.0, 1), ("huber", 0.2, -1)]


@pytest.mark.slow
@pytest.mark.parametrize(("robust", "share", "other"), CONTAMINATED)
def test_intervals_of_a_line_cover(robust, share, other):
    """With outliers on one side, or on both; those of one side move Huber's fit, whose influence is not zero."""
    at, hits = np.array([[0.1], [0.3], [0.5], [0.9]]), []
    for seed in range(150):
        random = np.random.default_rng(seed)
        x = random.uniform(size=200)
        outlier = 4.0 * (random.uniform(size=200) < share) * random.choice([1, other], 200)
        model = LocalLinearRegressor("tricube", 0.15, robust=robust).fit(
            x, 2 * x + 0.4 * random.normal(size=200) + outlier
        )
        for method in ("naive", "robust"):
            found = model.confidence_interval(at, method=method)
            hits.append((found.lower < 2 * at[:, 0]) & (2 * at[:, 0] < found.upper))
    assert 0.92 < np.mean(hits) < 0.98


def test_others_have_no_weight_where_more_than_half_of_the_rows_are_fitted_exactly():
    x = np.linspace(0.0, 1.0, 60)
    y = np.where(np.arange(60) % 4 == 1, 3.0, 0.0)
    with pytest.warns(UserWarning, match="more than half of the rows are fitted exactly"):
        NadarayaWatsonRegressor("boxcar", 1e-3, robust=True).fit(np.r_[x, x, x], np.r_[0 * x, 0 * x, y])
    with pytest.warns(UserWarning, match="the others have no weight"):
        wrong = LocalLinearRegressor("tricube", 0.1, robust=True).fit(x, np.where(x == 1.0, 50.0, x))
    assert wrong.predict(x) == pytest.approx(x)
    constant = LocalLinearRegressor(robust=True).fit(x, np.full(60, 2.0))
    assert constant.predict([0.3, 0.7]) == pytest.approx([2.0, 2.0])
    assert (constant.robust_weight_ == 1.0).all()


@of_both
def test_windows_of_outliers_alone_have_the_weights_of_the_pass_before(kind):
    random = np.random.default_rng(0)
    x = np.r_[random.uniform(0, 1, 80), np.linspace(3.0, 3.2, 4)]
    y = np.r_[curve(x[:80]) + 0.1 * random.normal(size=80), [40.0, -40.0, 41.0, -41.0]]
    model = kind("epanechnikov", 0.3, robust=True).fit(x, y)
    assert (model.robust_weight_[80:] < 1e-20).all()
    with pytest.warns(UserWarning, match=r"1 of 2 queries \(the first is query 1\) all rows are outliers"):
        found = model.predict([0.5, 3.1])
    assert np.isfinite(found).all()
    assert abs(found[0] - curve(0.5)) < 0.2


def test_weighted_medians_count_units():
    random = np.random.default_rng(0)
    for n in (4, 5, 8, 9):
        size, weight = random.normal(size=n), random.integers(1, 4, n)
        assert weighted_median(np.abs(size), weight.astype(float)) == np.median(np.abs(np.repeat(size, weight)))


def test_a_few_rows_are_enough_for_a_given_bandwidth():
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LocalLinearRegressor(bandwidth=0.3, robust=True).fit(X[:4], y[:4])
