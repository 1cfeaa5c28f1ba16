"""The explorer can be read and operated by all: contrast, names and order for axe-core, widths, themes, many rows."""

import numpy as np
import pytest

from kernpool import NadarayaWatsonClassifier, explore
from tests.support.browser import violations
from tests.support.explorer_view import control, facts, number, settle


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
