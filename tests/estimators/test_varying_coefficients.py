"""Coefficients that vary with a place: mgwr's numbers, refits, dense formulas, laws, searches, tests and refusals.

`mgwr.json` has what mgwr 2.2.1 prints for the table below, which holds no random numbers.
"""

import json
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.exceptions import ConvergenceWarning

from kernpool import CoefficientDisplay, EmptyWindowWarning, Floor, Nearest, VaryingCoefficientRegressor
from kernpool.core import Categories
from kernpool.kernels import get_categorical_kernel, get_kernel
from kernpool.smoother.local_least_squares import products_of
from kernpool.smoother.varying_error import VaryingError
from tests.support.searches import canonical_rows, check_derivatives, objective_of

MGWR = json.loads((Path(__file__).parent / "mgwr.json").read_text())
N = 250
AT = np.arange(1, N + 1)
PLACE = np.column_stack([AT * 0.7548776662466927 % 1, AT * 0.5698402909980532 % 1])
X = np.column_stack([np.sin(7.0 * AT), (AT * 0.618033988749895 % 1 - 0.5) * 2])
TRUE = np.column_stack([1 + PLACE[:, 0], np.sin(3 * PLACE[:, 1]), PLACE[:, 0] * PLACE[:, 1] * 2 - 0.5])
Y = TRUE[:, 0] + (TRUE[:, 1:] * X).sum(axis=1) + 0.3 * np.cos(13.0 * AT)
TABLE = np.column_stack([PLACE, X])
FIXED = VaryingCoefficientRegressor("gaussian", 0.1, by=[0, 1])
NEAREST = VaryingCoefficientRegressor("biweight", 1.0, by=[0, 1], window=Nearest(45))
WEIGHT = 1.0 + AT % 3
GROUPS = AT // 6


def new(model, **options):
    return type(model)(**model.get_params() | options)


def dense(at, width=0.1, kept=slice(None)):
    """Return regressors, and the weights of a Gaussian window around a place."""
    u = np.column_stack([np.ones(N), X])[kept]
    return u, np.exp(-0.5 * np.sum((PLACE[kept] - at) ** 2, axis=1) / width**2)


def criterion(model, name):
    return model.summary().aicc if name == "aicc" else model.leave_one_out().error


@pytest.mark.parametrize(
    ("name", "model", "digits"), [("fixed_gaussian", FIXED, 1e-9), ("adaptive_bisquare", NEAREST, 1e-6)]
)
def test_numbers_are_those_of_mgwr(name, model, digits):
    """Which widens windows to the nearest rows by 1e-7, so that the last one has a weight."""
    theirs, ours = MGWR[name], new(model).fit(TABLE, Y)
    found = ours.coefficients(method="naive", variance="constant")
    summary = ours.summary()
    for mine, yours in (
        (found.coef[:10], theirs["params"]), (found.standard_error[:10], theirs["bse"]),
        (found.statistic[:10], theirs["tvalues"]), (found.local_r2[:10], theirs["localR2"]),
        (ours.predict(TABLE)[:10], theirs["fitted"]), (summary.trace, theirs["trS"]),
        (summary.residual_sd**2, theirs["sigma2"]),
        (N * (summary.aicc + np.log(2 * np.pi)), theirs["aicc"]),
    ):  # fmt: skip
        np.testing.assert_allclose(mine, yours, rtol=digits, atol=digits)


@pytest.mark.parametrize("rows", [{}, {"sample_weight": WEIGHT}, {"groups": GROUPS}], ids=str)
@pytest.mark.parametrize("model", [FIXED, NEAREST], ids=["fixed", "nearest"])
def test_leave_one_out_is_a_refit_without_the_row(model, rows):
    found = new(model).fit(TABLE, Y, **rows).leave_one_out()
    for i in (0, 100, 249):
        kept, weight = AT[i] != AT, rows.get("sample_weight")
        if weight is not None:
            kept, weight = np.full(N, True), weight - (AT[i] == AT)
        elif rows:
            kept = GROUPS[i] != GROUPS
        again = new(model).fit(TABLE[kept], Y[kept], None if weight is None else weight[kept])
        np.testing.assert_allclose(found.prediction[i], again.predict(TABLE[[i]]), rtol=1e-11)


