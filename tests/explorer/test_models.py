"""Numbers of the page are those of the models: values, weights, slopes, rows left out and intervals of every kind."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, Nearest, kernel_names
from kernpool.explorer.explorer_model import payload_of, subject_of_model
from kernpool.kernels.categorical import FAMILIES
from tests.support.browser import ask
from tests.support.explorer_answers import ANSWER, BAND, LEFT_OUT, VALUES, WEIGHTS, assert_close, case, line
from tests.support.explorer_payloads import unpacked

# Where the engine warns, the page shows the same numbers.
WARNINGS = ("EmptyWindowWarning", "RankDeficiencyWarning", "InferenceWarning", "ExtrapolationWarning")
pytestmark = pytest.mark.filterwarnings(*(f"ignore::kernpool.{name}" for name in WARNINGS))
DEGREES = pytest.mark.parametrize(("degree", "ridge"), [(0, 0.0), (1, 0.0), (1, 0.5)])
KERNELS = kernel_names()[:11]
NEAREST = [Nearest(k) for k in (4, 17, 90)]
WIDTHS = [0.05, 0.3]
PERIOD = 0.9  # columns begin before zero and end beyond it


def rows(situation):
    """Rows, outputs and queries of a line with an isolated row and equal ones; what the model and its fit are told."""
    x, y, query = line()
    random, told, fit = np.random.default_rng(4), {}, {}
    if situation == "coincident":
        x, y = np.r_[x, np.full((6, 1), 0.7)], np.r_[y, np.linspace(99.0, 101.0, 6)]
        query = np.r_[query, [[0.7]]]
    if situation in ("frequencies", "columns"):
        fit = {"sample_weight": random.integers(0, 4, len(x)).astype(float)}
    if situation == "groups":
        fit = {"groups": np.arange(len(x)) // 7}
    if situation == "columns":
        x, query = (np.column_stack([one, 0.4 + 0.1 * random.normal(size=len(one))]) for one in (x, query))
    if situation == "circle":  # of as many decimals as columns that come round keep
        told, x, query = {"periodic": {0: PERIOD}}, np.round(x, 9), np.round(query, 9)
    if situation == "mixed":
        frame, query = (
            pd.DataFrame(
                {
                    "heat": 0.4 + 0.1 * random.normal(size=len(one)),
                    "hour": np.round(one[:, 0], 9),
                    "day": np.arange(len(one)) % 2,
                    "size": np.arange(len(one)) // 2 % 4,
                }
            )
            for one in (x, query)
        )
        told = {"periodic": {"hour": PERIOD}, "smoothing": [0.3, 0.5], "unordered": ["day"], "ordered": ["size"]}
        return frame, y + frame["day"].to_numpy(), query, told, fit
    return x, y, query, told, fit


def fitted(situation, kernel, window, degree=0, ridge=0.0, **more):
    """A model, its rows and outputs, and what the page is told of it."""
    x, y, query, told, fit = rows(situation)
    width = {"window": window, "bandwidth": 0.3} if isinstance(window, Nearest) else {"bandwidth": window}
    if situation in ("columns", "mixed"):
        width["bandwidth"] = [window, window]
    given = {"kernel": kernel, "empty": "nan"} | width | told | more
    model = LocalLinearRegressor(**given, ridge=ridge) if degree else NadarayaWatsonRegressor(**given)
    model.fit(x, y, **fit)
    return model, x, y, query, told_of(model)


def told_of(model):
    return payload_of(subject_of_model(model, truth=None, target="y", title=None, load=None))


def asked(query):
    """Numbers and codes of queries."""
    if isinstance(query, pd.DataFrame):
        return query[["heat", "hour"]].to_numpy(), query[["day", "size"]].to_numpy()
    return query, ()


SITUATIONS = {
    "line": [*WIDTHS, 1e6, *NEAREST], "coincident": NEAREST, "frequencies": [*WIDTHS, *NEAREST], "columns": WIDTHS,
    "circle": [*WIDTHS, 3.0], "mixed": WIDTHS,
}  # fmt: skip


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("degree", [0, 1])
def test_answers(page, degree, situation):
    for number, kernel in enumerate(KERNELS):
        more = {"categorical_kernel": [*FAMILIES][number % len(FAMILIES)]} if situation == "mixed" else {}
        kernel = f"product {kernel}" if situation == "columns" and number % 2 else kernel
        for window in SITUATIONS[situation]:
            model, x, y, query, payload = fitted(situation, kernel, window, degree, **more)
            [reply] = ask(page, ANSWER, [payload], [case(0, asked(query)[0], payload["settings"], asked(query)[1])])
            expected, what = model.get_prediction(query), f"{kernel} {window}"
            size, *_, empty, rank = unpacked(reply["counts"], len(query), 5).T
            # A plane that is not determined has half of the digits in the engine.
            tolerance = np.where(rank < rank.max(), 1e-6, (1 + 9 * degree) * VALUES) * np.ptp(y)
            for name in ("value", "values"):
                assert_close(unpacked(reply[name]), expected.mean, tolerance, f"{name}, {what}")
            if degree and situation == "circle":
                slope = expected.slope.reshape(-1)
                assert_close(unpacked(reply["slope"]), slope, 1e-6 * np.max(np.abs(slope)), f"slopes, {what}")
            if not degree:
                found = unpacked(reply["weight"], len(query), len(x))
                assert_close(found, np.nan_to_num(model.attention_weights(query)), WEIGHTS, f"weights, {what}")
                assert_allclose(size, np.nan_to_num(expected.effective_sample_size), rtol=1e-9, err_msg=what)
                np.testing.assert_array_equal(empty, ~found.any(axis=1), err_msg=what)


LEFT = {
    "line": [*WIDTHS, *NEAREST], "coincident": NEAREST, "frequencies": [*WIDTHS, *NEAREST], "columns": WIDTHS,
    "groups": [0.25], "circle": WIDTHS,
}  # fmt: skip


@pytest.mark.parametrize("situation", LEFT)
@DEGREES
def test_rows_are_left_out(page, degree, ridge, situation):
    """Windows to the nearest rows are among the others; rows of a group are left out together."""
    for kernel in ("gaussian", "boxcar", "tricube", "laplace"):
        for window in LEFT[situation]:
            model, _, y, _, payload = fitted(situation, kernel, window, degree, ridge)
            expected = model.leave_one_out()
            found, what = ask(page, LEFT_OUT, payload, payload["settings"]), f"{kernel} {window}"
            # A plane that is not determined has half of the digits in the engine.
            tolerance = (1e-6 if degree and not ridge else VALUES) * np.ptp(y)
            assert_close(unpacked(found["value"]), expected.prediction.ravel(), tolerance, what)
            assert_allclose(unpacked(found["residual"]), y - unpacked(found["value"]), atol=1e-12)
            assert_allclose(found["error"], expected.error, rtol=1e-7, err_msg=what)
            assert found["empty"] == expected.empty_windows, what


@pytest.mark.parametrize("method", ["robust", "naive"])
@pytest.mark.parametrize("degree", [0, 1])
@pytest.mark.parametrize(
    ("kernel", "situation", "window"),
    [
        ("gaussian", "line", 0.15),
        ("gaussian", "columns", 0.15),
        ("epanechnikov", "frequencies", 0.35),
        ("tricube", "line", Nearest(30)),
        ("tricube", "circle", 0.3),
        pytest.param("laplace", "line", 0.15, marks=pytest.mark.slow),
        pytest.param("laplace", "columns", 0.15, marks=pytest.mark.slow),
    ],
)
def test_intervals(page, kernel, situation, window, degree, method):
    model, _, _, query, payload = fitted(situation, kernel, window, degree)
    query = np.full((13, query.shape[1]), 0.4)
    query[:, 0] = np.linspace(0.0, PERIOD, 13)
    is_line = situation in ("line", "frequencies") and not isinstance(window, Nearest)
    for simultaneous in [False, "tube"] if is_line else [False]:
        interval = model.confidence_interval(query, method=method, simultaneous=simultaneous)
        options = {"method": method, "simultaneous": bool(simultaneous)}
        place = {"numeric": query[0].tolist(), "codes": []}
        found = ask(page, BAND, payload, payload["settings"], 0, query[:, 0].tolist(), place, options)
        # The engine's angles of a path are arccosines of nearly one, and have half of their digits.
        loose = 1e-6 if simultaneous else 1e-8
        if simultaneous:
            assert_allclose(found["critical"], interval.critical, rtol=loose)
        names = {"center": "center", "lower": "lower", "upper": "upper", "standardError": "standard_error", "df": "df"}
        for name, of in names.items():
            value = unpacked(found[name])
            assert_allclose(value, np.ravel(getattr(interval, of)), rtol=loose, err_msg=name)
            if situation == "circle":
                assert_allclose(value[-1], value[0], rtol=1e-12)


def test_no_band_where_the_formula_does_not_hold(page):
    for kernel, window, reason in (
        ("boxcar", 0.3, "edge"),
        ("gaussian", 1e-4, "long"),
        ("tricube", Nearest(30), "widths"),
    ):
        _, _, _, _, payload = fitted("line", kernel, window)
        place, options = {"numeric": [0.0], "codes": []}, {"simultaneous": True}
        found = ask(page, BAND, payload, payload["settings"], 0, [0.1, 0.9], place, options)
        assert (found["critical"], found["reason"]) == (None, reason)


@pytest.mark.parametrize("empty", ["nan", "nearest", "mean", "zero"])
@pytest.mark.parametrize("situation", ["frequencies", "circle"])
def test_empty_windows(page, situation, empty):
    """On a circle equal places are nearest together, and count by their weights."""
    if situation == "circle":
        model = NadarayaWatsonRegressor("boxcar", bandwidth=[0.5], periodic={0: 24.0}, empty=empty)
        hours, query = np.array([[0.0], [24.0], [48.0], [10.0]]), np.array([[20.0], [44.0], [3.0], [-4.0], [0.0]])
        model.fit(hours, [1.0, 3.0, 8.0, 100.0], sample_weight=[1.0, 2.0, 1.0, 3.0])
        payload = told_of(model)
    else:
        model, _, _, _, payload = fitted(situation, "triangular", 0.02, empty=empty)
        query = np.array([[-5.0], [0.5], [1.2], [9.0]])
    [reply] = ask(page, ANSWER, [payload], [case(0, query, payload["settings"])])
    for name in ("value", "curve"):
        assert_allclose(unpacked(reply[name]), model.predict(query), rtol=1e-12)


@pytest.mark.parametrize("told", [{"prior_share": 0.2}, {"periodic": {0: PERIOD}}])
def test_classes(page, told):
    """Probabilities with the share of the priors; errors of labels without it."""
    x, y, query = line()
    label = np.digitize(y, [99.5, 100.5])
    model = NadarayaWatsonClassifier("gaussian", bandwidth=[0.1], **told).fit(x, label)
    payload = told_of(model)
    [reply] = ask(page, ANSWER, [payload], [case(0, query, payload["settings"])])
    assert_close(unpacked(reply["value"], len(query), 3), model.predict_proba(query), 1e-12, "probabilities")
    found = ask(page, LEFT_OUT, payload, payload["settings"])
    assert_allclose(found["error"], model.leave_one_out().error, rtol=1e-12)


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
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    model = kind(kernel, 0.4, **{"ridge": 0.0} if degree else {}).fit(x, y, sample_weight=weight)
    payload = told_of(model)
    found = ask(page, function, payload, payload["settings"], places.tolist())
    expected = model.predict(places[:, None])
    largest = np.max(np.abs(unpacked(found["curve"]) - expected))
    assert 0 < found["error"] <= largest * (1 + 1e-9) < most
    assert largest < 10 * found["error"]
    assert 400 <= found["binned"] < 10_000
    assert found["count"] == 30
    assert_allclose(found["exact"], model.predict([[0.1]])[0], rtol=1e-12)


def test_few_rows_and_narrow_windows_stay_exact(page):
    x = np.random.default_rng(9).uniform(size=(3000, 1))
    payload = told_of(NadarayaWatsonRegressor(bandwidth=0.1).fit(x, x[:, 0]))
    function = "(payload, settings, exact) => makeQuickPool(readData(payload), settings, exact).binned"
    cases = (
        (payload["settings"], 5000),
        (payload["settings"] | {"bandwidth": [1e-3]}, 1000),
        (payload["settings"], 1000),
    )
    assert [ask(page, function, payload, *one) for one in cases] == [0, 0, 400]
