"""The filter of the claims ledger, as a reader uses it."""

import pytest
from test_browser import HTML, Visit

pytestmark = pytest.mark.browser


def test_the_ledger_is_filtered_by_verdict_section_and_chapter(browser, missing):
    if not (HTML / "book/claims.html").exists():
        missing("the book is not built: run `make book`")
    with Visit(browser) as visit:
        page = visit.open("book/claims.html")
        every = page.locator(".ledger-card").count()
        shown = page.locator(".ledger-card:visible")
        assert (shown.count(), page.locator(".ledger-filter output").inner_text()) == (every, f"{every} cards")

        page.select_option("select[name=verdict]", label="does not hold")
        assert 0 < shown.count() == page.locator(".ledger-card.is-does-not-hold").count() < every
        assert page.locator(".ledger-card:visible .verdict-does-not-hold").count() >= shown.count()

        page.select_option("select[name=verdict]", label="all")
        page.select_option("select[name=section]", label="Table 1")
        assert page.locator("h2:visible", has_text="Table 1").count() == 1
        assert page.locator("h2:visible", has_text="Abstract").count() == 0

        # A link of the list leads to its card, also where the filter had hidden it.
        link = page.locator(".ledger-list li a").first
        target = link.get_attribute("href")
        page.select_option("select[name=section]", label="Abstract")
        page.select_option("select[name=chapter]", index=1)
        link.click()
        page.wait_for_function("(id) => !document.getElementById(id).closest('[hidden]')", arg=target[1:])
        assert visit.complaints == []
