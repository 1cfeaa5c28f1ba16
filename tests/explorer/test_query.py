"""The explorer's view follows who operates it, by pointer and by keyboard, and shows the engine's numbers."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

from kernpool import LocalLinearRegressor, NadarayaWatsonRegressor, Nearest, explore
from kernpool.datasets import make_sine_power
from tests.support.explorer_answers import line
from tests.support.explorer_view import control, drawn_curve, facts, number, settle, state

SAMPLE = make_sine_power(random_state=0)
X, Y = SAMPLE.x_train[:, None], SAMPLE.y_train


@pytest.fixture(scope="module")
def page(shown):
    """One page for all tests: each begins with the model's settings and a query in the middle."""
    with shown(explore(SAMPLE, degree=0, bandwidth=0.25, empty="nan", title="sine")) as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(page):
    page.mouse.move(5, 5)
    if control(page, "model").is_enabled():
        control(page, "model").click()
    control(page, "query").fill("200")
    page.keyboard.press("Escape")
    settle(page)


def model(h, kernel="gaussian"):
    return NadarayaWatsonRegressor(kernel=kernel, bandwidth=h).fit(X, Y)


def strip(page):
    box = page.locator("[data-part=strip]").bounding_box()
    return box["x"], box["y"] + box["height"] / 2, box["width"]


def query_pixel(page):
    picture = page.locator("[data-panel=scatter] svg").bounding_box()
    return picture["x"] + float(page.locator("path.kp-rule").get_attribute("d")[1:].split()[0])


def drag_bandwidth(page, pixels):
    _, y, _ = strip(page)
    x = query_pixel(page)
    page.mouse.move(x + 15, y)
    page.mouse.down()
    page.mouse.move(x + pixels / 2, y)
    page.mouse.move(x + pixels, y)
    page.mouse.up()
    settle(page)


def test_the_drawn_curve_is_that_of_the_engine_after_a_drag(page):
    pixels = 60
    drag_bandwidth(page, pixels)
    h = state(page)["h"][0]
    assert h != 0.25
    places, values = drawn_curve(page)
    assert len(places) > 100
    # Paths are written to a tenth of a pixel, which is up to 0.0025 of y and, where the curve is steep, of x.
    expected = model(h).predict(places[:, None])
    assert np.max(np.abs(values - expected)) < 0.02
    assert number(page.locator("output").first.inner_text()) == pytest.approx(h, rel=5e-3)
    line = page.locator("path.kp-grip").get_attribute("d")
    start, end = (float(part) for part in re.match(r"M([\d.]+) [\d.]+H([\d.]+)", line).groups())
    assert end - start == pytest.approx(pixels, abs=0.5)  # one bandwidth


def test_hovering_moves_the_query_and_a_click_holds_it(page):
    left, y, width = strip(page)
    page.mouse.move(left + 0.3 * width, y - 150)
    settle(page)
    first = query_pixel(page)
    assert first == pytest.approx(left + 0.3 * width, abs=2)
    page.mouse.click(left + 0.3 * width, y - 150)
    page.mouse.move(left + 0.6 * width, y - 150)
    settle(page)
    assert query_pixel(page) == pytest.approx(first, abs=2)


def test_numbers_at_the_query_are_those_of_the_engine(page):
    control(page, "query").fill("137")
    settle(page)
    q = np.array([state(page)["query"]])
    fitted = model(0.25)
    weights = fitted.attention_weights(q)[0]
    shown = facts(page)
    assert number(shown["Estimate"]) == pytest.approx(fitted.predict(q)[0], rel=6e-4)
    size = fitted.get_prediction(q).effective_sample_size[0]
    assert number(shown["Effective sample size"]) == pytest.approx(size, rel=6e-3)
    assert number(shown["Largest weight"]) == pytest.approx(weights.max(), rel=6e-3)
    rows = page.locator("[data-panel=weights] tbody tr").all_inner_texts()
    cells = [row.split("\t") for row in rows]
    order = np.argsort(-weights)[:8]
    assert [int(row[0]) for row in cells[:8]] == order.tolist()
    assert [number(row[3]) for row in cells[:8]] == pytest.approx(weights[order].tolist(), rel=6e-3)
    assert number(cells[8][3]) == pytest.approx(1 - weights[order].sum(), abs=6e-4)


def radii(page, path="weights"):
    """Radii of discs, the largest first."""
    drawn = page.locator(f"path.kp-{path}").get_attribute("d")
    return np.sort([float(part.split("a")[1].split()[0]) for part in drawn.split("M")[1:]])[::-1]


def test_keys_move_the_query_and_the_bandwidth(page):
    control(page, "query").focus()
    before = state(page)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("]")
    settle(page)
    after = state(page)
    assert after["query"][0] > before["query"][0]
    assert after["h"][0] == pytest.approx(1.1 * before["h"][0], rel=1e-3)
    control(page, "bandwidth-0").press("ArrowUp")
    page.wait_for_timeout(900)
    h = number(control(page, "bandwidth-0").get_attribute("aria-valuetext"))
    assert h > after["h"][0]
    spoken = page.locator("[aria-live=polite]").inner_text()  # which a screen reader hears
    assert spoken.startswith("Query ")
    assert f"Bandwidth {h:.3g}" in spoken


