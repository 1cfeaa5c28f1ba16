"""The lesson: a prediction before each effect, one lit control, and everything as before once it is closed."""

import numpy as np
import pytest

from kernpool import NadarayaWatsonClassifier, explore
from kernpool.datasets import make_sine_power
from tests.support.browser import violations
from tests.support.explorer_panels import numbers, panel, wait_until_idle
from tests.support.explorer_view import control, drawn_curve, settle, state

RIGHT = {"mean": 1, "small": 0, "large": 2, "best": 1, "kernel": 1, "band": 0}


@pytest.fixture(scope="module")
def page(shown):
    with shown(explore("make_sine_power", bandwidth=0.25), viewport={"width": 1280, "height": 900}) as found:
        yield found


@pytest.fixture
def lesson(page):
    """The lesson at its first step; afterwards it is closed."""
    control(page, "lesson").click()
    settle(page)
    yield panel(page, "lesson")
    if panel(page, "lesson").is_visible():
        control(page, "lesson-close").click()


def lit(page):
    return page.locator("[data-lit]").evaluate_all(
        "(all) => all.map((one) => (one.querySelector('[data-control]') || one).dataset.control || one.dataset.action)"
    )


def answer(page, k):
    control(page, f"lesson-answer-{k}").click()
    wait_until_idle(page)


def go_to(page, name):
    for before in RIGHT:
        if before == name:
            return
        answer(page, RIGHT[before])
        control(page, "lesson-next").click()
        settle(page)


def test_six_steps_light_one_control_each_and_ask_before_they_tell(page, lesson):
    seen = []
    for k, (name, right) in enumerate(RIGHT.items()):
        assert lesson.locator("h2").inner_text() == f"Lesson: {k + 1} of 6"
        assert page.locator(".kp").get_attribute("data-lesson") == name
        assert lesson.locator("[data-part=told]").inner_text().startswith("Choose an answer")
        assert control(page, "lesson-next").is_disabled()
        seen += lit(page)
        wrong = (right + 1) % 3
        answer(page, wrong)
        assert lesson.locator("[data-part=told]").inner_text().startswith("Not quite.")
        answer(page, right)
        assert lesson.locator("[data-part=told]").inner_text().startswith("Right.")
        pressed = [one.get_attribute("aria-pressed") for one in lesson.locator("[aria-pressed]").all()]
        assert pressed == [str(one == right).lower() for one in range(3)]
        control(page, "lesson-next").click() if k < 5 else None
        settle(page)
    assert seen == ["query", "bandwidth-0", "bandwidth-0", "minimum", "kernel", "band"]
    assert control(page, "lesson-next").is_disabled()


def test_the_page_shows_what_the_answer_says(page, lesson):
    y = make_sine_power(random_state=0).y_train
    go_to(page, "small")
    answer(page, 2)
    control(page, "lesson-next").click()
    answer(page, 0)
    assert drawn_curve(page)[1] == pytest.approx(y.mean(), abs=0.1)
    control(page, "lesson-next").click()
    settle(page)
    answer(page, 1)
    assert state(page)["h"] == pytest.approx([numbers(page, "path")["minimum"]["h"]])


def test_kernels_are_compared_at_one_standard_deviation(page, lesson):
    go_to(page, "kernel")
    expected = {"epanechnikov": np.sqrt(5), "boxcar": np.sqrt(3), "laplace": 1 / np.sqrt(2), "gaussian": 1.0}
    answer(page, 1)
    for name, factor in expected.items():
        control(page, "kernel").select_option(name)
        settle(page)
        assert state(page)["h"] == pytest.approx([factor * 0.331], rel=3e-3)


def test_closing_restores_what_there_was(page):
    control(page, "query").fill("111")
    control(page, "pin").click()
    before = state(page)
    control(page, "lesson").focus()
    page.keyboard.press("Enter")
    settle(page)
    go_to(page, "large")
    assert not panel(page, "training").is_visible()
    assert state(page)["h"] != before["h"]
    control(page, "lesson-close").click()
    settle(page)
    assert state(page) == before
    assert page.evaluate("document.activeElement.dataset.control") == "lesson"
    assert page.locator(".kp").get_attribute("data-lesson") is None
    assert panel(page, "training").is_visible()
    assert control(page, "band").is_checked()
    page.keyboard.press("Escape")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_languages_and_themes_pass_axe_in_the_lesson(page, theme, lesson):
    page.evaluate(f"location.hash = '#kernpool?theme={theme}&lang=en'")
    go_to(page, "best")
    answer(page, 0)
    assert violations(page) == []
    control(page, "language").click()
    wait_until_idle(page)
    assert violations(page) == []
    assert lesson.locator("h2").inner_text() == "课程：第 4 步，共 6 步"
    assert lit(page) == ["minimum"]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    control(page, "language").click()


def test_where_there_is_no_band_there_is_no_lesson(shown):
    X = np.linspace(0, 1, 30)[:, None]
    for explorer in (
        explore(NadarayaWatsonClassifier(bandwidth=0.2).fit(X, np.array(list("ab"))[np.arange(30) % 2])),
        explore(np.hstack([X, X**2]), X[:, 0], bandwidth=0.3),
    ):
        with shown(explorer) as page:
            assert control(page, "lesson").count() == 0
            assert panel(page, "lesson").count() == 0


def test_a_phone_shows_settings_question_and_chart_together(shown):
    with shown(explore("make_sine_power"), viewport={"width": 390, "height": 844}) as phone:
        slider, strip = phone.locator("label:has([data-control=bandwidth-0])").bounding_box(), control(phone, "query")
        assert strip.bounding_box()["y"] < slider["y"] <= 844 - slider["height"]  # below the axis and the strip
        control(phone, "lesson").click()
        settle(phone)
        asked, drawn = panel(phone, "lesson").bounding_box(), panel(phone, "scatter").bounding_box()
        assert asked["y"] + asked["height"] <= drawn["y"]
        assert strip.bounding_box()["y"] < 844
