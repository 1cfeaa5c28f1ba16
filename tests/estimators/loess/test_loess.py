"""Loess: the numbers of R 4.2.2, a dense smoother matrix, laws, windows of width zero, and errors."""

import json
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import f as f_distribution
from sklearn.base import clone

from kernpool import EmptyWindowWarning, ExtrapolationWarning, LoessRegressor, RankDeficiencyWarning
from kernpool.estimators.loess import robust_fit
from kernpool.smoother import nearest_polynomials

PRINTED = json.loads((Path(__file__).parent / "r_loess.json").read_text())
WAVE, PLANE = ({name: np.array(column) for name, column in PRINTED[table].items()} for table in ("wave", "plane"))
IN_PLANE = np.column_stack([PLANE["x1"], PLANE["x2"]])
WEIGHT = 1 + np.arange(1, 61) % 3.0


def cases(name):
    return [
        pytest.param(case, id=" ".join(str(case[key]) for key in case if key not in ("name", "values")))
        for case in PRINTED["cases"]
        if case["name"] == name
    ]


def model_of(case):
    options = {"family": case.get("family", "gaussian"), "normalize": case.get("normalize", "TRUE") == "TRUE"}
    return LoessRegressor(float(case["span"]), int(case["degree"]), **options)


def dense_shares(query, key, span, degree, weight, scale=1.0):
    """The linear weights of the definition, by a pseudo-inverse at each query."""
    n, d = key.shape
    query, key = query / scale, key / scale
    distance = np.sqrt(((query[:, None] - key) ** 2).sum(axis=2))
    width = np.sort(distance, axis=1)[:, min(n, int(n * span + 1e-5)) - 1] * np.sqrt(max(1.0, span))
    kernel = weight * (1 - np.minimum(distance / width[:, None], 1) ** 3) ** 3
    found = np.zeros((len(query), n))
    for i, w in enumerate(kernel):
        t = (key - query[i]) / width[i]
        terms = [np.ones(n), *(t.T if degree else ())]
        terms += [t[:, a] * t[:, b] for a in range(d) for b in range(a, d)] if degree > 1 else []
        found[i] = np.linalg.pinv(np.sqrt(w)[:, None] * np.column_stack(terms), rcond=1e-13)[0] * np.sqrt(w)
    return found


def rows(n=80, d=1, seed=0):
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n, d))
    return X, np.sin(5 * X[:, 0]) + X[:, -1] + 0.3 * random.normal(size=n) + 4 * (random.uniform(size=n) < 0.05)


@pytest.mark.parametrize("case", cases("wave_predict"))
def test_fits_errors_and_statistics_are_those_of_r(case):
    model, printed = model_of(case).fit(WAVE["x"][:, None], WAVE["y"]), np.array(case["values"])
    found = model.get_prediction(np.array(PRINTED["wave_at"])[:, None])
    statistics = [model.residual_sd_, model.df_, model.equivalent_parameters_, model.trace_, model.delta1_]
    both = np.concatenate([found.mean, found.standard_error, statistics, [model.delta2_]]), printed
    if case["family"] == "symmetric":  # R has approximate moments there: s and errors are for its delta1
        both[0][9:19] *= np.sqrt(model.delta1_ / printed[22])
        both = (np.delete(numbers, [19, 20, 22, 23]) for numbers in both)
    np.testing.assert_allclose(*both, rtol=0, atol=1e-11)


