"""Fixtures of the explorer: a browser, pages of explorers, and a page with the functions that `page.js` exports."""

from contextlib import contextmanager

import pytest

from tests.support.browser import browser, opened  # noqa: F401  # fixtures
from tests.support.explorer_panels import wait_until_idle
from tests.support.explorer_payloads import import_bundle


@pytest.fixture(scope="module")
def page(browser):  # noqa: F811  # a fixture
    with opened(browser, "<!doctype html><title>Test</title>") as found:
        import_bundle(found)
        yield found


@pytest.fixture(scope="module")
def shown(browser, tmp_path_factory):  # noqa: F811  # a fixture
    """Open the file of an explorer, and wait until all of it is drawn."""

    @contextmanager
    def show(explorer, **context):
        path = explorer.to_html(tmp_path_factory.mktemp("page") / "page.html")
        context = {"viewport": {"width": 1200, "height": 1000}, "locale": "en-US"} | context
        with opened(browser, path.as_uri(), **context) as found:
            found.wait_for_selector("[data-panel=controls] select")
            wait_until_idle(found)
            yield found

    return show
