"""Chromium for the tests that look at pages."""

import os

import pytest

from bilevel_book import doctor

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
