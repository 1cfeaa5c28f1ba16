"""Rows of generated data that are drawn, dragged, removed and drawn anew on the page; curves from before a change."""

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, explore
from kernpool.datasets import make_sine_power
from tests.support.browser import violations
from tests.support.explorer_panels import numbers, wait_until_idle
from tests.support.explorer_view import control, copied, drawn_curve, facts, settle

SAMPLE = make_sine_power(random_state=0)
H = 0.25
POINTS = """() => document.querySelector("path.kp-points").getAttribute("d").split("M").slice(1)
  .map((part) => part.split("h")[0].split(" ").map(Number))"""


@pytest.fixture(scope="module")
def page(shown):
    with shown(explore("make_sine_power", bandwidth=H), viewport={"width": 1280, "height": 1000}) as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(page):
    yield
    while control(page, "undo").is_enabled():
        control(page, "undo").click()
        settle(page)


def picture(page):
    box = page.locator("[data-panel=scatter] svg[role=img]").bounding_box()
    return box["x"], box["y"]


def rows(page):
    """Return x and y as Python is told of them, by running what the page copies."""
    space = {}
    text = copied(page, "copy.python")
    exec(text.partition("\nexplore(")[0], space)  # the view itself is tested elsewhere
    return space["X"][:, 0], space["y"]


def draw(page, px, py):
    left, top = picture(page)
    page.mouse.dblclick(left + px, top + py)
    settle(page)


def test_points_are_added_dragged_removed_and_undone(page):
    start = page.evaluate(POINTS)
    draw(page, 700, 90)
    added = page.evaluate(POINTS)
    assert len(added) == 51
    assert added[-1] == pytest.approx([700, 90], abs=1.1)
    left, top = picture(page)
    page.mouse.move(left + 700, top + 90)
    page.mouse.down()
    page.mouse.move(left + 720, top + 120, steps=3)
    page.mouse.move(left + 740, top + 150, steps=3)
    page.mouse.up()
    wait_until_idle(page)
    assert page.evaluate(POINTS)[-1] == pytest.approx([740, 150], abs=1.1)
    x, y = rows(page)
    places, values = drawn_curve(page)
    expected = NadarayaWatsonRegressor(bandwidth=H).fit(x[:, None], y).predict(places[:, None])
    assert np.max(np.abs(values - expected)) < 0.02
    control(page, "point").focus()
    page.keyboard.press("Delete")
    settle(page)
    assert page.evaluate(POINTS) == start
    control(page, "undo").click()
    settle(page)
    assert page.evaluate(POINTS)[-1] == pytest.approx([740, 150], abs=1.1)
    control(page, "undo").click()  # of the whole drag at once
    settle(page)
    assert page.evaluate(POINTS)[-1] == added[-1]


def test_the_keyboard_adds_chooses_moves_and_removes(page):
    control(page, "query").fill("150")
    control(page, "add").press("Enter")
    settle(page)
    estimate = float(facts(page)["Estimate"])
    x, y = rows(page)
    assert len(x) == 51
    assert y[-1] == pytest.approx(estimate, rel=1e-3)  # a point on the curve leaves it nearly alone
    control(page, "point").focus()
    for key in ("Shift+ArrowUp", "Shift+ArrowUp", "Shift+ArrowRight"):
        page.keyboard.press(key)
    settle(page)
    moved_x, moved_y = rows(page)
    assert moved_x[-1] - x[-1] == pytest.approx(0.01 * np.ptp(SAMPLE.x_train) * 1.08)
    assert moved_y[-1] > y[-1]


def test_new_noise_leaves_pale_curves_of_the_last_eight_draws(page):
    control(page, "noise").click()
    settle(page)
    x, first = rows(page)
    np.testing.assert_allclose(x, SAMPLE.x_train)
    noise = first - (2 * np.sin(x) + x**0.8)
    assert 0.35 < noise.std() < 0.65
    draws = page.locator("path.kp-draws")
    assert draws.get_attribute("d").count("M") == 1
    places, values = drawn_curve(page, "draws")
    expected = NadarayaWatsonRegressor(bandwidth=H).fit(x[:, None], SAMPLE.y_train).predict(places[:, None])
    assert np.max(np.abs(values - expected)) < 0.02
    for _ in range(9):
        control(page, "noise").click()
    settle(page)
    assert draws.get_attribute("d").count("M") == 8
    page.locator("[data-option=seed]").select_option("3")
    settle(page)
    assert draws.get_attribute("d") is None
    page.locator("[data-option=seed]").select_option("0")
    settle(page)


def test_the_curve_before_the_last_change_stays_for_comparison(page):
    control(page, "kernel").select_option("gaussian")
    wait_until_idle(page)
    page.wait_for_timeout(700)
    before = numbers(page, "scatter")
    for value in ("300", "320"):  # one change: it does not rest in between
        control(page, "bandwidth-0").fill(value)
        settle(page)
    places, values = drawn_curve(page, "earlier")
    assert np.max(np.abs(values - np.interp(places, before["places"], before["values"]))) < 0.02
    assert page.locator(".kp-key-earlier").is_visible()
    control(page, "model").click()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_axe_finds_nothing_and_a_link_says_what_it_leaves_out(page, theme, language):
    page.evaluate(f"location.hash = '#kernpool?theme={theme}&lang={language}'")
    settle(page)
    draw(page, 700, 90)
    wait_until_idle(page)
    assert violations(page) == []
    control(page, "copy.link").click()
    words = {"en": "are not in the link", "zh": "不在链接中"}
    assert words[language] in page.locator("dialog .kp-hint").inner_text()
    page.locator("dialog button").last.click()


def test_rows_that_nobody_generated_are_not_drawn_over(shown):
    with shown(explore(SAMPLE, bandwidth=H)) as page:
        before = page.evaluate(POINTS)
        draw(page, 700, 90)
        assert page.evaluate(POINTS) == before
        assert control(page, "noise").count() == 0
