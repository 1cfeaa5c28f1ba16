"""Columns on circles and the globe: no answer depends on where these begin; planes on tangents, refits, errors."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.special import iv

from kernpool import (
    ExtrapolationWarning,
    Floor,
    KernelStackingRegressor,
    LocalLinearRegressor,
    NadarayaWatsonClassifier,
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


def rotated(where):
    """Latitudes and longitudes of the same places on a globe with other poles."""
    x, y, z = Rotation.from_euler("xyz", [0.4, 1.1, -2.0]).apply(Globe((0, 1)).place(where)).T / EARTH_RADIUS
    return np.degrees(np.column_stack([np.arcsin(z), np.arctan2(y, x)]))


HOUR, GLOBE = {"periodic": {0: PERIOD}}, {"geographic": (0, 1)}
TURNS = {  # columns of the table, their options, and other numbers for the same rows
    "another hour": ([0], HOUR, lambda X: X + 7.3),
    "hours of other days": ([0], HOUR, lambda X: X + PERIOD * (np.arange(len(X)) % 4 - 1)[:, None]),
    "another hour, and numbers": ([0, 3], HOUR, lambda X: np.add(X, (7.313, 0.0))),
    "another hour, and categories": ([0, 4], HOUR | {"unordered": [1]}, lambda X: np.add(X, (7.313, 0))),
    "another globe": ([1, 2], GLOBE, rotated),
    "other longitudes, and numbers": ([1, 2, 3], GLOBE, lambda X: np.add(X, (0.0, 333.0, 0.0))),
}
MODELS = {  # bandwidths in hours; windows of few rows, in which planes are not determined, are among them
    "means": (NadarayaWatsonRegressor, {"bandwidth": 1.0}),
    "planes": (LocalLinearRegressor, {"bandwidth": 1.0}),
    "narrow planes": (LocalLinearRegressor, {"kernel": "epanechnikov", "bandwidth": 0.4, "ridge": 0.0}),
    "nearest": (LocalLinearRegressor, {"kernel": "tricube", "bandwidth": 1.0, "window": Nearest(12)}),
    "floor": (NadarayaWatsonRegressor, {"bandwidth": 0.4, "window": Floor(8)}),
    "robust": (LocalLinearRegressor, {"bandwidth": 1.0, "robust": True}),
    "classes": (NadarayaWatsonClassifier, {"bandwidth": 1.0}),
    "search": (NadarayaWatsonRegressor, {}),
}
SLOW = {
    "search of planes": (LocalLinearRegressor, {}),
    "stack": (lambda **options: KernelStackingRegressor(LocalLinearRegressor(**options)), {}),
}
ANSWERS = {
    "predict": lambda model, q: model.predict(q),
    "probabilities": lambda model, q: model.predict_proba(q),
    "standard error": lambda model, q: model.get_prediction(q).standard_error,
    "weights": lambda model, q: model.get_prediction(q).weights(),
    "influence": lambda model, q: model.get_prediction(q).explain(3).influence,
    "leave-one-out": lambda model, _: model.leave_one_out().prediction,
    "leverage": lambda model, _: model.residuals().leverage,
    "interval": lambda model, q: model.confidence_interval(q).lower,
    "naive interval": lambda model, q: model.confidence_interval(q, method="naive").upper,
    "quadratic interval": lambda model, q: model.confidence_interval(q, method="quadratic").upper,
    "jackknife+": lambda model, q: model.prediction_interval(q, method="jackknife+").lower,
    "adaptive": lambda model, q: model.prediction_interval(q).upper,
    "quantiles": lambda model, q: model.quantile(q, [0.1, 0.5]),
    "bootstrap": lambda model, q: model.bootstrap(q, n_resamples=9, random_state=0),
    "expected error": lambda model, _: model.expected_error(),
}


def answers_of(model, query):
    """Yield each answer, or the words by which it is refused."""
    for name, answer in ANSWERS.items():
        try:
            yield name, np.asarray(answer(model, query), dtype=float)
        except (AttributeError, TypeError, ValueError) as error:
            yield name, str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("model", [*MODELS, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_no_answer_depends_on_where_a_circle_or_the_globe_begins(model, turn):
    generator = np.random.default_rng(0)
    n, (columns, on, turned), (kind, options) = 40, TURNS[turn], (MODELS | SLOW)[model]
    north = np.degrees(np.arcsin(generator.uniform(-1.0, 1.0, n)))
    table = [generator.uniform(0.0, PERIOD, n), north, generator.uniform(-180.0, 180.0, n), generator.normal(size=n)]
    table[0][::9] = table[0][1::9][: len(table[0][::9])]  # rows at the same hour
    X = np.column_stack([*table, np.arange(n) % 2])[:, columns]
    y = np.cos(table[0] / RADIUS) + np.sin(np.radians(north)) + 0.3 * generator.normal(size=n)
    y = y > 0 if model == "classes" else y
    if "bandwidth" in options:
        options = options | {"bandwidth": options["bandwidth"] * (5000.0 if on is GLOBE else 1.0)}
        options |= {"smoothing": [0.1]} if "unordered" in on else {}
    before, after = (answers_of(kind(**options, **on).fit(rows, y), rows[:7]) for rows in (X, turned(X)))
    for (name, one), (_, other) in zip(before, after, strict=True):
        if isinstance(one, str):
            assert one == other, name
        else:
            np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-9, err_msg=name)


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


@pytest.mark.parametrize("kind", [NadarayaWatsonRegressor, LocalLinearRegressor])
def test_the_date_line_and_the_poles_are_places_like_others(kind, places):
    where, y = places
    model = kind(bandwidth=3000.0, geographic=(0, 1)).fit(where, y)
    pole = model.predict([[90.0, longitude] for longitude in (-180.0, 0.0, 77.0)])
    np.testing.assert_allclose(pole, pole[0], rtol=1e-13)
    np.testing.assert_allclose(model.predict([[89.999, 77.0]]), pole[0], atol=1e-4)
    np.testing.assert_array_equal(*(model.predict([[10.0, longitude]]) for longitude in (-179.7, 180.3)))


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
