"""Local planes of columns on circles and the globe: least squares on tangents, rotations, refits, standard errors."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from scipy.special import iv

from kernpool import (
    ExtrapolationWarning,
    Floor,
    LocalLinearRegressor,
    NadarayaWatsonRegressor,
    Nearest,
    RankDeficiencyWarning,
)
from kernpool.data.column_options import EARTH_RADIUS, Circle, Globe
from tests.support.dense_inference import Dense
from tests.support.problems import with_algorithm

PERIOD = 24.0
RADIUS = PERIOD / (2 * np.pi)
HOURS = np.linspace(-1.0, 25.0, 14)[:, None]
FIXED = {"bandwidth": 2.0, "periodic": {0: PERIOD}}


@pytest.fixture
def day(generator):
    hour = generator.uniform(0.0, PERIOD, 80)
    return hour[:, None], np.sin(hour / RADIUS) + np.cos(2 * hour / RADIUS) + 0.2 * generator.normal(size=80)


@pytest.fixture
def places(generator):
    where = np.column_stack([generator.uniform(-85.0, 85.0, 90), generator.uniform(-180.0, 180.0, 90)])
    north, east = np.radians(where).T
    return where, np.sin(north) + np.cos(north) * np.cos(east - 1.0) + 0.1 * generator.normal(size=90)


def offsets_on_a_circle(x, q):
    """Offset along the tangent, and chord."""
    angle = (x - q) / RADIUS
    return RADIUS * np.sin(angle)[:, None], 2 * RADIUS * np.sin(0.5 * angle)


def offsets_on_the_globe(where, q):
    """Offsets to the north and to the east, in the tangent plane (orthographic projection), and chord."""
    (north, east), (lat, lon) = np.radians(where).T, np.radians(q)
    to_north = np.cos(lat) * np.sin(north) - np.sin(lat) * np.cos(north) * np.cos(east - lon)
    to_east = np.cos(north) * np.sin(east - lon)
    cosine = np.sin(lat) * np.sin(north) + np.cos(lat) * np.cos(north) * np.cos(east - lon)
    return EARTH_RADIUS * np.column_stack([to_north, to_east]), EARTH_RADIUS * np.sqrt(2.0 - 2.0 * cosine)


def plane_at(weight, offset, y, ridge=0.0):
    """Value and slopes of a plane by normal equations."""
    design = np.column_stack([np.ones(len(offset)), offset])
    gram = design.T @ (weight[:, None] * design) + ridge * np.diag([0.0] + [1.0] * offset.shape[1])
    return np.linalg.solve(gram, design.T @ (weight * y))


@pytest.mark.parametrize("algorithm", ["auto", "reference", "brute", "kd_tree"])
@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_planes_are_least_squares_on_tangents(algorithm, ridge, places, generator):
    where, y = places
    hour, x, weight = generator.uniform(0.0, PERIOD, 90), generator.normal(size=90), generator.integers(1, 4, 90)
    y, h, asked = y + np.cos(hour / RADIUS) + x, np.array([0.8, 3000.0, 4.0]), slice(0, 12)
    X = np.column_stack([where[:, 0], x, hour, where[:, 1]])  # the globe is named by its first column
    options = {"bandwidth": [h[1], h[0], h[2], h[1]], "geographic": (0, 3), "periodic": {2: PERIOD}}
    model = with_algorithm(LocalLinearRegressor(ridge=ridge, **options).fit(X, y, weight), algorithm)
    expected = []
    for q in X[asked] + 0.2:
        (globe, far), (circle, chord) = offsets_on_the_globe(where, q[[0, 3]]), offsets_on_a_circle(hour, q[2])
        kernel = np.exp(-0.5 * ((far / h[1]) ** 2 + (chord / h[2]) ** 2 + ((x - q[1]) / h[0]) ** 2))
        offset = np.column_stack([globe / h[1], (x - q[1]) / h[0], circle / h[2]])
        value, north, east, plain, hourly = plane_at(weight * kernel, offset, y, ridge)
        degree = np.radians(EARTH_RADIUS) / h[1]
        longitude = east * degree * np.cos(np.radians(q[0]))
        expected.append([value, north * degree, plain / h[0], hourly / h[2], longitude])
    found = model.get_prediction(X[asked] + 0.2)
    np.testing.assert_allclose(np.column_stack([found.mean, found.slope]), expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.weights() @ y, found.mean, rtol=1e-9)


def test_a_harmonic_on_evenly_spaced_hours_is_known():
    # Von Mises weights of sin(q + d): the mean of cos(d) is I1 / I0, and the slope on sin(d) is cos(q).
    x, q = np.arange(0.0, PERIOD, 0.25)[:, None], HOURS[:, 0] / RADIUS
    kappa = (RADIUS / 2.0) ** 2
    found = LocalLinearRegressor(**FIXED).fit(x, np.sin(x[:, 0] / RADIUS)).get_prediction(HOURS)
    np.testing.assert_allclose(found.mean, iv(1, kappa) / iv(0, kappa) * np.sin(q), atol=1e-13)
    np.testing.assert_allclose(found.slope[:, 0], np.cos(q) / RADIUS, atol=1e-13)


@settings(max_examples=20)
@given(st.sampled_from([NadarayaWatsonRegressor, LocalLinearRegressor]), st.floats(-50.0, 50.0))
def test_it_does_not_matter_where_a_circle_begins(kind, shift):
    generator = np.random.default_rng(3)
    x, y = generator.uniform(0.0, PERIOD, (30, 1)), generator.normal(size=30)
    before, after = (kind(**FIXED).fit(x + by, y).get_prediction(HOURS + by) for by in (0.0, shift))
    np.testing.assert_allclose(after.mean, before.mean, atol=1e-11)
    np.testing.assert_allclose(after.slope, before.slope, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [0.0, None])
def test_searches_do_not_depend_on_where_a_circle_begins(ridge, day, generator):
    x, y = day
    X = np.column_stack([x, generator.normal(size=80)])
    by = np.array([7.3, 0.0])
    one, other = (LocalLinearRegressor(periodic={0: PERIOD}, ridge=ridge).fit(X + k * by, y) for k in (0.0, 1.0))
    np.testing.assert_allclose(other.bandwidth_, one.bandwidth_, rtol=1e-4)
    np.testing.assert_allclose(other.ridge_, one.ridge_, rtol=1e-3)
    np.testing.assert_allclose(other.predict(X[:9] + by), one.predict(X[:9]), atol=1e-4)


@pytest.mark.parametrize(
    ("kind", "bandwidth"),
    [
        (NadarayaWatsonRegressor, "regularised"),
        (LocalLinearRegressor, 2500.0),
        pytest.param(LocalLinearRegressor, "regularised", marks=pytest.mark.slow),
    ],
)
def test_a_turn_of_the_globe_changes_nothing(kind, bandwidth, places):
    where, y = places
    unit = Globe((0, 1)).place(where) / EARTH_RADIUS
    turned = Rotation.from_euler("xyz", [0.4, 1.1, -2.0]).apply(unit)
    moved = np.degrees(np.column_stack([np.arcsin(turned[:, 2]), np.arctan2(turned[:, 1], turned[:, 0])]))
    one, other = (kind(bandwidth=bandwidth, geographic=(0, 1)).fit(rows, y) for rows in (where, moved))
    np.testing.assert_allclose(other.bandwidth_, one.bandwidth_, rtol=1e-5)
    np.testing.assert_allclose(other.predict(moved[:20]), one.predict(where[:20]), atol=1e-6)
    errors = (model.get_prediction(rows[:9]).standard_error for model, rows in ((one, where), (other, moved)))
    np.testing.assert_allclose(*errors, rtol=1e-5)


@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_the_date_line_and_the_poles_are_places_like_others(kind, places):
    where, y = places
    model = kind(bandwidth=3000.0, geographic=(0, 1)).fit(where, y)
    pole = model.predict([[90.0, longitude] for longitude in (-180.0, 0.0, 77.0)])
    np.testing.assert_allclose(pole, pole[0], rtol=1e-13)
    near = model.predict([[89.999, longitude] for longitude in (-180.0, 0.0, 77.0)])
    np.testing.assert_allclose(near, pole, atol=1e-4)
    np.testing.assert_allclose(*(model.predict([[10.0, longitude]]) for longitude in (-170.0, 190.0)), rtol=1e-12)
    np.testing.assert_allclose(*(model.predict([[10.0, longitude]]) for longitude in (-179.999, 179.999)), atol=1e-4)


@dataclass(frozen=True)
class OnTangents(Dense):
    """Dense reference of a circle: kernels of its two coordinates, and one offset along the tangent."""

    def coefficients(self, q, code=None, factor=1.0, degree=None, frequency=None):
        degree = self.degree if degree is None else degree
        frequency = np.broadcast_to(self.w, (len(q), len(self.x))) if frequency is None else frequency
        weight, out = self.kernel_weights(q, code, factor) * frequency, np.zeros((len(q), 2, len(self.x)))
        for i, (point, w) in enumerate(zip(q, weight, strict=True)):
            along = np.array([-point[1], point[0]]) / RADIUS
            offset = (self.x - point) @ along
            design = np.column_stack([np.ones(len(offset)), offset])[:, : degree + 1]
            out[i, : degree + 1] = np.linalg.solve(design.T @ (w[:, None] * design), (w[:, None] * design).T)
        return out


@pytest.mark.filterwarnings("ignore:.* the correction for bias is larger")
@pytest.mark.parametrize(("kind", "degree"), [(NadarayaWatsonRegressor, 0), (LocalLinearRegressor, 1)])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
def test_errors_and_intervals_are_those_of_the_reference(kind, degree, kernel, day):
    x, y = day
    weight = np.arange(80) % 3 + 1.0
    model = kind(kernel, 4.0, periodic={0: PERIOD}, window="fixed").fit(x, y, weight)
    points, q = (Circle((0,), PERIOD).place(rows) for rows in (x, HOURS))
    h = np.repeat(model.bandwidth_, 2)
    dense = OnTangents(points, y[:, None], h, weight, kernel, degree=degree)
    for variance in ("local", "sandwich"):
        error = model.get_prediction(HOURS, variance=variance).standard_error
        expected = dense.standard_error(dense.shares(q), q, variance=variance)
        np.testing.assert_allclose(error, expected[:, 0], rtol=1e-8)
        found = model.confidence_interval(HOURS, variance=variance)
        robust = dense.shares(q, method="robust")
        np.testing.assert_allclose(found.center, (robust @ y), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(
            found.standard_error, dense.standard_error(robust, q, variance=variance)[:, 0], rtol=1e-7
        )
    residuals = model.residuals()
    np.testing.assert_allclose(residuals.leverage, dense.leverage(), rtol=1e-8)
    np.testing.assert_allclose(residuals.residual, y - dense.deleted()[:, 0], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "options",
    [
        {"window": Nearest(30)},
        {"bandwidth": 2.0, "robust": True},
        {"bandwidth": 2.0, "window": Floor(20)},
    ],
)
def test_other_options_do_not_depend_on_where_a_circle_begins(options, day):
    x, y = day
    given = {"periodic": {0: PERIOD}} | options
    one, other = (LocalLinearRegressor(**given).fit(x + by, y).get_prediction(HOURS + by) for by in (0.0, 5.1))
    np.testing.assert_allclose(other.mean, one.mean, atol=1e-10)
    np.testing.assert_allclose(other.standard_error, one.standard_error, rtol=1e-8)


def test_rows_behind_a_prediction(day):
    x, y = day
    model = LocalLinearRegressor(**FIXED).fit(x, y)
    found = model.get_prediction([[23.5]]).explain(3)
    row = int(found.row[0, 0])
    without = LocalLinearRegressor(**FIXED).fit(np.delete(x, row, axis=0), np.delete(y, row))
    change = without.predict([[23.5]]) - model.predict([[23.5]])
    assert found.influence[0, 0] == pytest.approx(change[0], rel=1e-8)


def test_keys_at_one_hour_have_no_slope():
    x, y = np.full((5, 1), 6.0), np.arange(5.0)
    with pytest.warns(RankDeficiencyWarning, match="determine no slope"):
        found = LocalLinearRegressor(**FIXED).fit(x, y).predict([[6.0]])
    assert found[0] == pytest.approx(2.0, abs=1e-12)
    with pytest.warns((ExtrapolationWarning, RankDeficiencyWarning)):
        # Opposite, where offsets along the tangent are rounding errors.
        found = LocalLinearRegressor(**FIXED).fit(x, y).predict([[18.0]])
    assert found[0] == pytest.approx(2.0, abs=1e-12)


def test_what_has_no_answer_is_refused(day):
    x, y = day
    model = LocalLinearRegressor(**FIXED).fit(x, y)
    with pytest.raises(ValueError, match="additive_terms is for columns that are pooled as they are"):
        model.get_prediction(x[:2]).additive_terms()
    with pytest.raises(ValueError, match="the standard error of slopes is for columns that are pooled as they are"):
        model.confidence_interval(x, quantity="derivative")
