"""Columns that come round after a period: the page's numbers are those of the estimators."""

import numpy as np
import pandas as pd
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonClassifier, NadarayaWatsonRegressor, explore
from kernpool.explorer.explorer_model import EXACT_ROWS, payload_of, subject_of_model
from tests.support.browser import ask, violations
from tests.support.explorer_answers import ANSWER, BAND, LEFT_OUT, VALUES, WEIGHTS, assert_close, case
from tests.support.explorer_panels import wait_until_idle
from tests.support.explorer_payloads import unpacked
from tests.support.explorer_view import control, copied, facts, number

WARNINGS = ("EmptyWindowWarning", "RankDeficiencyWarning", "InferenceWarning", "ExtrapolationWarning")
pytestmark = pytest.mark.filterwarnings(*(f"ignore::kernpool.{name}" for name in WARNINGS))
HOURS = np.array([0.0, 0.2, 3.0, 11.9, 12.0, 18.5, 23.9, 24.1, -0.5])


def table(n=90):
    """Rows of some days, so that hours repeat, with a second number and a category."""
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(
        {"hour": rng.uniform(-24, 72, n), "heat": rng.normal(size=n), "day": rng.choice(["a", "b"], n)}
    )
    angle = 2 * np.pi * frame["hour"] / 24
    y = np.sin(angle) + 0.5 * frame["heat"] + (frame["day"] == "b") + 0.1 * rng.normal(size=n)
    return frame, y.to_numpy()


def model_of(columns, degree, kernel="gaussian", h=2.0, **options):
    frame, y = table()
    kind = LocalLinearRegressor if degree else NadarayaWatsonRegressor
    given = {
        "kernel": kernel,
        "bandwidth": [h, 0.8][: min(len(columns), 2)],
        "periodic": {"hour": 24.0},
        "empty": "nan",
    }
    smoothing = {"smoothing": [0.3]} if "day" in columns else {}
    return kind(**given, **smoothing, **options).fit(frame[columns], y), frame[columns], y


def queries(frame):
    new = frame.iloc[: len(HOURS)].copy()
    new["hour"] = HOURS
    return new


@pytest.mark.parametrize("columns", [["hour"], ["hour", "heat"], ["heat", "hour"], ["hour", "heat", "day"]])
@pytest.mark.parametrize("degree", [0, 1])
def test_answers(page, degree, columns):
    for kernel, h in (("gaussian", 2.0), ("gaussian", 40.0), ("tricube", 6.0), ("epanechnikov", 9.0)):
        model, frame, y = model_of(columns, degree, kernel, h)
        new, payload = (
            queries(frame),
            payload_of(subject_of_model(model, truth=None, target="y", title=None, load=None)),
        )
        numbers = new[[name for name in columns if name != "day"]].to_numpy()
        codes = (new["day"] == "b").to_numpy()[:, None] if "day" in columns else np.empty((len(new), 0))
        [reply] = ask(page, ANSWER, [payload], [case(0, numbers, payload["settings"], codes)])
        expected, what = model.predict(new), f"{kernel} {h}"
        assert_close(unpacked(reply["value"]), expected, VALUES * np.ptp(y), f"values, {what}")
        assert_close(unpacked(reply["values"]), expected, VALUES * np.ptp(y), f"values of many, {what}")
        if not degree:
            found = unpacked(reply["weight"], len(new), len(frame))
            assert_close(found, model.attention_weights(new), WEIGHTS, f"weights, {what}")
        else:
            slopes = model.get_prediction(new).slope.reshape(-1)
            assert_close(unpacked(reply["slope"]), slopes, 1e-8, f"slopes, {what}")