def test_two_pins_are_compared(page):
    control(page, "query").fill("100")
    control(page, "query").focus()
    page.keyboard.press("p")
    settle(page)
    a = state(page)["query"]
    control(page, "query").fill("170")
    control(page, "pin").click()
    settle(page)
    b = state(page)["query"]
    control(page, "query").fill("300")
    settle(page)
    rows = [row.split("\t") for row in page.locator("[data-part=compare] tbody tr").all_inner_texts()]
    table = {row[0]: [number(cell) if cell.strip() else None for cell in row[1:]] for row in rows}
    fitted = model(0.25)
    first, second = fitted.predict([a, b])
    assert table["x"][:2] == pytest.approx([a[0], b[0]], rel=6e-4)
    assert table["Estimate"] == pytest.approx([first, second, second - first], rel=6e-3)
    shared = np.minimum(*fitted.attention_weights([a, b])).sum()
    assert table["Overlap of the weights"][2] == pytest.approx(shared, rel=6e-3)
    assert page.locator("text.kp-pin-a").text_content() == "A"
    for name, place in (("a", a), ("b", b)):
        found, weights = radii(page, f"pinned.kp-pin-{name}"), np.sort(fitted.attention_weights([place])[0])[::-1]
        assert found == pytest.approx(30 * np.sqrt(weights[: len(found)]), abs=0.06)


def test_an_empty_window_is_spelled_out(page):
    control(page, "kernel").select_option("epanechnikov")
    control(page, "bandwidth-0").fill("10")
    control(page, "query").fill("0")
    settle(page)
    message = page.locator("[data-part=empty]").inner_text()
    assert message.startswith("No key within the support of the kernel.")
    assert facts(page)["Estimate"] == "–"
    assert facts(page)["Keys with non-zero weight"] == "0 of 50"
    assert page.locator("circle.kp-mark").get_attribute("visibility") == "hidden"
    # Where the curve is missing it is interrupted, not drawn as zero.
    assert page.locator("path.kp-curve").get_attribute("d").count("M") > 1


def test_the_local_fit_is_a_segment_of_the_slope_and_length_of_the_window(page):
    flat = page.locator("path.kp-plane").get_attribute("d")
    control(page, "degree").select_option("1")
    settle(page)
    line = page.locator("path.kp-plane").get_attribute("d")
    (a, b), (c, d) = (map(float, part.split()) for part in flat[1:].split("L"))
    (p, q), (r, s) = (map(float, part.split()) for part in line[1:].split("L"))
    assert b == d
    assert (a, c) == (p, r)
    fitted = LocalLinearRegressor(bandwidth=0.25).fit(X, Y)
    place = state(page)["query"]
    slope = fitted.get_prediction([place]).slope[0, 0]
    assert number(facts(page)["Slope"]) == pytest.approx(slope, rel=6e-4)
    # In pixels the segment rises as the curve's axes say: h to each side.
    upward = page.evaluate(
        """() => [...document.querySelectorAll("[data-panel=scatter] .kp-axes text[text-anchor=end]")].map((text) =>
          [text.textContent.replace("−", "-"), text.getAttribute("y")])"""
    )
    values, pixels = np.array(upward, dtype=float).T
    unit = np.polyfit(values, pixels, 1)[0]
    assert s - q == pytest.approx(2 * 0.25 * slope * unit, abs=0.3)


def test_intervals_and_the_band_are_drawn_once_the_curve_rests(page):
    control(page, "bandwidth-0").fill("260")
    settle(page)
    assert page.locator("path.kp-band").get_attribute("d") is None  # that of the other bandwidth is gone
    page.wait_for_selector("path.kp-band[d]", state="attached")
    fitted = model(state(page)["h"][0])
    for name, simultaneous in (("band", False), ("wide", True)):
        places, upper = drawn_curve(page, name)
        found = fitted.confidence_interval(places[:, None], level=0.95, method="robust", simultaneous=simultaneous)
        # The engine's band is for the places it is given, and these are all but the outermost that the page gives.
        assert np.max(np.abs(upper - found.upper)) < 0.05


def test_a_model_with_nearest_windows_opens_as_it_is(shown):
    """The slider has its number of neighbors, the estimate is its prediction; fixed windows are a menu away."""
    x, y, *_ = line()
    model = NadarayaWatsonRegressor("tricube", window=Nearest(20), bandwidth=0.3).fit(x, y)
    at = float(np.sort(x[:, 0])[len(x) // 2])
    with shown(explore(model, language="en")) as page:
        assert (control(page, "widths").input_value(), control(page, "neighbors").input_value()) == ("nearest", "20")
        assert control(page, "bandwidth-0").is_hidden()
        assert_allclose(number(facts(page)["Estimate"]), model.predict([[at]])[0], rtol=1e-4)
        control(page, "widths").select_option("fixed")
        settle(page)
        assert control(page, "neighbors").is_hidden()
        fixed = NadarayaWatsonRegressor("tricube", bandwidth=0.3).fit(x, y)
        assert_allclose(number(facts(page)["Estimate"]), fixed.predict([[at]])[0], rtol=1e-4)
