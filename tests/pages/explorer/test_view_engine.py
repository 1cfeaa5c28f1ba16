"""Of rows that the page does not hold, an engine tells the curve and the numbers."""

import json

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor
from kernpool.pages.explorer.bundle import bundle
from kernpool.pages.explorer.engine import answer
from kernpool.pages.explorer.explore import explore
from kernpool.pages.explorer.payload import payload_of
from tests.support.browser import browser, opened, page_of  # noqa: F401
from tests.support.explorer_view import control, drawn_curve, facts, number, settle, state

ROWS, DRAWN = 900, 60
KEPT = np.linspace(0, ROWS - 1, DRAWN).round().astype(np.intp)


@pytest.fixture(scope="module")
def subject():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 5, (ROWS, 1))
    return explore(X, np.sin(2 * X[:, 0]) + rng.normal(0, 0.3, ROWS), bandwidth=0.2).subject


def test_curve_and_numbers_are_of_all_rows(browser, subject, tmp_path):  # noqa: F811
    payload = payload_of(subject, language="en", kept=KEPT)
    path = tmp_path / "engine.html"
    path.write_text(page_of(bundle(["main.js", "hosts.js"]), ["mount", "pageHost"]), encoding="utf-8")
    asked = []

    def ask(request):
        asked.append(request["kind"])
        return answer(subject, request)

    with opened(browser, path.as_uri(), viewport={"width": 1000, "height": 900}) as page:
        page.expose_function("askEngine", ask)
        page.evaluate(
            f"window.mount(document.body, {json.dumps(payload)}, {{ ...window.pageHost(), ask: window.askEngine }})"
        )
        page.wait_for_function("document.querySelector('.kp-facts dd')?.textContent")
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
        assert shown["Keys with a weight"].endswith(f"of {ROWS}")
        rows = page.locator("[data-panel=weights] tbody tr").all_inner_texts()
        heaviest = np.argmax(fitted.attention_weights([now["query"]])[0])
        assert int(rows[0].split("\t")[0]) == heaviest
        assert f"{DRAWN} of {ROWS} rows" in page.locator("[data-panel=scatter]").inner_text()
        assert {"curve", "query"} <= set(asked)
