"""Chromium for the tests that look at pages."""

import os

import pytest

from bilevel_book import doctor
from pages.visit import PAGES

CHROMIUM = doctor.browser()


@pytest.fixture(scope="session")
def missing():
    """Skip with a reason at home; fail in CI, where nothing may be missing."""
    return pytest.fail if os.environ.get("CI") else pytest.skip


@pytest.fixture(scope="module")
def browser(missing):
    if CHROMIUM is None:
        missing("no Chromium on this machine: install Debian's package chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def window(browser, missing):
    """Offline, with touch, and open as long as the tests of a file: a new window costs as much as a small page."""
    if not PAGES:
        missing("the book is not built: run `make book`")
    context = browser.new_context(has_touch=True)
    context.set_offline(True)
    context.set_default_timeout(180_000)  # a busy machine is no mistake of the page
    context.new_page()  # a window without a tab closes
    yield context
    context.close()
