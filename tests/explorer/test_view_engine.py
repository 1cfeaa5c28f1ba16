"""Of rows that the page does not hold, an engine tells the curve and the numbers."""

from contextlib import contextmanager

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, explore
from kernpool.explorer.explorer_model import payload_of
from kernpool.explorer.server import answer
from tests.support.browser import opened
from tests.support.explorer_payloads import import_bundle
from tests.support.explorer_view import control, drawn_curve, facts, number, settle, state

ROWS, DRAWN = 900, 60
KEPT = np.linspace(0, ROWS - 1, DRAWN).round().astype(np.intp)


@pytest.fixture(scope="module")
def subject():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (ROWS, 1))
    return explore(X, np.sin(2 * X[:, 0]) + rng.normal(0, 0.3, ROWS), bandwidth=0.2).subject


ENGINE = """({ payload, how }) => {
  window.answers = [];
  const ask = (request) => new Promise((resolve, reject) => {
    if (how === "silent") window.answers.push({ request, resolve, reject });
    else if (how === "gone") reject(new TypeError("Failed to fetch"));
    else if (how === "refuses") reject(new Error("MemoryError: too many"));
    else window.askEngine(request).then(resolve, reject);
  });
  window.mount(document.body, payload, { ...window.pageHost(), kind: "server", ask });
}"""


@pytest.fixture
def mounted(browser, tmp_path):
    """Mount a page of some of the rows, with an engine that answers, is silent, gone, or refuses."""
    path = tmp_path / "engine.html"
    path.write_text("<!doctype html><title>Test</title>", encoding="utf-8")

    @contextmanager
    def mount(subject, how):
        with opened(browser, path.as_uri(), viewport={"width": 1000, "height": 900}) as page:
            page.expose_function("askEngine", lambda request: answer(subject, request))
            payload = payload_of(subject, language="en", kept=KEPT)
            import_bundle(page)
            page.evaluate(ENGINE, {"payload": payload, "how": how})
            settle(page)
            yield page

    return mount


def test_curve_and_numbers_are_of_all_rows(subject, mounted):
    with mounted(subject, "answers") as page:
        control(page, "bandwidth-0").fill("220")
        settle(page)
        page.wait_for_timeout(600)
        now = state(page)
        fitted = NadarayaWatsonRegressor(bandwidth=now["h"]).fit(subject.model.key_, subject.model.value_)
        places, values = drawn_curve(page)
        assert np.max(np.abs(values - fitted.predict(places[:, None]).ravel())) < 0.01
        few = NadarayaWatsonRegressor(bandwidth=now["h"]).fit(subject.model.key_[KEPT], subject.model.value_[KEPT])
        assert np.max(np.abs(values - few.predict(places[:, None]).ravel())) > 0.1  # so that the test can tell
        shown = facts(page)
        assert number(shown["Estimate"]) == pytest.approx(fitted.predict([now["query"]]).item(), rel=6e-4)
        assert shown["Keys with non-zero weight"].endswith(f"of {ROWS}")
        rows = page.locator("[data-panel=weights] tbody tr").all_inner_texts()
        heaviest = np.argmax(fitted.attention_weights([now["query"]])[0])
        assert int(rows[0].split("\t")[0]) == heaviest
        assert f"{DRAWN} of {ROWS} rows" in page.locator("[data-panel=scatter]").inner_text()


def known(page):
    """Return the facts that have a number."""
    return {name: text for name, text in facts(page).items() if text != "–"}


def test_while_python_is_asked_nothing_of_the_drawn_rows_is_shown(subject, mounted):
    with mounted(subject, "silent") as page:
        assert known(page) == {}
        assert page.locator("[data-part=empty]").inner_text() == "Waiting for Python…"
        assert page.locator("path.kp-curve").get_attribute("d") is None
        assert page.locator("circle.kp-mark").get_attribute("visibility") == "hidden"
        assert "".join(page.locator("[data-panel=weights] tbody").all_inner_texts()).strip() == ""
        assert "among the rows drawn" in page.locator(".kp-legend").inner_text()
        request = page.evaluate("window.answers.find(({ request }) => request.kind === 'query').request")
        found = answer(subject, request)
        page.evaluate("(found) => window.answers.find(({ request }) => request.kind === 'query').resolve(found)", found)
        settle(page)
        assert number(facts(page)["Estimate"]) == pytest.approx(found["value"][0], rel=6e-4)
        assert page.locator("[data-part=empty]").inner_text() == ""


@pytest.mark.parametrize(
    ("how", "words"), [("gone", "Python no longer responds"), ("refuses", "MemoryError: too many")]
)
def test_an_engine_that_does_not_answer_is_said(subject, mounted, how, words):
    with mounted(subject, how) as page:
        assert known(page) == {}
        assert words in page.locator("[data-part=empty]").inner_text()
        assert words in page.locator("[data-panel=scatter]").inner_text()
        assert page.locator("path.kp-curve").get_attribute("d") is None
        page.wait_for_timeout(900)
        assert words in page.locator("[aria-live=polite]").inner_text()


def test_the_curve_of_other_settings_is_pale_until_python_has_the_new_one(subject, mounted):
    with mounted(subject, "answers") as page:
        page.wait_for_selector("path.kp-curve[d]", state="attached")
        page.wait_for_selector("svg.kp-old", state="detached")
        before = page.locator("path.kp-curve").get_attribute("d")
        page.evaluate("() => { window.askEngine = () => new Promise(() => {}); }")
        control(page, "bandwidth-0").fill("390")
        settle(page)
        assert page.locator("svg.kp-old path.kp-curve").get_attribute("d") == before


def test_panels_that_know_the_drawn_rows_alone_are_left_out(mounted):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (ROWS, 2))
    levels = np.array(["a", "b"])[(X[:, 0] + rng.normal(0, 1, ROWS) > 2.5).astype(int)]
    with mounted(explore(X, levels, bandwidth=[0.3, 0.5]).subject, "answers") as page:
        page.wait_for_selector("path.kp-curve[d]", state="attached")
        shown = set(page.locator("[data-panel]").evaluate_all("panels => panels.map((panel) => panel.dataset.panel)"))
        assert shown == {"toolbar", "scatter", "controls", "slices", "weights"}


def test_the_nearest_key_is_one_of_all_rows(mounted):
    X = np.concatenate([np.linspace(0, 1, ROWS // 2), np.linspace(4, 5, ROWS - ROWS // 2)])[:, None]
    model = NadarayaWatsonRegressor(kernel="epanechnikov", bandwidth=0.1).fit(X, np.sin(X[:, 0]))
    with mounted(explore(model, query=[2.4]).subject, "answers") as page:
        page.wait_for_function("document.querySelector('[data-part=empty]').textContent.includes('row')")
        assert f"row {ROWS // 2 - 1}, at 1.000." in page.locator("[data-part=empty]").inner_text()
