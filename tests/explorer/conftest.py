"""Fixtures of the explorer: a browser, and a page that has the functions which `page.js` exports."""

import pytest

from tests.support.browser import browser, opened  # noqa: F401  # fixtures
from tests.support.explorer_payloads import import_bundle


@pytest.fixture(scope="module")
def page(browser):  # noqa: F811  # a fixture
    with opened(browser, "<!doctype html><title>Test</title>") as found:
        import_bundle(found)
        yield found