def test_robust_intervals_are_those_of_planes_of_coefficients():
    model, i = new(FIXED).fit(TABLE, Y), 17
    found = model.coefficients(TABLE[[i]], variance="constant")
    u, weight = dense(PLACE[i])
    away = PLACE - PLACE[i]
    u = np.hstack([u, u * away[:, :1], u * away[:, 1:]])
    linear = np.linalg.solve((u.T * weight) @ u, u.T * weight)[:3]
    np.testing.assert_allclose(found.center[0], linear @ Y, rtol=1e-9)
    error = np.sqrt(np.sum(linear**2, axis=1)) * model.summary().residual_sd
    np.testing.assert_allclose(found.standard_error[0], error, rtol=1e-9)
    np.testing.assert_allclose(model.confidence_interval(TABLE[[i]]).center, (linear @ Y) @ np.append(1.0, X[i]))


def test_standard_errors_of_groups_sum_over_clusters():
    model, i = new(FIXED).fit(TABLE, Y, groups=GROUPS), 17
    found = model.coefficients(TABLE[[i]], method="naive")
    u, weight = dense(PLACE[i])
    residual = Y - model.leave_one_out().prediction[:, 0]
    linear = np.linalg.solve((u.T * weight) @ u, u.T * weight) * residual
    clusters = np.stack([linear[:, g == GROUPS].sum(axis=1) for g in np.unique(GROUPS)])
    np.testing.assert_allclose(found.standard_error[0] ** 2, np.sum(clusters**2, axis=0), rtol=1e-9)
    assert found.df[0] == len(clusters) - 1


def test_condition_numbers_are_those_of_weighted_columns():
    moved = np.add(TABLE, [0, 0, 3.0, 0])
    found = new(FIXED).fit(moved, Y).coefficients(moved[:3], method="naive").condition_number
    for i in range(3):
        u, weight = dense(PLACE[i])
        u = np.add(u, [0, 3.0, 0]) * np.sqrt(weight)[:, None]
        assert found[i] == pytest.approx(np.linalg.cond(u / np.linalg.norm(u, axis=0)), rel=1e-9)


def test_a_linear_function_has_the_same_coefficients_everywhere():
    y = 2.0 - X[:, 0] + 1e-3 * X[:, 1]
    for model in (FIXED, NEAREST, new(FIXED, bandwidth="loo")):
        fitted = new(model).fit(TABLE, y)
        np.testing.assert_allclose(fitted.coef_, np.tile([2.0, -1.0, 1e-3], (N, 1)), atol=1e-12)


def test_levels_that_share_nothing_have_their_own_least_squares():
    frame = pandas.DataFrame({"kind": np.where(AT % 3, "new", "old"), "x": X[:, 0], "z": X[:, 1]})
    model = VaryingCoefficientRegressor(bandwidth=1.0, by="kind", smoothing=[0.0]).fit(frame, Y)
    assert model.coef_names_ == ["intercept", "x", "z"]
    for kind in ("new", "old"):
        rows = frame["kind"] == kind
        u = np.column_stack([np.ones(rows.sum()), X[rows]])
        expected = np.linalg.lstsq(u, Y[rows], rcond=None)[0]
        np.testing.assert_allclose(model.coefficients(frame[rows][:1], method="naive").coef[0], expected, rtol=1e-9)


def test_smoothing_of_categories_alone_is_found():
    kind = np.array(["a", "b", "c", "d"])[AT % 4]
    frame, slope = pandas.DataFrame({"kind": kind, "x": X[:, 0]}), 3.0 * (AT % 4)
    model = VaryingCoefficientRegressor(by="kind").fit(frame, slope * X[:, 0] + 0.1 * np.cos(13.0 * AT))
    assert model.places_.smoothing_[0] < 1e-3
    found = model.coefficients(frame[["kind"]])
    assert np.mean((found.lower[:, 1] < slope) & (slope < found.upper[:, 1])) > 0.9