@pytest.mark.parametrize(("degree", "kernel"), [(0, "gaussian"), (0, "tricube"), (1, "gaussian"), (1, "tricube")])
def test_curve_rows_left_out_and_intervals(page, degree, kernel):
    model, _, y = model_of(["hour"], degree, kernel, 3.0)
    payload = payload_of(subject_of_model(model, truth=None, target="y", title=None, load=None))
    found, expected = ask(page, LEFT_OUT, payload, payload["settings"]), model.leave_one_out()
    assert_close(unpacked(found["value"]), expected.prediction.ravel(), VALUES * np.ptp(y), "left out")
    np.testing.assert_allclose(found["error"], expected.error, rtol=1e-10)
    places, query = np.linspace(0.0, 24.0, 13), {"numeric": [0], "codes": []}
    band = ask(page, BAND, payload, payload["settings"], 0, places.tolist(), query, {"method": "robust"})
    known = model.confidence_interval(pd.DataFrame({"hour": places}), method="robust")
    for name in ("center", "lower", "upper"):
        np.testing.assert_allclose(unpacked(band[name]), getattr(known, name), atol=1e-9 * np.ptp(y), err_msg=name)
        np.testing.assert_allclose(unpacked(band[name])[[0, -1]], unpacked(band[name])[[0, 0]], atol=1e-12)


def test_equal_places_are_nearest_together_and_count_by_their_weights(page):
    frame, y = pd.DataFrame({"hour": [0.0, 24.0, 48.0, 10.0]}), np.array([1.0, 3.0, 8.0, 100.0])
    model = NadarayaWatsonRegressor("boxcar", bandwidth=[0.5], periodic={"hour": 24.0}, empty="nearest")
    model.fit(frame, y, sample_weight=[1.0, 2.0, 1.0, 3.0])
    payload = payload_of(subject_of_model(model, truth=None, target="y", title=None, load=None))
    hours = np.array([20.0, 44.0, 3.0, 27.0, -4.0, 0.0])
    [reply] = ask(page, ANSWER, [payload], [case(0, hours[:, None], payload["settings"])])
    np.testing.assert_allclose(unpacked(reply["value"]), model.predict(pd.DataFrame({"hour": hours})), rtol=1e-14)
    np.testing.assert_allclose(unpacked(reply["value"]), 15.0 / 4.0, rtol=1e-14)


def test_classes(page):
    frame, y = table()
    model = NadarayaWatsonClassifier(bandwidth=[2.0], periodic={"hour": 24.0}).fit(frame[["hour"]], y > 0)
    payload = payload_of(subject_of_model(model, truth=None, target="y", title=None, load=None))
    [reply] = ask(page, ANSWER, [payload], [case(0, HOURS[:, None], payload["settings"])])
    expected = model.predict_proba(pd.DataFrame({"hour": HOURS}))
    assert_close(unpacked(reply["value"], len(HOURS), 2), expected, VALUES, "probabilities")


def test_the_page_has_no_nearest_windows_and_writes_the_period_in_python(shown):
    model, frame, _ = model_of(["hour"], 0)
    with shown(explore(model, target="y", language="en")) as page:
        wait_until_idle(page)
        assert control(page, "widths").count() == 0
        code = copied(page, "copy.python")
        names = {"X": frame.to_numpy(), "y": table()[1]}
        exec(code, names)
        np.testing.assert_allclose(
            names["model"].predict(names["query"])[0], number(facts(page)["Estimate"]), rtol=1e-3
        )
        assert "periodic={0: 24}" in code
        assert page.locator("[data-panel=controls] select").count() == 2  # kernel and degree
        assert control(page, "lesson").count() == 0
        assert violations(page) == []
    with shown(explore(model_of(["hour", "heat"], 0)[0], target="y", language="en")) as page:
        assert control(page, "composition").count() == 0  # a product would depend on where the circle begins
        assert 'composition="radial"' in copied(page, "copy.python")


def test_globes_and_many_rows_are_refused():
    rng = np.random.default_rng(0)
    globe = NadarayaWatsonRegressor(bandwidth=[500.0, 500.0], geographic=(0, 1)).fit(
        rng.uniform(0, 50, (20, 2)), np.arange(20.0)
    )
    with pytest.raises(ValueError, match="places on a globe, which the explorer does not draw; fit without geographic"):
        explore(globe)
    hours = rng.uniform(0, 24, (EXACT_ROWS + 1, 1))
    many = NadarayaWatsonRegressor(bandwidth=[2.0], periodic={0: 24}).fit(hours, hours[:, 0])
    with pytest.raises(
        ValueError, match="comes round, which the explorer shows for up to 5000 rows, got 5001; fit to a"
    ):
        explore(many)
