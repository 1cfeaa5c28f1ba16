"""Models of rows that depend on their neighbours in an order: what `gap`, `time` and the warning do and refuse."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Nearest, SerialCorrelationWarning
from kernpool.estimators.methods.row_order import FEWEST_PLACES, _pilots, named_gap
from tests.support.dense_groups import left_out

REGRESSORS = (NadarayaWatsonRegressor, LocalLinearRegressor)


def make_series(n=120, phi=0.6, seed=0, sd=0.4):
    """A sine in noise that is correlated from each row to the next one."""
    generator = np.random.default_rng(seed)
    x, noise = np.sort(generator.uniform(size=n)), generator.normal(size=n)
    for t in range(1, n):
        noise[t] = phi * noise[t - 1] + np.sqrt(1 - phi**2) * noise[t]
    return x, np.sin(2 * np.pi * x) + sd * noise


@pytest.mark.parametrize("model", REGRESSORS)
@pytest.mark.parametrize("outputs", [1, 2])
def test_the_error_is_that_of_the_dense_reference(model, outputs):
    x, y = make_series()
    Y = np.column_stack([y, y**2])[:, :outputs]
    weight = np.random.default_rng(1).integers(1, 4, len(x)).astype(float)
    shuffled = np.random.default_rng(2).permutation(len(x))
    fitted = model(bandwidth="loo", gap=4).fit(x[shuffled, None], Y[shuffled], weight[shuffled])
    place = np.empty(len(x), dtype=int)
    place[:] = np.argsort(np.argsort(x[shuffled]))
    np.testing.assert_array_equal(fitted.exclusion_.code, place)
    expected = left_out(
        x[shuffled, None],
        Y[shuffled],
        place,
        gap=4,
        weight=weight[shuffled],
        h=fitted.bandwidth_,
        degree=fitted._degree,
    )
    found = fitted.leave_one_out()
    np.testing.assert_allclose(found.prediction, expected, rtol=1e-11, atol=1e-11)
    assert fitted.loo_error_ == pytest.approx(found.error, rel=1e-10)
    if outputs == 1:
        residuals = fitted.residuals().residual
        np.testing.assert_allclose(
            residuals, (Y[shuffled] - expected)[:, 0] if residuals.ndim == 1 else Y[shuffled] - expected
        )


@pytest.mark.parametrize("model", REGRESSORS)
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_windows_within_the_gap_are_no_candidates(model, kernel):
    """Their fits follow the noise, and rows beyond the gap do not show it; .25 was the error of local lines."""
    day, noise = np.arange(100.0), np.random.default_rng(0).normal(size=100)
    for t in range(1, 100):
        noise[t] += 0.6 * noise[t - 1]
    curve = np.sin(day / 15)
    fitted = model(kernel, gap=5).fit(day[:, None], curve + 0.4 * noise)
    assert np.mean((fitted.predict(day[:, None]) - curve) ** 2) < 0.12
    assert fitted.bandwidth_[0] > 2.5


def test_a_curve_that_bends_within_the_gap_is_not_smoothed_away():
    day, noise = np.arange(200.0), np.random.default_rng(7).normal(size=200)
    for t in range(1, 200):
        noise[t] += 0.4 * noise[t - 1]
    curve = np.sin(day / 5)
    fitted = LocalLinearRegressor(gap=6).fit(day[:, None], curve + 0.4 * noise)
    assert np.mean((fitted.predict(day[:, None]) - curve) ** 2) < 0.1


def test_a_given_bandwidth_within_the_gap_is_warned_of():
    x, y = make_series(120)
    (message,) = warned(LocalLinearRegressor(bandwidth=0.01, gap=5), x[:, None], y)
    assert "bandwidth=0.01" in message
    assert "gap=5" in message
    assert not warned(LocalLinearRegressor(bandwidth=0.05, gap=5), x[:, None], y)
    assert not warned(LocalLinearRegressor(gap=5), x[:, None], y)
    table = np.column_stack([x, np.random.default_rng(0).permutation(x)])
    assert not warned(LocalLinearRegressor(bandwidth=0.1, gap=5), table, y, time=table[:, 1])


def test_the_search_ends_where_the_criterion_without_neighbours_is_least():
    x, y = make_series(200)
    fitted = LocalLinearRegressor(gap=6).fit(x[:, None], y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SerialCorrelationWarning)
        alone = LocalLinearRegressor().fit(x[:, None], y)
    assert fitted.bandwidth_[0] > 3 * alone.bandwidth_[0]
    place = np.arange(200)

    def error(h):
        return np.mean((y - left_out(x[:, None], y, place, gap=6, h=h, degree=1)) ** 2)

    best = error(fitted.bandwidth_)
    assert best == pytest.approx(fitted.loo_error_, rel=1e-9)
    assert all(error(factor * fitted.bandwidth_) > best for factor in (0.5, 0.9, 1.1, 2.0))
    truth = np.sin(2 * np.pi * x)
    assert np.mean((fitted.predict(x[:, None]) - truth) ** 2) < 0.4 * np.mean((alone.predict(x[:, None]) - truth) ** 2)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_order_is_that_of_time(frame):
    x, y = make_series(60)
    generator = np.random.default_rng(3)
    z, shuffled = generator.uniform(size=60), generator.permutation(60)
    when = np.datetime64("2020-01-01") + np.arange(60) * np.timedelta64(3, "D")
    X = np.column_stack([x, z])
    expected = LocalLinearRegressor(bandwidth=[0.2, 0.5], ridge=0.0, gap=2).fit(X, y, time=np.arange(60.0))
    dense = left_out(X, y, np.arange(60), gap=2, h=[0.2, 0.5], degree=1)
    np.testing.assert_allclose(expected.leave_one_out().prediction[:, 0], dense, rtol=1e-10)
    for time in (when, np.arange(60) * 7):
        model = LocalLinearRegressor(bandwidth=[0.2, 0.5], ridge=0.0, gap=2)
        model.fit(X[shuffled], y[shuffled], time=np.asarray(time)[shuffled])
        np.testing.assert_allclose(model.leave_one_out().prediction[:, 0], dense[shuffled], rtol=1e-10)
    table = frame({"x": x, "z": z})
    named = LocalLinearRegressor(bandwidth=[0.2, 0.5], ridge=0.0, gap=2).fit(table, y, time="x")
    np.testing.assert_array_equal(named.leave_one_out().prediction, expected.leave_one_out().prediction)


def test_ties_share_a_place_and_a_weight_counts_rows():
    x, y = make_series(30)
    x = np.round(x, 1)
    weight = np.random.default_rng(4).integers(0, 4, 30)
    weight[x == 0.3] = 0  # which is no place then: 0.4 is next to 0.2
    one = LocalLinearRegressor(bandwidth=0.3, gap=1).fit(x[:, None], y, sample_weight=weight.astype(float))
    _, place = np.unique(x[weight > 0], return_inverse=True)
    np.testing.assert_array_equal(one.exclusion_.code[weight > 0], place)
    many = np.repeat(np.arange(30), weight)
    again = LocalLinearRegressor(bandwidth=0.3, gap=1).fit(x[many, None], y[many])
    np.testing.assert_allclose(one.leave_one_out().prediction[many], again.leave_one_out().prediction, rtol=1e-11)
    assert one.leave_one_out().error == pytest.approx(again.leave_one_out().error)
    Q = [[0.2], [0.5]]
    for variance in ("local", "sandwich"):
        found, other = (model.get_prediction(Q, variance=variance).standard_error for model in (one, again))
        np.testing.assert_allclose(found, other, rtol=1e-10)


@pytest.mark.parametrize("model", REGRESSORS)
def test_standard_errors_count_correlations(model):
    """Against the matrix of shares, lag by lag."""
    x, y = make_series(80)
    gap, n = 4, 80
    fitted = model(bandwidth=0.15, gap=gap).fit(x[:, None], y)
    Q = np.array([[0.1], [0.5], [0.93]])
    share, residual = fitted.attention_weights(Q), fitted.residuals().residual
    away = np.abs(np.arange(n)[:, None] - np.arange(n))
    newey_west = np.maximum(0.0, 1.0 - away / (2 * gap + 1.0))
    expected = np.sqrt(np.einsum("qi,ij,qj->q", share * residual, newey_west, share * residual))
    found = fitted.get_prediction(Q, variance="sandwich").standard_error
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    rho = np.array([residual[lag:] @ residual[: n - lag] / (n - lag) for lag in range(2 * gap + 1)])
    rho = rho / rho[0] * np.minimum(1.0, (2 * gap + 1 - np.arange(2 * gap + 1)) / (gap + 1.0))
    table = np.where(away <= 2 * gap, rho[np.minimum(away, 2 * gap)], 0.0)
    white = np.sum(share**2, axis=1)
    inflated = np.maximum(1.0, np.einsum("qi,ij,qj->q", share, table, share) / white)
    weight = np.exp(-0.5 * ((Q - x) / 0.3) ** 2)
    noise = weight @ residual**2 / weight.sum(axis=1)
    found = fitted.get_prediction(Q).standard_error
    np.testing.assert_allclose(found, np.sqrt(noise * white * inflated), rtol=1e-9)
    alone = model(bandwidth=0.15).fit(x[:, None], y).get_prediction(Q).standard_error
    assert np.all(found > 1.3 * alone)
    with pytest.raises(ValueError, match="variance='nn' is for independent rows; with gap=4"):
        fitted.get_prediction(Q, variance="nn").standard_error  # noqa: B018


def test_expected_error_and_prediction_intervals_are_of_rows_beyond_the_gap():
    x, y = make_series(100)
    fitted = LocalLinearRegressor(gap=5).fit(x[:, None], y)
    assert 0.8 * fitted.loo_error_ < fitted.expected_error() < 2.0 * fitted.loo_error_
    found = fitted.prediction_interval(x[:, None])
    assert np.mean((found.lower <= y) & (y <= found.upper)) > 0.8
    assert "without a finite-sample guarantee" in found.guarantee
    given = LocalLinearRegressor(bandwidth=0.1, gap=5).fit(x[:, None], y)
    assert given.expected_error() == pytest.approx(given.leave_one_out().error)
    for method in ("jackknife+", "cv+"):
        with pytest.raises(ValueError, match=r"the fit has gap=5, .*; use method='adaptive'"):
            fitted.prediction_interval(x[:3, None], method=method)


def test_rules_look_at_columns_alone():
    x, y = make_series(30)
    rule = LocalLinearRegressor(bandwidth="scott", gap=2).fit(x[:, None], y)
    assert rule.leave_one_out().error > 0


def warned(model, *rows, **given):
    with warnings.catch_warnings(record=True, action="always") as caught:
        model.fit(*rows, **given)
    return [str(one.message) for one in caught if one.category is SerialCorrelationWarning]


@pytest.mark.parametrize("model", REGRESSORS)
def test_correlated_noise_is_warned_of_once(model):
    x, y = make_series(200)
    (message,) = warned(model(), x[:, None], y)
    assert "order of X are correlated: lag-one correlation 0." in message
    assert "fit with gap=" in message
    assert "groups=" in message
    shuffled = np.random.default_rng(0).permutation(200)
    assert warned(model(), pd.DataFrame({"day": x[shuffled]}), y[shuffled])[0] == message.replace("of X", "of 'day'")
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(200), unit="D")
    assert "order of 'day'" in warned(model(), pd.DataFrame({"day": days}), y)[0]
    assert not warned(model(gap=5), x[:, None], y)
    assert not warned(model(), x[:, None], y, groups=np.arange(200) // 10)
    assert not warned(model(bandwidth=0.1), x[:, None], y)
    assert not warned(model(bandwidth="aicc"), x[:, None], y)
    assert not warned(model(), x[: FEWEST_PLACES - 1, None], y[: FEWEST_PLACES - 1])


def test_several_columns_are_tested_in_the_order_of_time():
    x, y = make_series(200, phi=0.7, seed=3)
    z = np.random.default_rng(5).normal(size=200)
    X = np.column_stack([z, np.random.default_rng(6).normal(size=200)])
    y = y - np.sin(2 * np.pi * x) + np.sin(z)
    assert not warned(LocalLinearRegressor(bandwidth="loo"), X, y)
    (message,) = warned(LocalLinearRegressor(bandwidth="loo"), X, y, time=np.arange(200))
    assert "order of time" in message
    shuffled = np.random.default_rng(0).permutation(200)
    assert not warned(LocalLinearRegressor(bandwidth="loo"), X, y, time=shuffled)


def test_pilots_of_windows_that_follow_the_rows_are_of_fixed_width():
    model = LocalLinearRegressor("tricube", "loo", window=Nearest())
    for phi in (0.0, 0.6):
        x, y = make_series(200, phi)
        assert bool(warned(model, x[:, None], y)) == (phi > 0)
    x, y = make_series(200, 0.6)
    table = np.column_stack([x, np.arange(200) == 7, np.zeros(200)])
    with warnings.catch_warnings(action="ignore"):  # of the column that is constant
        assert warned(model, table, y, time=x)


def test_what_is_no_correlated_noise():
    x = np.linspace(0.0, 1.0, 200)
    for values in (np.sin(9 * x), np.zeros(200), 3.0 * x, np.cos(99.0 * np.arange(200))):
        assert not warned(LocalLinearRegressor(), x[:, None], values)
    skewed, noise = np.exp(np.random.default_rng(1).normal(size=200)), np.random.default_rng(2).normal(size=200)
    assert not warned(LocalLinearRegressor(), skewed[:, None], np.sin(np.log(skewed)) + 0.4 * noise)


def test_pilots_follow_a_parabola():
    """So that bends of the curve are not taken for noise; in ranks too, which are the column here."""
    x = np.linspace(0.0, 1.0, 80)
    model = LocalLinearRegressor(bandwidth=0.1).fit(x[:, None], x**2)
    *_, of_column, of_ranks = _pilots(model.smoother_, np.arange(80), only_ratios=False)
    for pilot in (of_column, of_ranks):
        np.testing.assert_allclose(pilot.fit_left_out(None).values()[0], pilot.value, atol=1e-9)


def test_the_gap_that_is_named_grows_with_the_correlation():
    assert [named_gap(rho, 1000) for rho in (0.1, 0.6, 0.9, 1.0)] == sorted(
        named_gap(r, 1000) for r in (0.1, 0.6, 0.9, 1.0)
    )
    assert all(1 <= named_gap(rho, places) <= max(1, places // 10) for rho in (0.1, 0.9) for places in (5, 60, 1000))


@pytest.mark.slow
@pytest.mark.parametrize("model", REGRESSORS)
@pytest.mark.parametrize(("phi", "least", "most"), [(0.0, 0.0, 0.05), (0.3, 0.95, 1.0), (0.6, 0.99, 1.0)])
def test_how_often_noise_is_warned_of(model, phi, least, most):
    """With binomial slack of two standard deviations of 200 samples."""
    rate = np.mean([bool(warned(model(), x[:, None], y)) for x, y in (make_series(200, phi, k) for k in range(200))])
    assert least - 0.03 <= rate <= most + 0.03


@pytest.mark.slow
def test_flat_curves_of_skewed_columns_are_seldom_warned_of():
    """Residuals of wide windows are noise, and not correlated less; 15 percent of these samples were warned of."""
    samples = (np.random.default_rng(k) for k in range(60))
    rows = ((random.exponential(size=(200, 1)), random.normal(size=200)) for random in samples)
    assert np.mean([bool(warned(LocalLinearRegressor(), *one)) for one in rows]) < 0.06


@pytest.mark.slow
@pytest.mark.parametrize(("phi", "error", "coverage"), [(0.0, 0.012, 0.92), (0.3, 0.014, 0.91), (0.6, 0.025, 0.88)])
def test_error_and_coverage_with_the_gap_that_is_named(phi, error, coverage):
    found, covered, q = [], [], np.array([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])
    for k in range(100):
        x, y = make_series(200, phi, 500 + k)
        model = LocalLinearRegressor(gap=named_gap(max(phi, 0.2), 200)).fit(x[:, None], y)
        found.append(np.mean((model.predict(x[:, None]) - np.sin(2 * np.pi * x)) ** 2))
        interval = model.confidence_interval(q[:, None])
        covered.append((interval.lower < np.sin(2 * np.pi * q)) & (np.sin(2 * np.pi * q) < interval.upper))
    assert np.mean(found) < 1.1 * error
    assert np.mean(covered) > coverage - 0.02
