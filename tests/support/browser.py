"""Pages in a real browser: Chromium without a network, and no error may go unnoticed."""

import json
import os
import shutil
from contextlib import contextmanager

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
STARTED = []  # playwright and its browser
RULES = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}}


@pytest.fixture(scope="module")
def browser():
    """Chromium; tests are skipped where it or playwright is not installed, and fail where the environment asks for it.

    While playwright is on, a loop of asyncio runs, and other tests want to start theirs: it ends with each file.
    """
    is_needed = os.environ.get("KERNPOOL_NEEDS") == "browser"
    if is_needed:
        import axe_playwright_python  # noqa: F401  # asked whether it is there
    api = pytest.importorskip("playwright.sync_api", reason="tests in a browser need playwright")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        (pytest.fail if is_needed else pytest.skip)(
            f"tests in a browser need Chromium: none of {', '.join(NAMES)} is on the path"
        )
    # Modules that import this fixture have one each, and playwright can be started once in a process.
    if not STARTED:
        STARTED.append(api.sync_playwright().start())
        STARTED.append(STARTED[0].chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"]))
    yield STARTED[1]
    while STARTED:
        last = STARTED.pop()
        last.stop() if not STARTED else last.close()


@contextmanager
def opened(browser, source, *, offline=True, **context):
    """Open a page, and fail on anything it asks for, on errors, and on what it writes to the console as one.

    `source` is HTML, or an address: of a file, or of a server with ``offline=False``, whose pages may ask it alone.
    """
    found = browser.new_context(offline=offline, **context)
    page, problems = found.new_page(), []
    is_address = source.startswith(("file:", "http:"))
    origin = "/".join(source.split("/")[:3]) if source.startswith("http:") else None

    def look(request):
        is_allowed = request.url == source.partition("#")[0] or request.url.startswith(("data:", "blob:"))
        if not is_allowed and not (origin and request.url.startswith(f"{origin}/")):
            problems.append(f"a request to {request.url}")

    page.on("request", look)
    page.on("pageerror", lambda error: problems.append(f"an error: {error}"))
    page.on("console", lambda message: problems.append(message.text) if message.type in ("error", "warning") else None)
    try:
        page.goto(source) if is_address else page.set_content(source)
        yield page
        assert not problems, f"the page had {problems}"
    finally:
        found.close()


def ask(page, function, *arguments):
    """Call a function of the page, by way of JSON: number by number playwright takes ten times as long."""
    text = json.dumps(arguments)
    return json.loads(page.evaluate(f"(text) => JSON.stringify(({function})(...JSON.parse(text)))", text))


def violations(page):
    """What axe-core finds on a page that WCAG asks for at level A or AA: rules, with the elements that break them."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is of the extra 'browser'")
    found = axe.Axe().run(page, options=RULES).response["violations"]
    return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found]
