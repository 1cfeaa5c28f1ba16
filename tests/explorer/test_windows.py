"""Windows to the nearest rows, and columns that come round: controls, links and Python of them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Nearest, explore
from kernpool.datasets import make_sine_power
from tests.support.browser import opened, violations
from tests.support.explorer_answers import line
from tests.support.explorer_panels import numbers, wait_until_idle
from tests.support.explorer_view import control, copied, facts, link_state, number, settle

SAMPLE = make_sine_power(random_state=0)


def estimate(page):
    return number(facts(page)["Estimate"])


def assert_reproduced(page):
    """What is copied as Python predicts what the page shows; return it."""
    code, names = copied(page, "copy.python"), {}
    exec(code, names)
    assert_allclose(names["model"].predict(names["query"])[0], estimate(page), rtol=1e-3)
    return code


def test_a_model_with_nearest_windows_opens_as_it_is(shown):
    """The slider has its number of neighbors, the estimate is its prediction; fixed windows are a menu away."""
    x, y, *_ = line()
    model = NadarayaWatsonRegressor("tricube", window=Nearest(20), bandwidth=0.3).fit(x, y)
    at = float(np.sort(x[:, 0])[len(x) // 2])
    with shown(explore(model, language="en")) as page:
        assert (control(page, "widths").input_value(), control(page, "neighbors").input_value()) == ("nearest", "20")
        assert control(page, "bandwidth-0").is_hidden()
        assert_allclose(estimate(page), model.predict([[at]])[0], rtol=1e-4)
        control(page, "widths").select_option("fixed")
        settle(page)
        assert control(page, "neighbors").is_hidden()
        fixed = NadarayaWatsonRegressor("tricube", bandwidth=0.3).fit(x, y)
        assert_allclose(estimate(page), fixed.predict([[at]])[0], rtol=1e-4)


def test_windows_follow_the_rows_in_controls_links_python_and_errors(shown, browser):
    """k is how many rows the bandwidth reaches; then keys and the slider change it."""
    with shown(explore("make_sine_power", seed=0, language="en")) as page:
        before = link_state(copied(page, "copy.link"))
        control(page, "widths").select_option("nearest")
        settle(page)
        k = int(np.sum(np.abs(SAMPLE.x_train - before["query"][0]) <= before["h"][0]))
        assert control(page, "neighbors").input_value() == str(k)
        assert page.locator("text.kp-h").text_content().startswith(f"k = {k}, h = ")
        control(page, "neighbors").focus()
        for key in ("ArrowRight", "]", "]", "["):
            page.keyboard.press(key)
        settle(page)
        assert control(page, "neighbors").input_value() == str(k + 2)
        control(page, "kernel").select_option("tricube")  # has no weight at its edge
        control(page, "neighbors").fill("11")
        settle(page)
        link, shown_facts = copied(page, "copy.link"), facts(page)
        with opened(browser, link, viewport={"width": 1200, "height": 1000}) as other:
            other.wait_for_selector("path.kp-curve[d]", state="attached")
            settle(other)
            assert facts(other) == shown_facts
            control(other, "language").click()
            settle(other)
            assert "近邻数 k" in other.locator("[data-panel=controls]").inner_text()
        assert "window=Nearest(11)," in assert_reproduced(page)
        control(page, "degree").select_option("1")
        wait_until_idle(page)
        found = numbers(page, "path")
        X, y = SAMPLE.x_train[:, None], SAMPLE.y_train
        assert (found["grid"][0], found["grid"][-1]) == (4, 50)
        for k, error in list(zip(found["grid"], found["errors"], strict=True))[::8]:
            model = LocalLinearRegressor("tricube", window=Nearest(int(k)), ridge=0.0, bandwidth=1.0).fit(X, y)
            assert_allclose(error, model.leave_one_out().error, rtol=1e-9)
        assert violations(page) == []


def test_a_column_that_comes_round_has_its_period_in_python(shown):
    rng = np.random.default_rng(2)
    X = rng.uniform(-24, 72, (90, 1))
    load = f"import numpy as np\nX = np.array({X.tolist()!r})\ny = np.sin(2 * np.pi * X[:, 0] / 24)"
    told = {"bandwidth": [2.0], "periodic": {0: 24.0}, "empty": "nan"}
    model = NadarayaWatsonRegressor(**told).fit(X, np.sin(2 * np.pi * X[:, 0] / 24))
    with shown(explore(model, target="y", language="en", load=load)) as page:
        assert [control(page, name).count() for name in ("widths", "lesson")] == [0, 0]
        assert "periodic={0: 24}" in assert_reproduced(page)


def test_windows_that_the_page_does_not_show():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 24, (5001, 2)), np.arange(5001.0)
    for options, words in (
        ({"bandwidth": [500.0, 500.0], "geographic": (0, 1)}, "this model has geographic=; fit without it"),
        ({"bandwidth": [2.0, 1.0], "periodic": {0: 24}}, "shows for up to 5000 rows, got 5001; fit to a"),
        ({"window": Nearest(20), "bandwidth": [1.0, 1.0]}, "only for regressions of 3 to 5000 rows"),
    ):
        with pytest.raises(ValueError, match=words):
            explore(NadarayaWatsonRegressor(**options).fit(X, y))
