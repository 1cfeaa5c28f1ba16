"""What the page says of errors, left-out rows, intervals and gradient descent is what the engine says."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor
from tests.support.browser import ask
from tests.support.explorer_answers import BAND, LEFT_OUT
from tests.support.explorer_payloads import packed, payload_of_arrays, settings, unpacked

# Where the engine warns, the page shows the same numbers.
WARNINGS = ("EmptyWindowWarning", "RankDeficiencyWarning", "InferenceWarning")
pytestmark = pytest.mark.filterwarnings(*(f"ignore::kernpool.{name}" for name in WARNINGS))
CURVE = """(payload, settings, places) => {
  const query = { numeric: [0], codes: [] };
  return pack(makePool(readData(payload), settings).curve(0, Float64Array.from(places), query));
}"""


def rows(situation, n=70):
    """Rows, outputs and frequencies: a line with an isolated row, equal rows, two columns."""
    g = np.random.default_rng(5)
    x = np.sort(g.uniform(size=(n, 2)), axis=0) if situation == "columns" else np.sort(g.uniform(size=(n, 1)), axis=0)
    x[-1] += 2.0
    x[10] = x[11]
    y = 30 + np.sin(5 * x[:, 0]) + 0.2 * g.normal(size=n)
    return x, y, g.integers(0, 4, n).astype(float) if situation == "frequencies" else None


def fitted(x, y, weight, kernel, h, degree, ridge=0.0, **options):
    model = (
        LocalLinearRegressor(kernel, h, ridge=ridge, **options)
        if degree
        else NadarayaWatsonRegressor(kernel, h, **options)
    )
    return model.fit(x, y, sample_weight=weight)


@pytest.mark.parametrize("kernel", ["gaussian", "boxcar", "epanechnikov", "tricube", "laplace", "logistic"])
@pytest.mark.parametrize("situation", ["line", "frequencies", "columns"])
@pytest.mark.parametrize(("degree", "ridge"), [(0, 0.0), (1, 0.0), (1, 0.5)])
def test_rows_are_left_out(page, kernel, situation, degree, ridge):
    x, y, weight = rows(situation)
    for h in (0.05, 0.3):
        model = fitted(x, y, weight, kernel, [h] * x.shape[1], degree, ridge)
        expected = model.leave_one_out()
        widths = [h] * x.shape[1]
        found = ask(page, LEFT_OUT, payload_of_arrays(x, y, weight), settings(kernel, widths, degree, ridge=ridge))
        value = unpacked(found["value"])
        # The isolated row's plane is not determined, and the engine has half of its digits there.
        tolerance = np.where(np.arange(len(y)) == len(y) - 1, 1e-6, 1e-10) * np.ptp(y)
        assert np.all(np.abs(value - expected.prediction[:, 0]) <= tolerance), (kernel, situation, h)
        np.testing.assert_allclose(unpacked(found["residual"]), y - value, atol=1e-12)
        np.testing.assert_allclose(found["error"], expected.error, rtol=1e-7)
        assert found["empty"] == expected.empty_windows


@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize("kernel", ["gaussian", "epanechnikov"])
@pytest.mark.parametrize("situation", ["line", "frequencies", "columns"])
def test_groups_are_left_out_together(page, kernel, situation, degree):
    x, y, weight = rows(situation)
    group, widths = np.arange(len(y)) // 7, [0.25] * x.shape[1]
    model = LocalLinearRegressor(kernel, widths, ridge=0.0) if degree else NadarayaWatsonRegressor(kernel, widths)
    expected = model.fit(x, y, sample_weight=weight, groups=group).leave_one_out()
    payload = payload_of_arrays(x, y, weight) | {"group": packed(group)}
    # What empty windows become elsewhere makes no difference.
    found = ask(page, LEFT_OUT, payload, settings(kernel, widths, degree, empty="zero"))
    np.testing.assert_allclose(unpacked(found["value"]), expected.prediction[:, 0], rtol=1e-8)
    np.testing.assert_allclose(found["error"], expected.error, rtol=1e-7)
    assert found["empty"] == expected.empty_windows


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # of the ends of the page
def test_of_classes(page):
    """Probabilities with the share of the priors; errors of labels without it."""
    g = np.random.default_rng(6)
    x = np.sort(g.uniform(size=(60, 1)), axis=0)
    y = (g.uniform(size=60) < x[:, 0]).astype(int) + (x[:, 0] > 0.7)
    model = NadarayaWatsonClassifier("gaussian", 0.1, prior_share=0.2).fit(x, y)
    chosen = settings("gaussian", 0.1, priorShare=0.2)
    payload = payload_of_arrays(x, y, classes=["0", "1", "2"])
    query = np.linspace(-0.2, 1.2, 15)
    found = unpacked(ask(page, CURVE, payload, chosen, query.tolist()), 3, 15).T
    np.testing.assert_allclose(found, model.predict_proba(query[:, None]), rtol=0, atol=1e-12)
    left_out = ask(page, LEFT_OUT, payload, chosen)
    np.testing.assert_allclose(left_out["error"], model.leave_one_out().error, rtol=1e-12)


@pytest.mark.parametrize("empty", ["nan", "nearest", "mean", "zero"])
def test_empty_windows(page, empty):
    x, y, weight = rows("frequencies")
    query = np.array([-5.0, 0.5, 1.5, 9.0])
    expected = (
        NadarayaWatsonRegressor("triangular", 0.2, empty=empty).fit(x, y, sample_weight=weight).predict(query[:, None])
    )
    found = unpacked(
        ask(page, CURVE, payload_of_arrays(x, y, weight), settings("triangular", 0.2, empty=empty), query.tolist())
    )
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("method", ["robust", "naive"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize(
    ("kernel", "situation"),
    [
        ("gaussian", "line"),
        ("gaussian", "columns"),
        ("epanechnikov", "frequencies"),
        pytest.param("gaussian", "frequencies", marks=pytest.mark.slow),
        pytest.param("epanechnikov", "line", marks=pytest.mark.slow),
        pytest.param("epanechnikov", "columns", marks=pytest.mark.slow),
        pytest.param("laplace", "line", marks=pytest.mark.slow),
        pytest.param("laplace", "columns", marks=pytest.mark.slow),
    ],
)
def test_intervals(page, kernel, situation, degree, method):
    x, y, weight = rows(situation)
    h = [0.15 if kernel != "epanechnikov" else 0.35] * x.shape[1]
    query = np.full((9, x.shape[1]), 0.4)
    query[:, 0] = np.linspace(0.02, 0.98, 9)
    model = fitted(x, y, weight, kernel, h, degree)
    expected = [model.confidence_interval(query, method=method)]
    if situation != "columns":
        expected.append(model.confidence_interval(query, method=method, simultaneous="tube"))
    for simultaneous, interval in enumerate(expected):
        found = ask(
            page,
            BAND,
            payload_of_arrays(x, y, weight),
            settings(kernel, h, degree),
            0,
            query[:, 0].tolist(),
            {"numeric": query[0].tolist(), "codes": []},
            {"method": method, "simultaneous": bool(simultaneous)},
        )
        # The engine's angles of a path are arccosines of nearly one, and have half of their digits.
        loose = 1e-6 if simultaneous else 1e-8
        if simultaneous:
            np.testing.assert_allclose(found["critical"], interval.critical, rtol=loose)
        names = {"center": "center", "lower": "lower", "upper": "upper", "standardError": "standard_error", "df": "df"}
        for name, of in names.items():
            value = getattr(interval, of)
            np.testing.assert_allclose(unpacked(found[name]), np.ravel(value), rtol=loose, err_msg=f"{name} {h}")


def test_no_band_where_the_formula_does_not_hold(page):
    x, y, _ = rows("line")
    for kernel, h, reason in (("boxcar", 0.3, "edge"), ("gaussian", 1e-4, "long")):
        query = {"numeric": [0.0], "codes": []}
        options = {"simultaneous": True}
        found = ask(page, BAND, payload_of_arrays(x, y), settings(kernel, h), 0, [0.1, 0.9], query, options)
        assert (found["critical"], found["reason"]) == (None, reason)


@pytest.mark.parametrize("loss", ["mean", "sum"])
def test_gradient_descent(page, loss):
    """Losses are the engine's leave-one-out errors, and steps follow their slopes in w = 1/h."""
    g = np.random.default_rng(7)
    x = np.sort(g.uniform(0, 5, size=40))
    y = 2 * np.sin(x) + x**0.8 + 0.5 * g.normal(size=40)
    rate = 0.5 if loss == "mean" else 0.5 / 40
    function = "(payload, options) => [...descend(readData(payload), options)].map(({ width, loss }) => [width, loss])"
    options = {"width": 1.0, "rate": rate, "epochs": 6, "loss": loss}
    steps = np.array(ask(page, function, payload_of_arrays(x[:, None], y), options))
    assert len(steps) == 7

    def error(width):
        model = NadarayaWatsonRegressor("gaussian", 1.0 / width).fit(x[:, None], y)
        return model.leave_one_out().error * (len(x) if loss == "sum" else 1)

    np.testing.assert_allclose(steps[:, 1], [error(width) for width in steps[:, 0]], rtol=1e-11)
    small = 1e-3  # of a difference whose error is of fourth order
    for width, after in zip(steps[:-1, 0], steps[1:, 0], strict=True):
        near = error(width + small) - error(width - small)
        far = error(width + 2 * small) - error(width - 2 * small)
        assert abs((width - after) / rate - (8 * near - far) / (12 * small)) < 1e-7 * max(1.0, error(width))
    assert np.all(np.diff(steps[:, 1]) < 0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize(
    ("kernel", "most"), [("gaussian", 2e-4), ("epanechnikov", 2e-3), ("laplace", 2e-3), ("boxcar", 0.05)]
)
def test_curves_of_many_rows(page, kernel, most, degree, weighted):
    """They are binned; the error that is shown is that at some places, and no other is many times as large."""
    g = np.random.default_rng(8)
    x, y = g.normal(size=(20_000, 1)), 100 + g.normal(size=20_000)
    y += np.sin(3 * x[:, 0])
    weight = g.integers(0, 3, 20_000).astype(float) if weighted else None
    places = np.linspace(-2.5, 2.5, 60)
    function = """(payload, settings, places) => {
      const pool = makeQuickPool(readData(payload), settings, 5000), query = { numeric: [0], codes: [] };
      const steps = pool.compare(places, query), exact = pool.value({ numeric: [0.1], codes: [] })[0];
      let step = steps.next();
      while (!step.done) step = steps.next();
      const curve = pack(pool.curve(0, Float64Array.from(places), query));
      return { ...step.value, exact, curve, binned: pool.binned };
    }"""
    found = ask(page, function, payload_of_arrays(x, y, weight), settings(kernel, 0.4, degree), places.tolist())
    model = fitted(x, y, weight, kernel, 0.4, degree)
    expected = model.predict(places[:, None])
    largest = np.max(np.abs(unpacked(found["curve"]) - expected))
    assert 0 < found["error"] <= largest * (1 + 1e-9) < most
    assert largest < 10 * found["error"]
    assert 400 <= found["binned"] < 10_000
    assert found["count"] == 30
    np.testing.assert_allclose(found["exact"], model.predict([[0.1]])[0], rtol=1e-12)


def test_few_rows_and_narrow_windows_stay_exact(page):
    g = np.random.default_rng(9)
    function = "(payload, settings, exact) => makeQuickPool(readData(payload), settings, exact).binned"
    payload = payload_of_arrays(g.uniform(size=(3000, 1)), g.normal(size=3000))
    of = [(settings("gaussian", h), exact) for h, exact in ((0.1, 5000), (1e-3, 1000), (0.1, 1000))]
    assert [ask(page, function, payload, *one) for one in of] == [0, 0, 400]
