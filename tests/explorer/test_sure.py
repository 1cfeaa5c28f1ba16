"""Gradient descent and the curves of many rows on the page are those of the engine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor
from tests.support.browser import ask
from tests.support.explorer_payloads import payload_of_arrays, settings, unpacked


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

    assert_allclose(steps[:, 1], [error(width) for width in steps[:, 0]], rtol=1e-11)
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
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    model = kind(kernel, 0.4, **{"ridge": 0.0} if degree else {}).fit(x, y, sample_weight=weight)
    expected = model.predict(places[:, None])
    largest = np.max(np.abs(unpacked(found["curve"]) - expected))
    assert 0 < found["error"] <= largest * (1 + 1e-9) < most
    assert largest < 10 * found["error"]
    assert 400 <= found["binned"] < 10_000
    assert found["count"] == 30
    assert_allclose(found["exact"], model.predict([[0.1]])[0], rtol=1e-12)


def test_few_rows_and_narrow_windows_stay_exact(page):
    g = np.random.default_rng(9)
    function = "(payload, settings, exact) => makeQuickPool(readData(payload), settings, exact).binned"
    payload = payload_of_arrays(g.uniform(size=(3000, 1)), g.normal(size=3000))
    of = [(settings("gaussian", h), exact) for h, exact in ((0.1, 5000), (1e-3, 1000), (0.1, 1000))]
    assert [ask(page, function, payload, *one) for one in of] == [0, 0, 400]