@pytest.mark.parametrize("case", cases("wave_robust"))
def test_robustness_weights_are_those_of_r(case):
    model = model_of(case | {"family": "symmetric"}).fit(WAVE["x"], WAVE["y"])
    np.testing.assert_allclose(model.robust_weight_, case["values"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("case", cases("plane_predict"))
def test_fits_in_two_columns_are_those_of_r(case):
    model = model_of(case).fit(IN_PLANE, PLANE["y"])
    np.testing.assert_allclose(model.predict(PRINTED["plane_at"]), case["values"], rtol=0, atol=1e-12)


def test_weighted_fits_and_statistics_are_those_of_r():
    (case,) = (case.values[0] for case in cases("wave_weights"))
    model = model_of(case).fit(WAVE["x"], WAVE["y"], WEIGHT)
    found = [*model.fitted_values_, model.residual_sd_, model.equivalent_parameters_]
    np.testing.assert_allclose(found, case["values"], rtol=0, atol=1e-11)


@pytest.mark.parametrize("span", [0.4, 1.3])
@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_fits_and_errors_agree_with_the_dense_smoother_matrix(d, degree, span):
    X, y = rows(d=d)
    weight, query = np.random.default_rng(1).integers(1, 4, len(X)) / 2.0, rows(20, d, 2)[0]
    model = LoessRegressor(span, degree, normalize=False).fit(X, y, weight)
    found, share = model.get_prediction(query), dense_shares(query, X, span, degree, weight)
    np.testing.assert_allclose(found.mean, share @ y, atol=1e-10)
    np.testing.assert_allclose(found.standard_error, model.residual_sd_ * np.sqrt(share**2 @ (1 / weight)), rtol=1e-9)
    matrix = dense_shares(X, X, span, degree, weight)
    residual = (np.eye(len(X)) - matrix) @ (np.eye(len(X)) - matrix).T
    moments = np.trace(matrix), np.trace(residual), np.trace(residual @ residual)
    np.testing.assert_allclose((model.trace_, model.delta1_, model.delta2_), moments, rtol=1e-9)


@pytest.mark.parametrize("x", ["spread", "tied", "skewed", "apart"])
@pytest.mark.parametrize("degree", [0, 1, 2])
def test_sums_in_linear_time_fit_as_windows_do(degree, x, monkeypatch):
    """Also where sums lose digits: keys far apart, and terms that are nearly collinear."""
    random = np.random.default_rng(3)
    key = random.normal(size=600)
    X = {
        "spread": key,
        "tied": key.round(1),
        "skewed": np.exp(2 * key),
        "apart": key + 50 * (random.uniform(size=600) < 0.5),
    }[x]
    y, weight = np.sin(3 * key) + 0.3 * random.normal(size=600), random.integers(0, 4, 600) / 2.0

    def fitted(span, few):
        monkeypatch.setattr(nearest_polynomials, "FEW", few)
        model = LoessRegressor(span, degree, family="symmetric").fit(X, y, weight)
        found = model.get_prediction(np.linspace(X.min(), X.max(), 50))
        return model.trace_, model.equivalent_parameters_, model.robust_weight_, found.mean, found.standard_error

    for span in (0.15, 0.75, 1.4):
        for one, other in zip(fitted(span, 0), fitted(span, 600), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


def test_windows_reach_to_the_kth_nearest_row_of_any_offset():
    """Neighbouring numbers are 1e-4 apart there, so a rounded middle of two rows is nearer to the wrong one."""
    x = 1e12 + np.random.default_rng(0).normal(size=500)
    smoother = nearest_polynomials.NearestPolynomials(x[:, None], 50, 1)
    distance = np.sort(np.abs(x[:, None] - x), axis=1)
    np.testing.assert_array_equal(smoother.of_rows.width, distance[:, 49])


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_windows_with_rows_at_their_edge_alone_are_empty(degree):
    """Whether rounding takes these rows in or not."""
    x = np.repeat([0.0, 1.0], 50)
    model = LoessRegressor(0.2, degree)
    with pytest.warns(RankDeficiencyWarning, match="all rows coincide"):
        model.fit(x, x)
    with pytest.warns(EmptyWindowWarning, match="in the windows of 98 of 98 queries") as told:
        assert np.isnan(model.predict(np.linspace(0, 1, 100)[1:-1])).all()
    assert len(told) == 1


def test_moments_of_many_rows_are_those_of_the_matrix(monkeypatch):
    """Beyond a number of rows the second moment is estimated, and the rest of a projection is small."""
    X, y = rows(400)
    model = LoessRegressor(0.5).fit(X, y)
    exact = model.delta2_
    monkeypatch.setattr(robust_fit, "EXACT_ROWS", 100)
    estimated = LoessRegressor(0.5).fit(X, y).delta2_
    assert exact != estimated == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_polynomials_are_reproduced_with_outliers_too(degree):
    X, _ = rows(120, 2)
    terms = [np.ones(120), *(X.T if degree else ()), *((X[:, 0] ** 2, X[:, 0] * X[:, 1]) if degree > 1 else ())]
    y = np.column_stack(terms) @ np.arange(1.0, 1 + len(terms))
    query = rows(10, 2, 3)[0]
    for family in ("gaussian", "symmetric"):
        model = LoessRegressor(0.5, degree, family).fit(X, y)
        np.testing.assert_allclose(model.fitted_values_, y, atol=1e-11)
        np.testing.assert_array_less(model.get_prediction(query).standard_error, 1e-10)
    y[::7] += 9.0
    with pytest.warns(UserWarning, match="more than half of the rows are fitted exactly"):
        LoessRegressor(0.2, 0, "symmetric").fit(np.repeat(np.arange(6.0), 20), np.where(np.arange(120) % 20, 1.0, 9.0))


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2), st.sampled_from(["gaussian", "symmetric"]), st.floats(-5, 5), st.floats(-3, 3))
def test_order_and_units_do_not_matter(degree, family, size, shift):
    (X, y), query = rows(), np.linspace(0.05, 0.95, 7)[:, None]
    model = LoessRegressor(0.5, degree, family).fit(X, y)
    expected, order = model.get_prediction(query), np.random.default_rng(0).permutation(len(X))
    a, c = np.exp(size), -np.exp(-size)
    other = LoessRegressor(0.5, degree, family).fit(a * X[order] + shift, c * y[order] - shift)
    found = other.get_prediction(a * query + shift)
    np.testing.assert_allclose(found.mean, c * expected.mean - shift, rtol=1e-7, atol=1e-7 * abs(c))
    np.testing.assert_allclose(found.standard_error, abs(c) * expected.standard_error, rtol=1e-6)
    assert other.df_ == pytest.approx(model.df_, rel=1e-7)


def test_outliers_do_not_move_robust_fits():
    x = np.linspace(0.0, 1.0, 100)
    y = np.sin(6 * x) + 0.1 * np.cos(77 * x)
    spoiled = y + 20.0 * (np.arange(100) % 9 == 4)
    clean, robust = (LoessRegressor(0.3, family="symmetric").fit(x, some) for some in (y, spoiled))
    assert np.abs(robust.fitted_values_ - clean.fitted_values_).max() < 0.1
    assert np.abs(LoessRegressor(0.3).fit(x, spoiled).fitted_values_ - clean.fitted_values_).max() > 2.0
    assert robust.summary().outliers == np.count_nonzero(np.arange(100) % 9 == 4)


def test_windows_of_outliers_alone_have_the_weights_of_the_pass_before():
    x = np.concatenate([np.linspace(0.0, 1.0, 60), np.linspace(10.0, 10.2, 5)])
    y = np.concatenate([np.sin(9 * x[:60]) / 50, [50.0, -50.0, 60.0, -60.0, 40.0]])
    model = LoessRegressor(5 / 65, 1, "symmetric").fit(x, y)
    with pytest.warns(UserWarning, match="1 of 2 queries all rows are outliers"):
        found = model.predict([0.5, 10.1])
    assert np.isfinite(found).all()
    assert (model.robust_weight_[60:] == 0.0).all()


def test_the_comparison_is_that_of_cleveland_and_devlin():
    X, y = rows(100)
    small, large = LoessRegressor(0.9, 1).fit(X, y), LoessRegressor(0.4, 2).fit(X, y)
    found = small.anova(large)
    moments = []
    for span, degree in ((0.9, 1), (0.4, 2)):
        left = np.eye(100) - dense_shares(X, X, span, degree, np.ones(100))
        moments.append((np.sum((left @ y) ** 2), np.trace(left @ left.T), np.sum((left @ left.T) ** 2)))
    (rss0, one0, two0), (rss1, one1, two1) = moments
    statistic = ((rss0 - rss1) / (one0 - one1)) / (rss1 / one1)
    degrees = (one0 - one1) ** 2 / (two0 - two1), one1**2 / two1
    np.testing.assert_allclose((found.f, found.numerator_df, found.denominator_df), (statistic, *degrees), rtol=1e-8)
    assert found.p_value == pytest.approx(f_distribution.sf(statistic, *degrees), rel=1e-8)
    assert large.anova(small) == found
    assert "p-value" in str(found)


def test_coincident_rows_that_fill_a_window_have_their_mean():
    x, y = np.array([0.0] * 5 + [10.0, 10.1, 10.2, 10.3, 10.4]), np.arange(10.0)
    with pytest.warns(RankDeficiencyWarning, match=r"5 of 10 training rows \(the first is .* 0\) all rows coincide"):
        model = LoessRegressor(0.4, 1).fit(x, y)
    np.testing.assert_allclose(model.fitted_values_[:5], 2.0)
    with pytest.warns(RankDeficiencyWarning, match="all rows coincide"):
        assert model.predict([0.0])[0] == pytest.approx(2.0)
    with pytest.warns(RankDeficiencyWarning, match="10 of 10 training rows"):
        assert LoessRegressor().fit(np.ones(10), y).fitted_values_ == pytest.approx(np.full(10, 4.5))


def test_undetermined_polynomials_are_of_least_norm():
    X, y = rows(60, 2)
    doubled = np.column_stack([X[:, 0], 3.0 * X[:, 0]])
    with pytest.warns(RankDeficiencyWarning, match="60 of 60 training rows"):
        model = LoessRegressor(0.6, 1).fit(doubled, y)
    np.testing.assert_allclose(model.fitted_values_, LoessRegressor(0.6, 1).fit(X[:, 0], y).fitted_values_, atol=1e-9)


@pytest.mark.filterwarnings("ignore::kernpool.RankDeficiencyWarning")  # of windows with two weights
def test_windows_of_rows_of_weight_zero_are_empty():
    X, y = rows(40)
    weight = (X[:, 0] > 0.5) * 1.0
    with pytest.warns(EmptyWindowWarning, match="no row has a positive weight"):
        model = LoessRegressor(0.2, 1).fit(X, y, weight)
    with pytest.warns(EmptyWindowWarning):
        assert np.isnan(model.predict([0.05])[0])
    assert np.isfinite(model.residual_sd_)


def test_a_constant_stays_a_constant():
    model = LoessRegressor(family="symmetric").fit(rows()[0], np.full(80, 3.0))
    assert model.predict([[0.2], [0.9]]) == pytest.approx([3.0, 3.0])
    assert np.isnan(model.summary().r2)


def test_results_print_and_round_trip():
    X, y = rows()
    model = LoessRegressor(0.5, family="symmetric").fit(X, y)
    found, std = model.predict(X[:8], return_std=True)
    prediction = model.get_prediction(X[:8])
    np.testing.assert_allclose(std**2, model.residual_sd_**2 + prediction.standard_error**2)
    interval = model.confidence_interval(X[:8], level=0.9)
    assert (interval.lower < found).all()
    assert (found < interval.upper).all()
    assert interval.df == pytest.approx(np.full(8, model.df_))
    assert "..." in str(prediction)
    assert "rows of weight zero" in str(model.summary())
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not hasattr(clone(model), "df_")


def test_threads_give_the_same_bits():
    X, y = rows(3000)
    one, two = (LoessRegressor(0.5, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.fitted_values_, two.fitted_values_)


def test_queries_far_from_all_rows_are_announced():
    X, y = rows()
    model = LoessRegressor(0.5).fit(X, y)
    with pytest.warns(ExtrapolationWarning, match="1 of 2 queries, the first is query 1"):
        model.predict([[0.5], [9.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict([[1.05]])


REFUSED = [
    ({"span": 0.0}, ValueError, "span must be a positive number, the fraction of the rows in a window, got 0.0"),
    ({"span": -1}, ValueError, "span must be"),
    ({"span": "all"}, ValueError, "span must be"),
    ({"span": 0.02}, ValueError, "has 1 rows in a window, and a polynomial of degree 2 in 1 column has 3 coefficients"),
    ({"degree": 3}, ValueError, "degree must be 0, 1 or 2, got 3"),
    ({"family": "robust"}, ValueError, "family must be 'gaussian' or 'symmetric', got 'robust'"),
    ({"normalize": 1}, ValueError, "normalize must be True or False"),
    ({"iterations": 0}, ValueError, "iterations must be a number of fits from 1 on, got 0"),
]


@pytest.mark.parametrize(("options", "kind", "message"), REFUSED, ids=[str(case[0]) for case in REFUSED])
def test_errors_name_the_argument(options, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        LoessRegressor(**options).fit(*rows())


def test_errors_about_data():
    X, y = rows()
    with pytest.raises(ValueError, match=r"y must be one column, got shape \(80, 2\)"):
        LoessRegressor().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="sample_weight"):
        LoessRegressor().fit(X, y, np.zeros(80))
    with pytest.raises(TypeError, match=r"got categories.*LocalLinearRegressor"):
        LoessRegressor().fit(pd.DataFrame({"x": ["a", "b", "c"] * 5}), np.arange(15.0))
    model = LoessRegressor().fit(X, y)
    with pytest.raises(TypeError, match="other must be a fitted LoessRegressor"):
        model.anova(y)
    with pytest.raises(ValueError, match="fitted to the same y"):
        model.anova(LoessRegressor().fit(X, y + 1))
    with pytest.raises(ValueError, match="nothing to test"):
        model.anova(LoessRegressor().fit(X, y))
