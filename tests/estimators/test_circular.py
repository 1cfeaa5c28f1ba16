"""Columns on circles and places on the globe: equal to von Mises weights, rotations change nothing, and refusals."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import iv
from scipy.stats import vonmises

from kernpool import ExtrapolationWarning, NadarayaWatsonRegressor
from kernpool.bandwidth import SearchOptions
from kernpool.cli.main import main
from kernpool.data.column_options import Circle, Globe
from kernpool.data.encoding import Encoding
from kernpool.estimators.fitted_model import printed_columns

FIXED = {"bandwidth": 1.5, "periodic": {0: 24}}
HOURS = np.linspace(0.0, 24.0, 40)[:, None]


@pytest.fixture
def day(generator):
    hour = generator.uniform(0.0, 24.0, 200)
    return hour[:, None], np.sin(2 * np.pi * hour / 24) + 0.2 * generator.normal(size=200)


@pytest.fixture
def places(generator):
    where = np.column_stack([generator.uniform(-85.0, 85.0, 120), generator.uniform(-180.0, 180.0, 120)])
    return where, np.sin(np.radians(where[:, 0])) + 0.1 * generator.normal(size=120)


def test_weights_are_those_of_von_mises(day):
    x, y = day
    angle = 2 * np.pi * (HOURS - x.T) / 24
    kappa = 1.0 / (1.5 * 2 * np.pi / 24) ** 2
    by_formula = np.exp(kappa * np.cos(angle)) / (2 * np.pi * iv(0, kappa))
    model = NadarayaWatsonRegressor(**FIXED).fit(x, y)
    for weight in (by_formula, vonmises.pdf(angle, kappa)):
        np.testing.assert_allclose(model.predict(HOURS), weight @ y / weight.sum(axis=1), rtol=1e-12, atol=1e-13)


def test_the_ends_of_a_period_are_neighbours(day):
    x, y = day
    model = NadarayaWatsonRegressor(**FIXED).fit(x, y)
    late, early = model.predict([[23.95], [0.05]])
    assert abs(late - early) < 0.05
    np.testing.assert_array_equal(model.predict([[8.3]]), model.predict([[32.3]]))
    assert Circle((0,), 24.0).place(np.array([[-1e-20]]))[0, 1] == 0.0  # its remainder rounds to the whole period


def test_a_bandwidth_on_the_globe_is_in_km():
    x = Globe((0, 1)).place(np.array([[48.0, 11.0], [48.01, 11.0], [48.0, 11.01]]))
    north, east = np.linalg.norm(x[1:] - x[0], axis=1)
    assert north == pytest.approx(1.1119, rel=1e-3)
    assert east == pytest.approx(1.1119 * np.cos(np.radians(48.0)), rel=1e-3)


def test_coordinates_share_the_bandwidth_of_their_column(generator):
    hour, x = generator.uniform(0.0, 24.0, 150), generator.normal(size=150)
    y = np.sin(2 * np.pi * hour / 24) + x + 0.1 * generator.normal(size=150)
    frame = pd.DataFrame({"x": x, "hour": hour})
    model = NadarayaWatsonRegressor(periodic={"hour": 24}).fit(frame, y)
    assert model.bandwidth_.shape == model.relevance_.shape == (2,)
    assert model.bandwidth_search_.names == ("x", "hour")
    r = 24 / (2 * np.pi)
    points = np.column_stack([x, r * np.cos(hour / r), r * np.sin(hour / r)])
    by_hand = NadarayaWatsonRegressor(bandwidth=model.bandwidth_[[0, 1, 1]]).fit(points, y)
    np.testing.assert_allclose(model.predict(frame), by_hand.predict(points), rtol=1e-9)
    np.testing.assert_allclose(model.loo_error_, by_hand.leave_one_out().error, rtol=1e-9)
    for factor in (0.9, 1.1):  # of one bandwidth; the penalty of the search moves its minimum a little
        for which in ([factor, 1.0], [1.0, factor]):
            moved = NadarayaWatsonRegressor(bandwidth=model.bandwidth_ * which, periodic={"hour": 24}).fit(frame, y)
            assert moved.leave_one_out().error > 0.998 * model.loo_error_


@pytest.mark.parametrize("bandwidth", ["loo", pytest.param("aicc", marks=pytest.mark.slow), "gcv", "scott"])
@pytest.mark.parametrize("rows", [60, 500])
def test_named_bandwidths_of_both_kinds_of_loops(bandwidth, rows, generator, monkeypatch):
    X = np.column_stack([generator.uniform(0, 24, rows), generator.uniform(size=rows)])
    y = np.cos(2 * np.pi * X[:, 0] / 24) + X[:, 1] + 0.1 * generator.normal(size=rows)
    options = {"bandwidth": bandwidth, "periodic": {0: 24}}
    fast = NadarayaWatsonRegressor(**options).fit(X, y)
    monkeypatch.setattr("kernpool.estimators.bandwidth.SearchOptions", partial(SearchOptions, algorithm="brute"))
    engine = NadarayaWatsonRegressor(**options).fit(X, y)
    np.testing.assert_allclose(fast.bandwidth_, engine.bandwidth_, rtol=1e-3)
    assert 0.0 < fast.bandwidth_[0] < 12.0


def test_inference_is_that_of_the_coordinates(day):
    x, y = day
    model = NadarayaWatsonRegressor(**FIXED).fit(x, y)
    points = Circle((0,), 24.0).place(x)
    by_hand, q = NadarayaWatsonRegressor(bandwidth=1.5).fit(points, y), Circle((0,), 24.0).place(HOURS)
    assert model.expected_error() == pytest.approx(by_hand.expected_error(), rel=1e-9)
    mine, other = (one.prediction_interval(at, method="jackknife+") for one, at in ((model, HOURS), (by_hand, q)))
    np.testing.assert_allclose(mine.lower, other.lower, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(mine.upper, other.upper, rtol=1e-9, atol=1e-12)
    levels = [0.1, 0.9]
    np.testing.assert_allclose(model.quantile(HOURS, levels), by_hand.quantile(q, levels), rtol=1e-9, atol=1e-12)


def test_queries_are_far_only_from_rows_of_all_turns(generator):
    hour = np.concatenate([generator.uniform(21.0, 24.0, 30), generator.uniform(0.0, 3.0, 30)])[:, None]
    model = NadarayaWatsonRegressor(bandwidth=0.5, periodic={0: 24}).fit(hour, hour[:, 0])
    model.predict([[0.0], [23.9], [-1.0], [26.0], [20.3], [3.7]])  # without a warning
    with pytest.warns(ExtrapolationWarning, match="column 0 is 12, the training rows have -"):
        model.predict([[12.0]])
    where = np.column_stack([generator.uniform(-10, 10, 60), generator.uniform(175, 185, 60)])
    globe = NadarayaWatsonRegressor(bandwidth=100.0, geographic=(0, 1)).fit(where, where[:, 0])
    globe.predict([[0.0, -177.0], [0.0, 177.0]])
    with pytest.warns(ExtrapolationWarning, match="column 1 is 0"):
        globe.predict([[0.0, 0.0]])


def test_the_command_line_names_columns(day, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    x, y = day
    pd.DataFrame({"hour": x[:, 0], "y": y}).to_csv("day.csv", index=False)
    fit = ["fit", "day.csv", "--target", "y", "--bandwidth", "1.5", "--degree", "0"]
    assert main([*fit, "--periodic", "hour=24", "--model", "saved", "--quiet"]) == 0
    pd.DataFrame({"hour": HOURS[:, 0]}).to_csv("asked.csv", index=False)
    assert main(["predict", "saved", "asked.csv", "--out", "said.csv", "--quiet"]) == 0
    expected = NadarayaWatsonRegressor(**FIXED).fit(x, y).predict(HOURS)
    np.testing.assert_allclose(pd.read_csv("said.csv")["y"], expected, rtol=1e-12)
    for wrong, words in ((["--periodic", "minute=60"], "--periodic names column 'minute', which is not there"),):
        assert main([*fit, *wrong]) > 0
        assert words in capsys.readouterr().err


def test_refusals_with_other_methods_of_use(day):
    x, y = day
    model = NadarayaWatsonRegressor(**FIXED).fit(x, y)
    with pytest.raises(ValueError, match="pooled as they are, and this model has periodic="):
        model.confidence_interval(x, quantity="derivative")
    with pytest.raises(ValueError, match="significance_test"):
        model.significance_test(0)
    globe = NadarayaWatsonRegressor(bandwidth=500.0, geographic=(0, 1)).fit(np.column_stack([x, x]), y)
    with pytest.raises(ValueError, match="as a latitude, from -90 to 90 degrees"):
        globe.predict([[90.5, 0.0]])


def test_the_map_of_columns_is_in_their_order():
    encoding = Encoding(None, ("numeric",) * 5, options=(Circle((3,), 2.0), Globe((4, 1))))
    assert encoding.sizes == (1, 3, 1, 2)
    np.testing.assert_array_equal(encoding.bandwidth_of, [0, 1, 2, 3, 1])
    np.testing.assert_array_equal(encoding.distinct([1.0, 5.0, 2.0, 3.0, 5.0]), [1.0, 5.0, 2.0, 3.0])


def test_robust_fits_have_one_bandwidth_for_a_circle():
    """And for a globe; an outlier has no weight."""
    random = np.random.default_rng(5)
    hour, noise = random.uniform(0, 24, size=(120, 1)), 0.2 * random.normal(size=120)
    y = np.sin(2 * np.pi * hour[:, 0] / 24) + noise
    y[7] += 50.0
    one = NadarayaWatsonRegressor(periodic={0: 24}, robust=True).fit(hour, y)
    assert one.bandwidth_.shape == one.relevance_.shape == one.bandwidth_search_.bandwidth.shape == (1,)
    assert np.argmin(one.robust_weight_) == 7
    assert one.robust_weight_[7] == 0.0
    where = np.column_stack([random.uniform(-60, 60, 120), random.uniform(-180, 180, 120)])
    globe = NadarayaWatsonRegressor(geographic=(0, 1), robust=True).fit(where, np.sin(np.radians(where[:, 0])) + noise)
    assert globe.bandwidth_.shape == (2,)
    assert globe.bandwidth_[0] == globe.bandwidth_[1]
    assert [column.unit for column in printed_columns(globe)] == ["km", "km"]
    globe.predict(where[:2])


def test_rows_at_one_place_of_a_circle_have_their_mean():
    x, y = 3.0 + 24.0 * np.arange(60.0)[:, None], np.arange(60.0)
    with pytest.warns(UserWarning, match="do not vary over the training rows"):
        model = NadarayaWatsonRegressor(periodic={0: 24.0}).fit(x, y)
    np.testing.assert_allclose(model.predict([[3.0]]), y.mean())