@pytest.mark.parametrize("bandwidth", [0.2, "multiscale"])
def test_rows_of_weight_zero_change_nothing(bandwidth):
    far, weight = np.vstack([TABLE, [9.0, 9.0, 1e3, 1e3]]), np.append(np.ones(N), 0.0)
    model = VaryingCoefficientRegressor("epanechnikov", bandwidth, by=[0, 1]).fit(TABLE, Y)
    other = new(model).fit(far, np.append(Y, 1e6), sample_weight=weight)
    np.testing.assert_allclose(other.predict(TABLE), model.predict(TABLE), rtol=1e-8)
    if bandwidth == 0.2:
        one, two = (each.coefficients(TABLE, variance="constant") for each in (model, other))
        np.testing.assert_allclose(two.local_r2, one.local_r2)
        np.testing.assert_allclose(two.upper, one.upper)
        assert other.summary().aicc == pytest.approx(model.summary().aicc)


def test_where_rows_determine_no_planes_intervals_are_naive():
    small = new(NEAREST, window=Nearest(6)).fit(TABLE, Y)
    with pytest.warns(UserWarning, match=r"250 of 250 queries .* method='naive'"):
        found = small.coefficients()
    np.testing.assert_array_equal(found.lower, small.coefficients(method="naive").lower)
    line = np.column_stack([AT % 4, AT % 4, X])  # of places on a line there are planes along it
    found = new(FIXED, bandwidth=1.0).fit(line, Y).coefficients(line[:4])
    plain = new(FIXED, bandwidth=np.sqrt(0.5), by=[0]).fit(line[:, 1:], Y).coefficients(line[:4, 1:])
    np.testing.assert_allclose(found.center, plain.center)


def test_categories_have_a_coefficient_for_each_level_but_the_first():
    frame = pandas.DataFrame({"place": PLACE[:, 0], "kind": np.array(["a", "b", "c"])[AT % 3]})
    model = VaryingCoefficientRegressor(bandwidth=0.3, by=["place"]).fit(frame, Y + (AT % 3))
    assert model.coef_names_ == ["intercept", "kind[b]", "kind[c]"]
    assert abs(model.coef_[:, 2].mean() - 2.0) < 0.2


def test_beyond_all_windows_coefficients_are_those_of_the_nearest_row():
    model = VaryingCoefficientRegressor("epanechnikov", 0.25, by=[0, 1]).fit(TABLE, Y)
    far = np.array([[-3.0, -3.0, 0.5, 0.5], [*PLACE[0], 0.5, 0.5]])
    with pytest.warns(EmptyWindowWarning, match="nearest"):
        found = model.predict(far)
    nearest = np.argmin(np.sum((PLACE + 3.0) ** 2, axis=1))
    assert found[0] == pytest.approx(model.coef_[nearest] @ [1.0, 0.5, 0.5])
    assert found[1] == pytest.approx(model.coef_[0] @ [1.0, 0.5, 0.5])
    for empty, value in (("nan", np.nan), ("zero", 0.0)):
        with warnings.catch_warnings(action="ignore", category=EmptyWindowWarning):
            found = new(model, empty=empty).fit(TABLE, Y).predict(far)
        np.testing.assert_allclose(found[0], value, atol=1e-12)
    with pytest.warns(EmptyWindowWarning, match="become NaN, whatever empty= says"):
        there = model.coefficients(far)
    assert np.isnan([there.coef[0], there.center[0], there.lower[0]]).all()
    assert np.isfinite([there.coef[1], there.center[1], there.lower[1]]).all()


