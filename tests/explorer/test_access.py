"""The explorer can be read and operated by all: contrast, names and order for axe-core, widths, themes, odd data."""

import re

import numpy as np
import pandas as pd
import pytest

from kernpool import NadarayaWatsonClassifier, explore
from tests.support.browser import violations
from tests.support.explorer_panels import wait_until_idle
from tests.support.explorer_view import control, facts, number, settle

RNG = np.random.default_rng(0)
X = np.sort(RNG.uniform(0, 5, 40))
Y = np.sin(X) + RNG.normal(0, 0.2, 40)
LONG = "a_long_name_without_any_space_" * 4


@pytest.fixture(scope="module")
def page(shown):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (60, 2))
    y = np.sin(X[:, 0]) + X[:, 1]
    with shown(explore(X, y, bandwidth=[0.4, 0.8], title="two columns")) as found:
        yield found


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_axe_finds_no_violation_of_level_a_or_aa(page, theme, language):
    page.evaluate(f"location.hash = '#kernpool?theme={theme}&lang={language}'")
    control(page, "pin").click()
    settle(page)
    page.wait_for_timeout(300)
    assert violations(page) == []
    tag = {"zh": "zh-Hans", "en": "en"}[language]  # in which a screen reader speaks
    assert page.locator("[aria-live=polite].kp-spoken").get_attribute("lang") == tag
    assert page.locator("html").get_attribute("lang") == tag
    if language == "en":
        assert page.locator("label:has([data-control=band])").inner_text().strip() == "Interval"  # there is no band
        control(page, "copy.python").click()
        found = violations(page)
        page.locator("dialog button").last.click()
        assert found == []


@pytest.mark.parametrize("width", [500, 900, 1600])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_cut_off_or_scrolls_sideways(page, width, language):
    page.set_viewport_size({"width": width, "height": 1000})
    page.evaluate(f"location.hash = '#kernpool?lang={language}'")
    settle(page)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    cut = """() => [...document.querySelectorAll(".kp button, .kp h2, .kp dt, .kp dd, .kp output, .kp label span")]
      .filter((element) => element.scrollWidth > element.clientWidth + 1)
      .filter((element) => getComputedStyle(element).display !== "inline")
      .map((element) => element.textContent)"""
    assert page.evaluate(cut) == []
    beyond = """() => [...document.querySelectorAll("[data-panel=scatter] svg text")].filter((text) => {
      const box = text.getBoundingClientRect(), picture = text.ownerSVGElement.getBoundingClientRect();
      return text.textContent && (box.left < picture.left - 1 || box.right > picture.right + 1
        || box.top < picture.top - 1 || box.bottom > picture.bottom + 1);
    }).map((text) => text.textContent)"""
    assert page.evaluate(beyond) == []


def test_the_theme_follows_the_system_and_the_button(page):
    paper = "getComputedStyle(document.querySelector('.kp')).backgroundColor"
    page.evaluate("location.hash = '#kernpool?theme=auto&lang=en'")
    page.emulate_media(color_scheme="dark")
    settle(page)
    dark = page.evaluate(paper)
    page.emulate_media(color_scheme="light")
    settle(page)
    light = page.evaluate(paper)
    assert light == "rgb(255, 255, 255)" != dark
    control(page, "theme").click()
    settle(page)
    assert page.evaluate(paper) == dark == page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert control(page, "theme").inner_text() == "Light"


def test_every_control_is_reached_by_tab_and_has_a_name(page):
    page.evaluate("document.activeElement.blur()")
    wanted = page.locator(".kp [data-control]:enabled:visible").count()
    names = []
    for _ in range(wanted + 30):
        page.keyboard.press("Tab")
        name = page.evaluate("document.activeElement.dataset.control")
        if name and name not in names:
            names.append(name)
    assert len(names) == wanted
    assert names.index("query") < names.index("bandwidth-0") < names.index("kernel")


def test_more_rows_than_a_path_holds_are_painted(shown):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (2500, 1))
    with shown(explore(X, np.sin(X[:, 0]), bandwidth=0.2), viewport={"width": 900, "height": 900}) as page:
        assert page.locator("path.kp-points").get_attribute("d") is None
        ink = """() => [...document.querySelectorAll("[data-panel=scatter] canvas")].map((canvas) => {
          const { width, height } = canvas;
          const pen = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
          pen.drawImage(canvas, 0, 0);
          return pen.getImageData(0, 0, width, height).data.filter((v, i) => i % 4 === 3 && v).length;
        })"""
        points, discs = page.evaluate(ink)
        assert points > 1000
        assert discs > 500
        control(page, "bandwidth-0").fill("50")
        settle(page)
        assert page.evaluate(ink)[0] == points
        assert page.evaluate(ink)[1] != discs


