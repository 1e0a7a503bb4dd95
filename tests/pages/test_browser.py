"""Every page of the built book, opened in Chromium with the network off."""

import pytest

from pages.visit import ARTICLE, CHAPTERS, DESKTOP, LIGHT, PAGES, PHONE, Visit, barriers

pytestmark = pytest.mark.browser


# What is around an article, the colours of code, and paper are the same for every page: two are enough for them.
WHOLE = ["book/index.html", LIGHT]


@pytest.mark.parametrize("name", PAGES or ["none"])
def test_a_page_on_a_desktop_and_on_a_phone_by_day_and_by_night(window, name):
    """One visit: what a page costs is its formulas, so what does not need them comes when they are gone."""
    with Visit(window, color_scheme="light", reduced_motion="reduce") as visit:
        page = visit.open(name)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        needs_nothing_and_shows_all(visit)
        keeps_still(page)
        visit.becomes(PHONE, "dark")
        fits_a_phone(visit)
        visit.without_formulas()
        if name in ("book/index.html", *CHAPTERS):
            every_widget_plays(page)
        assert (visit.requests, visit.complaints) == ([], [])
        assert barriers(page, "document" if name in WHOLE else ARTICLE) == []
        if name in WHOLE:
            figures_are_printed_as_they_are(page)
            page.mouse.move(0, 0)
            visit.becomes(DESKTOP, "light")
            assert barriers(page) == []


def needs_nothing_and_shows_all(visit):
    page = visit.page
    assert (visit.requests, visit.complaints) == ([], [])
    assert visit.hidden() == []  # on a desktop nothing scrolls sideways
    assert page.locator("mjx-container").count() == page.locator(".math").count()
    assert page.locator("mjx-merror, .MathJax_Error").count() == 0
    assert page.locator("img:not([alt]), img[alt='']").count() == 0
    broken = page.eval_on_selector_all("img", "all => all.filter(i => !i.complete || !i.naturalWidth).map(i => i.src)")
    assert broken == []


def keeps_still(page):
    """Who asked for less motion sees none."""
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    times = page.locator("a.reference").evaluate_all("all => all.map(one => getComputedStyle(one).transitionDuration)")
    assert {*times} <= {"0s", "none"}


def fits_a_phone(visit):
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert [words for words, side in visit.hidden() if side != "right"] == []  # what is cut off fades


def figures_are_printed_as_they_are(page):
    page.emulate_media(media="print")
    printed = page.locator(".cell_output img").evaluate_all("all => all.map(one => getComputedStyle(one).filter)")
    assert printed or page.locator("[data-widget]").count()
    assert not [how for how in printed if "invert" in how]
    page.emulate_media(media="screen")


def every_widget_plays(page):
    """What their dials do is tried in test_widgets.py."""
    places, figures = page.locator("[data-widget]"), page.locator("[data-widget] figure.live")
    assert figures.count() == places.count()
    assert page.locator("[data-widget] > img").count() == 0
    for figure in figures.all():
        assert len(figure.locator("figcaption").inner_text()) > 10
        box = figure.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