@pytest.mark.parametrize(("name", "width"), [("aicc", 0.1), ("loo", 0.07)])
def test_the_search_finds_a_criterion_below_that_of_mgwrs_bandwidth(name, width):
    found = new(FIXED, bandwidth=name).fit(TABLE, Y)
    assert criterion(found, name) < criterion(new(FIXED, bandwidth=width).fit(TABLE, Y), name)
    counted = new(NEAREST, bandwidth=name, window=Nearest()).fit(TABLE, Y)
    for k in (47, counted.window_.k - 1, counted.window_.k + 1):
        there = new(NEAREST, bandwidth=counted.places_.bandwidth_ if k != 47 else 1.0, window=Nearest(k)).fit(TABLE, Y)
        assert criterion(counted, name) < criterion(there, name)


@pytest.mark.parametrize("name", ["loo", "aicc"])
def test_slopes_of_the_criterion_are_its_differences(name):
    weight = WEIGHT[:60]
    products = products_of(np.column_stack([np.ones(60), X[:60]]), Y[:60])
    rows = canonical_rows(PLACE[:60], products, weight, AT[:60, None] % 2)
    categories = Categories((get_categorical_kernel("aitchison_aitken"),), (2,))
    error = objective_of(
        rows,
        name,
        kind=partial(VaryingError, p=3),
        categories=categories,
        queries=AT[:50:2],
        kernel=get_kernel("gaussian"),
    )
    check_derivatives(error, np.append(np.log([0.4, 0.6]), 0.2))


@pytest.mark.filterwarnings("ignore::kernpool.RepeatedRowsWarning")
def test_a_coefficient_that_varies_is_told_from_a_constant():
    rng = np.random.default_rng(1)
    y = 1.0 + 2.0 * X[:, 0] + np.sin(4 * PLACE[:, 0]) * X[:, 1] + 0.3 * rng.normal(size=N)
    model = VaryingCoefficientRegressor(bandwidth=0.15, by=[0, 1]).fit(TABLE, y)
    table = model.variation(n_resamples=99)
    assert table.p_value[2] == 0.01
    assert min(table.p_value[:2]) > 0.05
    np.testing.assert_allclose(table.quantiles[[0, 4]], [model.coef_.min(axis=0), model.coef_.max(axis=0)])
    assert table.significant[1] == 1.0
    # Of the intercept where columns are zero, as it is printed; weights are repetitions.
    moved = model.fit(np.add(TABLE, [0, 0, 0, 5.0]), y).variation(n_resamples=99, random_state=None)
    assert moved.p_value[0] < 0.05
    weight = 1 + AT % 4
    once = model.fit(TABLE, Y, sample_weight=weight).variation(n_resamples=399)
    again = model.fit(np.repeat(TABLE, weight, axis=0), np.repeat(Y, weight)).variation(n_resamples=399)
    np.testing.assert_allclose(once.statistic, again.statistic)
    np.testing.assert_allclose(once.p_value, again.p_value, atol=0.06)


def test_significance_is_corrected_for_the_effective_number_of_places():
    found = new(FIXED).fit(TABLE, Y).coefficients()
    np.testing.assert_allclose(found.tests, MGWR["fixed_gaussian"]["trS"] / 3)
    np.testing.assert_array_equal(found.significant, found.p_value <= 0.05 / found.tests)
    frame = found.to_frame()
    assert frame.shape == (N, 17)
    np.testing.assert_array_equal(frame["intercept"], found.center[:, 0])
    named = pandas.DataFrame(TABLE, columns=["east", "north", "intercept", "intercept_se"])
    found = new(FIXED, by=["east", "north"]).fit(named, Y).coefficients(named[["east", "north"]])
    assert found.names[:2] == ("(intercept)", "intercept")
    with pytest.raises(ValueError, match="rename these columns"):
        found.to_frame()


def test_four_fifths_of_new_rows_lie_within_their_intervals():
    y = TRUE[:, 0] + (TRUE[:, 1:] * X).sum(axis=1) + 0.3 * np.random.default_rng(0).normal(size=N)
    model = VaryingCoefficientRegressor(by=[0, 1]).fit(TABLE[:100], y[:100])
    for given in ({}, {"X_calibration": TABLE[100:150], "y_calibration": y[100:150]}):
        found = model.prediction_interval(TABLE[150:], level=0.8, **given)
        assert 0.68 < np.mean((found.lower <= y[150:]) & (y[150:] <= found.upper)) < 0.92