def test_lines_of_classes_differ_in_more_than_colour_and_the_most_probable_are_told(shown):
    X = np.arange(120.0)[:, None]
    model = NadarayaWatsonClassifier(bandwidth=8.0).fit(X, np.array(list("abcdef"))[np.arange(120) // 20])
    with shown(explore(model, query=[110.0])) as page:
        ticks = page.locator("[data-panel=scatter] .kp-axes text[text-anchor=end]").all_text_contents()
        assert ticks[-6:] == [*"abcdef"]  # of the lanes
        for part in ("path.kp-curve", ".kp-key-class path"):
            dashes = page.locator(part).evaluate_all(
                "(all) => all.map((path) => path.getAttribute('stroke-dasharray'))"
            )
            assert len(set(dashes)) == 6
        shown = facts(page)
        expected = model.predict_proba([[110.0]])[0]
        order = np.argsort(-expected, kind="stable")
        assert [name for name in shown if name.startswith("P(")] == [f"P({'abcdef'[j]})" for j in order[:4]]
        assert number(shown["P(f)"]) == pytest.approx(expected[5], rel=6e-4)
        assert number(shown["2 other classes"]) == pytest.approx(expected[order[4:]].sum(), rel=6e-3)


@pytest.mark.parametrize("offset", [1e9, -1e9])
def test_values_far_from_zero_are_told_apart(shown, offset):
    with shown(explore((X + offset)[:, None], Y + offset, bandwidth=0.3)) as page:
        axes = page.locator("[data-panel=scatter] .kp-axes")
        ticks = axes.locator("text:not(.kp-name)")
        for anchor in ("middle", "end"):
            texts = [one.text_content() for one in ticks.all() if one.get_attribute("text-anchor") == anchor]
            assert len(texts) == len(set(texts)) > 2
        name = re.fullmatch(r"x ([−+]) (\d+)", axes.locator(".kp-name").first.text_content())
        assert name[1] == ("−" if offset > 0 else "+")
        assert abs(int(name[2]) - abs(offset)) <= 10
        shown_value = float(facts(page)["Estimate"].replace("−", "-"))
        assert abs(shown_value - offset) > 1e-3  # and not the offset alone
        assert abs(shown_value - offset) < 2


def test_long_names_stay_inside_the_page(shown):
    frame = pd.DataFrame({LONG: X, "town": [LONG, "b"] * 20})
    with shown(explore(frame, pd.Series(Y, name=LONG), bandwidth=[0.3], smoothing=[0.2])) as page:
        control(page, "pin").click()
        wait_until_idle(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        table = page.locator("[data-part=compare]")
        assert table.evaluate(
            "table => [...table.querySelectorAll('th, td')].every(c => c.scrollWidth <= c.clientWidth + 1)"
        )


def test_names_of_classes_do_not_lie_on_each_other(shown):
    names = np.where(np.sin(X) > 0.4, "Adelie", np.where(X > 3, "Gentoo", "Chinstrap"))
    rows = RNG.permutation(40)[:12]
    names[rows] = names[rows[::-1]]
    with shown(explore(X[:, None], names, bandwidth=0.3)) as page:
        for h in range(40, 400, 40):
            control(page, "bandwidth-0").fill(str(h))
            wait_until_idle(page)
            boxes = [one.bounding_box() for one in page.locator(".kx-inside:not([visibility=hidden])").all()]
            for i, a in enumerate(boxes):
                for b in boxes[:i]:
                    apart = abs(a["x"] + a["width"] / 2 - b["x"] - b["width"] / 2) - (a["width"] + b["width"]) / 2
                    assert apart > 0 or abs(a["y"] - b["y"]) >= 12


def test_an_infinite_bandwidth_is_called_so(shown):
    """The curve is level along that column, and the page says so in words."""
    with shown(explore(np.column_stack([X, X[::-1]]), Y, degree=0, bandwidth=[0.3, np.inf])) as page:
        slider = control(page, "bandwidth-1")
        assert slider.get_attribute("aria-valuetext") == "∞ (no effect)"
        assert control(page, "bandwidth-0").get_attribute("aria-valuetext") == "0.300"
        control(page, "degree").select_option("1")  # in which the column still has a slope
        assert slider.get_attribute("aria-valuetext") == "∞ (straight line)"
