"""The page of a server and the element of a notebook, in a browser: an engine behind them, traits on both sides."""

import threading
import time

import numpy as np
import pytest

from kernpool import NadarayaWatsonRegressor, explore
from kernpool.explorer.explorer_model import payload_of, widget_module
from kernpool.explorer.server import ExplorerServer
from tests.support.browser import opened

pytestmark = pytest.mark.slow  # starts a browser

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, size=(20_000, 1))
Y = np.sin(X[:, 0]) + 0.5 * RNG.normal(size=20_000)


@pytest.fixture(scope="module")
def served():
    with ExplorerServer(explore(NadarayaWatsonRegressor(bandwidth=0.1).fit(X, Y)).subject) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def until(page, expression, argument=None):
    page.wait_for_function(expression, arg=argument, timeout=60_000)


# Of the engine: of the page itself there are up to 240 places, in the frame of a change.
CURVE = "document.querySelector('[data-panel=scatter]')?.numbers"


@pytest.fixture
def page(served, browser):
    with opened(browser, served.url, offline=False, viewport={"width": 1200, "height": 900}) as page:
        yield page


@pytest.fixture
def empty_page(browser):
    with opened(browser, "<!doctype html><html lang=en><title>notebook</title>") as page:
        yield page


@pytest.mark.filterwarnings("ignore::kernpool.ExtrapolationWarning")  # the page draws margins beyond the rows
def test_more_rows_than_a_page_sums_are_summed_by_the_engine(served, page):
    until(page, f"() => {CURVE}?.places.length > 240")
    places, values = page.evaluate(f"() => [Array.from({CURVE}.places), Array.from({CURVE}.values)]")
    model = served.subject.model
    np.testing.assert_allclose(values, model.predict(np.array(places)[:, None]), rtol=1e-13, atol=1e-14)
    until(page, "() => document.querySelector('[data-panel=weights]').innerText.includes('of 20000')")
    page.evaluate("() => { window.was = document.querySelector('[data-panel=scatter]').numbers }")
    slider = page.locator("[data-panel=controls] input[type=range]").first
    slider.focus()
    for _ in range(30):
        slider.press("ArrowRight")
    until(page, f"() => {CURVE} !== window.was && {CURVE}.places.length > 240")
    deadline = time.monotonic() + 30
    bandwidth = None
    while time.monotonic() < deadline:  # of answers that overtake each other the newest stays
        text = page.locator("[data-panel=controls]").inner_text()
        bandwidth = float(text.split("Bandwidth h")[1].split()[0])
        places, values = page.evaluate(f"() => [Array.from({CURVE}.places), Array.from({CURVE}.values)]")
        wide = NadarayaWatsonRegressor(bandwidth=bandwidth).fit(X, Y).predict(np.array(places)[:, None])
        if np.allclose(values, wide, atol=1e-3):  # the slider's label has three digits
            break
        time.sleep(0.2)
    np.testing.assert_allclose(values, wide, atol=1e-3)
    assert bandwidth > 0.1


SHIM = """
async ({source, traits}) => {
  const listeners = {};
  const values = {...traits};
  window.model = {
    get: (name) => values[name],
    set: (name, value) => { values[name] = value; },
    save_changes: () => { window.saved = structuredClone(values); },
    on: (name, fn) => { (listeners[name] ??= []).push(fn); },
    off: (name, fn) => { listeners[name] = (listeners[name] || []).filter((one) => one !== fn); },
    send: () => {},
    lead: (name, value) => { values[name] = value; for (const fn of listeners["change:" + name] || []) fn(); },
  };
  const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
  const {default: widget} = await import(url);
  window.end = await widget.render({model: window.model, el: document.body.appendChild(document.createElement("div"))});
  window.left = () => Object.values(listeners).flat().length;
}
"""


def test_traits_and_page_lead_each_other(empty_page):
    """What a notebook does with the module; `test_widget.py` has the other side, in a kernel."""
    payload = payload_of(explore("make_sine_power").subject)
    names = ("kernel", "bandwidth", "composition", "degree", "smoothing")
    traits = {name: payload["settings"][name] for name in names}
    traits |= {"payload": payload, "column": 0, "query": [2.5], "levels": []}
    page = empty_page
    page.evaluate(SHIM, {"source": widget_module(), "traits": traits})
    until(page, f"() => {CURVE}")
    page.evaluate("() => window.model.lead('bandwidth', [1.5])")
    until(page, "() => document.querySelector('[data-panel=controls]').innerText.includes('1.50')")
    page.evaluate("() => window.model.lead('kernel', 'tricube')")
    until(page, "() => document.querySelector('select').value === 'tricube'")
    slider = page.locator("[data-panel=controls] input[type=range]").first
    slider.focus()
    slider.press("ArrowLeft")
    until(page, "() => window.saved && window.saved.bandwidth[0] < 1.5 && window.saved.kernel === 'tricube'")
    page.evaluate("() => window.end()")
    assert page.evaluate("() => window.left()") == 0
