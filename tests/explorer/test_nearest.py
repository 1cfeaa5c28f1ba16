"""Windows to the nearest rows: the page's numbers are those of the estimators, and its controls."""

import numpy as np
import pytest

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Nearest, explore
from kernpool.datasets import make_sine_power
from tests.support.browser import ask, opened, violations
from tests.support.explorer_answers import ANSWER, BAND, LEFT_OUT, VALUES, WEIGHTS, assert_close, case, line
from tests.support.explorer_panels import wait_until_idle
from tests.support.explorer_payloads import payload_of_arrays, settings, unpacked
from tests.support.explorer_view import control, copied, facts, link_state, number, settle, state

# Where the engine warns, the page shows the same numbers.
WARNINGS = ("EmptyWindowWarning", "RankDeficiencyWarning", "InferenceWarning", "ExtrapolationWarning")
pytestmark = pytest.mark.filterwarnings(*(f"ignore::kernpool.{name}" for name in WARNINGS))
KERNELS = ("gaussian", "boxcar", "epanechnikov", "triangular", "tricube", "cosine", "laplace")


def nearest(kernel, k, degree=0, **more):
    return settings(kernel, 0.3, degree, widths="nearest", neighbors=k, **more)


def fitted(x, y, weight, kernel, k, degree, ridge=0.0):
    given = {"kernel": kernel, "window": Nearest(k), "bandwidth": 0.3, "empty": "nan"}
    model = LocalLinearRegressor(**given, ridge=ridge) if degree else NadarayaWatsonRegressor(**given)
    return model.fit(x, y, sample_weight=weight)


def rows(situation):
    """A line with equal rows and an isolated one, also with frequencies, and with 6 rows at one place."""
    x, y, query = line()
    if situation == "coincident":
        x = np.r_[x, np.full((6, 1), 0.7)]
        y = np.r_[y, np.linspace(99.0, 101.0, 6)]
        query = np.r_[query, [[0.7]]]
    weight = np.random.default_rng(4).integers(0, 4, len(x)).astype(float) if situation == "frequencies" else None
    return x, y, query, weight


@pytest.mark.parametrize("situation", ["line", "coincident", "frequencies"])
@pytest.mark.parametrize("degree", [0, 1])
def test_answers(page, degree, situation):
    x, y, query, weight = rows(situation)
    combinations = [(kernel, k) for kernel in KERNELS for k in (4, 17, 90)]
    cases = [case(0, query, nearest(*one, degree)) for one in combinations]
    replies = ask(page, ANSWER, [payload_of_arrays(x, y, weight)], cases)
    for (kernel, k), reply in zip(combinations, replies, strict=True):
        model, what = fitted(x, y, weight, kernel, k, degree), f"{kernel} {k} degree={degree}"
        expected = model.predict(query)
        assert_close(unpacked(reply["value"]), expected, VALUES * np.ptp(y), f"values, {what}")
        assert_close(unpacked(reply["values"]), expected, VALUES * np.ptp(y), f"values of many, {what}")
        np.testing.assert_array_equal(unpacked(reply["curve"]), unpacked(reply["values"]))
        if not degree:
            found = unpacked(reply["weight"], len(query), len(x))
            assert_close(found, model.attention_weights(query), WEIGHTS, f"weights, {what}")


@pytest.mark.parametrize("situation", ["line", "coincident", "frequencies"])
@pytest.mark.parametrize(("degree", "ridge"), [(0, 0.0), (1, 0.0), (1, 0.5)])
def test_rows_that_are_left_out_have_windows_among_the_others(page, degree, ridge, situation):
    x, y, _, weight = rows(situation)
    for kernel, k in (("gaussian", 5), ("tricube", 12), ("boxcar", 30), ("tricube", 4)):
        expected = fitted(x, y, weight, kernel, k, degree, ridge).leave_one_out()
        found = ask(page, LEFT_OUT, payload_of_arrays(x, y, weight), nearest(kernel, k, degree, ridge=ridge))
        what = f"{kernel} {k}"
        assert_close(unpacked(found["value"]), expected.prediction.ravel(), VALUES * np.ptp(y), what)
        np.testing.assert_allclose(found["error"], expected.error, rtol=1e-10, err_msg=what)


@pytest.mark.parametrize(("degree", "kernel", "k"), [(0, "gaussian", 15), (1, "tricube", 30), (1, "gaussian", 8)])
def test_pointwise_intervals(page, degree, kernel, k):
    x, y, _, _ = rows("line")
    places, query = np.linspace(0.05, 0.95, 13), {"numeric": [0], "codes": []}
    found = ask(page, BAND, payload_of_arrays(x, y), nearest(kernel, k, degree), 0, places.tolist(), query, {})
    model = fitted(x, y, None, kernel, k, degree)
    expected = model.confidence_interval(places[:, None], method="robust")
    for name in ("center", "lower", "upper"):
        np.testing.assert_allclose(unpacked(found[name]), getattr(expected, name), atol=1e-9 * np.ptp(y), err_msg=name)
    band = ask(page, BAND, payload_of_arrays(x, y), nearest(kernel, k, degree), 0, [0.1], query, {"simultaneous": True})
    assert (band["critical"], band["reason"]) == (None, "widths")