@pytest.mark.slow
def test_intervals_of_coefficients_cover_at_bandwidths_that_were_found():
    """Of 20 samples of 400 rows 95 percent intervals cover 93 to 97 in a hundred."""
    at = np.stack(np.meshgrid(*[np.linspace(0.1, 0.9, 5)] * 2), axis=-1).reshape(-1, 2)
    covered = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        place, x = rng.uniform(size=(400, 2)), rng.normal(size=(400, 2))
        of, true = (
            np.column_stack([1 + c[:, 0], np.sin(3 * c[:, 1]), c[:, 0] * c[:, 1] * 2 - 0.5]) for c in (place, at)
        )
        y = of[:, 0] + (of[:, 1:] * x).sum(axis=1) + 0.5 * rng.normal(size=400)
        model = VaryingCoefficientRegressor(by=[0, 1]).fit(np.hstack([place, x]), y)
        found = model.coefficients(np.hstack([at, np.zeros((25, 2))]))
        covered.append((found.lower < true) & (true < found.upper))
    assert 0.93 < np.mean(covered) < 0.97


def test_coefficients_at_unlike_scales_have_windows_of_their_own():
    """The error is less than .65 of that in common windows, and the constant has the widest."""
    common, own = [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        place, x = rng.uniform(size=(400, 2)), rng.normal(size=(400, 3))
        rough = np.sin(9 * place[:, 0]) * np.cos(7 * place[:, 1])
        true = np.column_stack([1 + place[:, 0], np.full(400, 2.0), rough, 0.5 * place[:, 1]])
        y = np.sum(np.column_stack([np.ones(400), x]) * true, axis=1) + 0.5 * rng.normal(size=400)
        table = np.hstack([place, x])
        model = VaryingCoefficientRegressor(by=[0, 1], bandwidth="multiscale").fit(table, y)
        own.append(np.mean((model.coef_ - true) ** 2))
        common.append(np.mean((VaryingCoefficientRegressor(by=[0, 1]).fit(table, y).coef_ - true) ** 2))
        assert model.scale_.argmin() == 2
        assert model.scale_.argmax() == 1
    assert np.mean(own) < 0.65 * np.mean(common)
    found, summary = model.coefficients(table[:50]), model.summary()
    assert 0.9 < np.mean((found.lower < true[:50]) & (true[:50] < found.upper)) < 1.0
    assert summary.trace == pytest.approx(found.tests.sum())
    np.testing.assert_allclose(new(model).fit(table, y, groups=np.arange(400)).scale_, model.scale_)  # each alone
    with pytest.raises(ValueError, match=r"in common: bandwidth=model.places_.bandwidth_"):
        new(model).fit(table, y, groups=np.arange(400) // 2).summary()


def test_backfitting_ends_at_the_fixed_point_of_correlated_columns(monkeypatch):
    rng = np.random.default_rng(1)
    place, x = rng.uniform(size=(150, 2)), rng.normal(size=(150, 2)) @ [[1.0, 0.99], [0.0, np.sqrt(1 - 0.99**2)]]
    y = 1 + 2 * x[:, 0] + (1 + 3 * place[:, 0]) * x[:, 1] + 0.3 * rng.normal(size=150)
    model = VaryingCoefficientRegressor(bandwidth="multiscale", by=[0, 1]).fit(np.hstack([place, x]), y)
    u, outcome = model._regressors(x), y - y.mean()
    away = (place[:, None] - place) / model.places_.bandwidth_
    left, right = np.eye(450), np.empty((450, 150))
    for a, factor in enumerate(model.scale_):
        own = slice(150 * a, 150 * (a + 1))
        weight = np.exp(-0.5 * np.sum(away**2, axis=2) / factor**2) * u[:, a]
        smooth = weight / (weight @ u[:, a])[:, None]
        right[own] = smooth
        for b in {0, 1, 2} - {a}:
            left[own, 150 * b : 150 * (b + 1)] = smooth * u[:, b]
    linear = np.linalg.solve(left, right).reshape(3, 150, 150)
    np.testing.assert_allclose(model.coef_, model._in_units((linear @ outcome).T), atol=1e-5)
    hat = np.sum(u.T[:, :, None] * linear, axis=0)
    twice, units = linear @ (2.0 * np.eye(150) - hat), model._to_units
    found = model.coefficients(variance="constant")
    np.testing.assert_allclose(found.center, model._in_units((twice @ outcome).T), atol=1e-5)
    error = np.linalg.norm(np.einsum("ab,bmn->man", units, twice), axis=2) * model.summary().residual_sd
    np.testing.assert_allclose(found.standard_error, error, rtol=1e-5)
    assert model.summary().trace == pytest.approx(np.trace(hat))
    monkeypatch.setattr("kernpool.smoother.backfitting.TOLERANCE", 0.0)
    with pytest.warns(ConvergenceWarning, match="leave one of them out"):
        VaryingCoefficientRegressor(bandwidth="multiscale", by=[0, 1]).fit(np.hstack([PLACE[:150], x]), y)


def test_maps_and_curves_are_of_intervals_of_coefficients():
    pytest.importorskip("matplotlib", reason="pictures need the extra 'plot'")
    frame = pandas.DataFrame(TABLE, columns=["lat", "lon", "a", "b"])
    model = new(FIXED, by=["lat", "lon"], geographic=("lat", "lon"), bandwidth=20.0).fit(frame, Y)
    found, display = model.coefficients(), CoefficientDisplay.from_estimator(model, features=["b"])
    sure = found.significant[:, 2]
    np.testing.assert_array_equal(display.points_[0].get_array(), found.center[sure, 2])
    np.testing.assert_array_equal(display.crosses_[0].get_offsets(), PLACE[~sure, ::-1])
    line = new(FIXED, by="lat").fit(frame.drop(columns="lon"), Y)
    new_rows = frame[["lat"]].sort_values("lat")
    curves = CoefficientDisplay.from_estimator(line, new_rows)
    np.testing.assert_array_equal(curves.points_[2].get_ydata(), line.coefficients(new_rows).center[:, 2])
    with pytest.raises(ValueError, match="one or two columns"):
        CoefficientDisplay.from_estimator(new(FIXED, by=["lat", "lon", "a"], bandwidth=1.0).fit(frame, Y))


@pytest.mark.parametrize(
    ("options", "table", "words"),
    [
        ({"by": None}, TABLE, "by must be"),
        ({"by": [0, 1, 2, 3]}, TABLE, "none is left"),
        ({"by": [0, 1], "bandwidth": "regularised"}, TABLE, "use 'loo'"),
        ({"by": [0, 1], "bandwidth": "multiscale", "window": Nearest(40)}, TABLE, "use 'fixed'"),
        ({"by": [0, 1], "geographic": (1, 2)}, TABLE, "name it"),
        ({"by": [0, 1], "bandwidth": 0.1}, TABLE[:2], "fewer than the 3 coefficients"),
        ({"by": [0, 1], "bandwidth": 0.1}, np.column_stack([TABLE, X[:, 0] - 1]), "column '4' is constant, or a comb"),
        ({"by": [0, 1]}, np.column_stack([TABLE, X[:, 0] + 1.7e-5 * Y]), "a rule of thumb.*fewer col"),
        ({"by": [0, 1], "bandwidth": 0.05, "kernel": "boxcar"}, TABLE, r"column '\d' is constant there.*Nearest\(\d"),
        ({"by": [0, 1], "bandwidth": 0.01, "kernel": "boxcar", "window": Floor(9)}, TABLE, "a Floor doubles at most"),
        ({"by": [0, 1], "window": Nearest(3), "bandwidth": 1.0, "kernel": "biweight"}, TABLE, "Windows to 5 rows"),
    ],
    ids=str,
)
def test_refusals_name_the_remedy(options, table, words):
    with pytest.raises(ValueError, match=words):
        VaryingCoefficientRegressor(**options).fit(table, Y[: len(table)])
