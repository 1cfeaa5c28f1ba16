"""Controls of windows to the nearest rows, links and Python of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Nearest, explore
from kernpool.datasets import make_sine_power
from tests.support.browser import opened, violations
from tests.support.explorer_answers import line
from tests.support.explorer_panels import wait_until_idle
from tests.support.explorer_view import control, copied, facts, link_state, number, settle, state


def test_a_model_with_nearest_windows_opens_as_it_is(shown):
    """The slider has its number of neighbors, the estimate is its prediction; fixed windows are a menu away."""
    x, y, *_ = line()
    model = NadarayaWatsonRegressor("tricube", window=Nearest(20), bandwidth=0.3).fit(x, y)
    at = float(np.sort(x[:, 0])[len(x) // 2])
    with shown(explore(model, language="en")) as page:
        assert (control(page, "widths").input_value(), control(page, "neighbors").input_value()) == ("nearest", "20")
        assert control(page, "bandwidth-0").is_hidden()
        estimate = number(facts(page)["Estimate"])
        assert_allclose(estimate, model.predict([[at]])[0], rtol=1e-4)
        control(page, "widths").select_option("fixed")
        settle(page)
        assert control(page, "neighbors").is_hidden()
        fixed = NadarayaWatsonRegressor("tricube", bandwidth=0.3).fit(x, y)
        assert_allclose(number(facts(page)["Estimate"]), fixed.predict([[at]])[0], rtol=1e-4)
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
    assert_allclose(names["model"].predict(names["query"])[0], number(before["Estimate"]), rtol=1e-3)
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
        assert_allclose(error, model.leave_one_out().error, rtol=1e-9)
    page.locator("[data-action=minimum]").click()
    settle(page)
    assert int(control(page, "neighbors").input_value()) == found["minimum"]["h"]
    assert found["minimum"]["error"] <= min(errors)


def test_other_windows_and_tables_have_no_such_control(shown):
    x, y, *_ = line()
    with pytest.raises(ValueError, match=r"only for regressions of 3 to 5000 rows"):
        explore(np.c_[x, y], y, window=Nearest(20))
    with shown(explore(np.c_[x, x**2], y, bandwidth=[0.3, 0.3])) as page:
        assert control(page, "widths").count() == 0