def test_a_model_with_nearest_windows_opens_as_it_is(shown):
    """The slider has its number of neighbors, the estimate is its prediction; fixed windows are a menu away."""
    x, y, *_ = rows("line")
    model = NadarayaWatsonRegressor("tricube", window=Nearest(20), bandwidth=0.3).fit(x, y)
    at = float(np.sort(x[:, 0])[len(x) // 2])
    with shown(explore(model, language="en")) as page:
        assert (control(page, "widths").input_value(), control(page, "neighbors").input_value()) == ("nearest", "20")
        assert control(page, "bandwidth-0").is_hidden()
        estimate = number(facts(page)["Estimate"])
        np.testing.assert_allclose(estimate, model.predict([[at]])[0], rtol=1e-4)
        control(page, "widths").select_option("fixed")
        settle(page)
        assert control(page, "neighbors").is_hidden()
        fixed = NadarayaWatsonRegressor("tricube", bandwidth=0.3).fit(x, y)
        np.testing.assert_allclose(number(facts(page)["Estimate"]), fixed.predict([[at]])[0], rtol=1e-4)
        control(page, "model").click()
        settle(page)
        assert (control(page, "neighbors").input_value(), number(facts(page)["Estimate"])) == ("20", estimate)


@pytest.fixture(scope="module")
def view(shown):
    with shown(explore("make_sine_power", seed=0, language="en")) as found:
        yield found


def test_the_window_at_the_query_stays_when_windows_follow_the_rows(view):
    """k is how many rows the bandwidth reaches; then the slider, keys and the strip change it."""
    page = view
    x = make_sine_power(random_state=0).x_train
    before = link_state(copied(page, "copy.link"))
    control(page, "widths").select_option("nearest")
    settle(page)
    k = int(np.sum(np.abs(x - before["query"][0]) <= before["h"][0]))
    assert control(page, "neighbors").input_value() == str(k)
    assert page.locator("text.kp-h").text_content().startswith(f"k = {k}, h = ")
    control(page, "neighbors").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("]")
    page.keyboard.press("]")
    page.keyboard.press("[")
    settle(page)
    assert control(page, "neighbors").input_value() == str(k + 2)
    box = page.locator("[data-part=strip]").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 2, box["y"] + 20)
    settle(page)
    far = int(control(page, "neighbors").input_value())
    assert far > 20
    control(page, "degree").select_option("1")
    control(page, "neighbors").fill("3")
    control(page, "kernel").select_option("tricube")  # has no weight at its edge
    settle(page)
    assert page.locator("[data-panel=controls] .kp-slider:visible output").inner_text() == "4"
    assert page.locator("text.kp-h").text_content().startswith("k = 4, ")
    assert violations(page) == []


def test_links_python_and_both_languages_say_the_windows(view, browser):
    page = view
    control(page, "widths").select_option("nearest")
    control(page, "degree").select_option("0")
    control(page, "kernel").select_option("tricube")
    control(page, "neighbors").fill("11")
    settle(page)
    link, code, before = copied(page, "copy.link"), copied(page, "copy.python"), facts(page)
    assert (state(page)["widths"], state(page)["neighbors"]) == ("nearest", "11")
    with opened(browser, link, viewport={"width": 1200, "height": 1000}) as other:
        other.wait_for_selector("path.kp-curve[d]", state="attached")
        settle(other)
        assert facts(other) == before
        control(other, "language").click()
        settle(other)
        assert "近邻数 k" in other.locator("[data-panel=controls]").inner_text()
    assert "window=Nearest(11)," in code
    names = {}
    exec(code, names)
    np.testing.assert_allclose(names["model"].predict(names["query"])[0], number(before["Estimate"]), rtol=1e-3)
    control(page, "lesson").click()  # begins with fixed windows, and gives these back
    settle(page)
    assert control(page, "widths").input_value() == "fixed"
    control(page, "lesson").click()
    settle(page)
    assert control(page, "neighbors").input_value() == "11"
    page.evaluate("location.hash = '#kernpool?widths=nearest&neighbors=2.5'")
    settle(page)
    assert control(page, "neighbors").input_value() == "11"


def test_the_leave_one_out_error_is_over_the_number_of_neighbors(view):
    page = view
    control(page, "widths").select_option("nearest")
    control(page, "kernel").select_option("tricube")
    control(page, "degree").select_option("1")
    wait_until_idle(page)
    sample = make_sine_power(random_state=0)
    X, y = sample.x_train[:, None], sample.y_train
    found = page.evaluate("document.querySelector('[data-panel=path]').numbers")
    grid, errors = (found[name] for name in ("grid", "errors"))
    assert (grid[0], grid[-1]) == (4, 50)
    for k, error in list(zip(grid, errors, strict=True))[::8]:
        model = LocalLinearRegressor("tricube", window=Nearest(int(k)), ridge=0.0, bandwidth=1.0).fit(X, y)
        np.testing.assert_allclose(error, model.leave_one_out().error, rtol=1e-9)
    page.locator("[data-action=minimum]").click()
    settle(page)
    assert int(control(page, "neighbors").input_value()) == found["minimum"]["h"]
    assert found["minimum"]["error"] <= min(errors)


def test_other_windows_and_tables_have_no_such_control(shown):
    x, y, *_ = rows("line")
    with pytest.raises(ValueError, match=r"only for regressions of 3 to 5000 rows"):
        explore(np.c_[x, y], y, window=Nearest(20))
    with shown(explore(np.c_[x, x**2], y, bandwidth=[0.3, 0.3])) as page:
        assert control(page, "widths").count() == 0
