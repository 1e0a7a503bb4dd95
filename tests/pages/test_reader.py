"""What a reader does on a page of the built book: plays, opens, hovers, answers, filters."""

import pytest

from pages.visit import CHAPTERS, LIGHT, Visit

pytestmark = pytest.mark.browser


def test_play_button_shows_all_places_and_comes_back(window):
    with Visit(window) as visit:
        page = visit.open(LIGHT)
        figure = page.locator("figure.live").first
        figure.scroll_into_view_if_needed()
        before, label = figure.locator("figcaption").inner_text(), figure.locator(".live-dial span").inner_text()
        button = figure.get_by_role("button").first
        assert button.inner_text() == f"▶ {label.partition(',')[0]}"
        button.click()
        page.wait_for_function(
            "before => document.querySelector('figure.live figcaption').innerText !== before", arg=before
        )
        assert button.inner_text().startswith("⏹")
        page.wait_for_function("document.querySelector('figure.live button').textContent.startsWith('▶')")
        assert figure.locator("figcaption").inner_text() == before  # where it stood


def test_solutions_and_folds_open(window):
    with Visit(window) as visit:
        page = visit.open(LIGHT)
        solution = page.locator(".solution.dropdown").first
        inside = solution.locator("p").last
        assert not inside.is_visible()
        solution.locator("button, summary").first.click()
        inside.wait_for(state="visible")

        fold = page.locator("details.hide").first
        words = fold.locator("summary p").first.inner_text()
        assert words in fold.locator("summary").aria_snapshot()
        assert not fold.locator("pre").first.is_visible()
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert fold.locator("pre").first.is_visible()


def hovered(page, link):
    """What appears over a link, mathematics rendered."""
    page.mouse.move(0, 0)
    page.wait_for_selector(".tippy-content", state="detached")
    link.hover()
    page.wait_for_selector(".tippy-content")
    page.wait_for_function(
        "(t => t.querySelectorAll('.math').length === t.querySelectorAll('mjx-container').length)"
        "(document.querySelector('.tippy-content'))"
    )
    return page.locator(".tippy-content")


def test_term_shows_its_meaning_and_leads_to_the_glossary(window):
    with Visit(window) as visit:
        page = visit.open(CHAPTERS[0])
        term = page.locator("a.glossary-term", has_text="hypergradient")
        assert term.count() == 1
        assert "It has a direct term and a term through the lower level" in hovered(page, term).inner_text()
        page.mouse.move(0, 0)
        page.wait_for_selector(".tippy-content", state="detached")
        term.focus()  # a keyboard sees it, too
        page.wait_for_selector(".tippy-content")
        page.keyboard.press("Enter")
        page.wait_for_url("**/glossary.html#term-hypergradient")
        assert (visit.requests, visit.complaints) == ([], [])


def test_quiz_answered_by_keyboard_says_why(window):
    with Visit(window, color_scheme="dark") as visit:
        page = visit.open(CHAPTERS[0])
        form = page.locator(".quiz form").first
        told = form.get_by_role("status")
        assert told.inner_text() == ""
        for value, verdict in {"wrong": "✗ Not quite.", "right": "✓ Right."}.items():
            answer = form.locator(f"input[value={value}]").first
            why = answer.locator("xpath=../following-sibling::p[1]").text_content()
            answer.press("Space")
            assert told.inner_text() == ""  # choosing tells nothing: arrow keys pass over every answer
            answer.press("Enter")
            assert told.text_content() == f"{verdict} {why}"
        assert page.url.endswith(".html")  # nothing was sent anywhere
        assert visit.complaints == []


def test_ledger_filters_by_verdict_and_section(window):
    with Visit(window) as visit:
        page = visit.open("book/claims.html")
        every = page.locator(".ledger-card").count()
        shown = page.locator(".ledger-card:visible")
        assert (shown.count(), page.locator(".ledger-filter output").inner_text()) == (every, f"{every} cards")

        page.select_option("select[name=verdict]", label="contradicted")
        assert 0 < shown.count() == page.locator(".ledger-card.is-contradicted").count() < every
        page.select_option("select[name=verdict]", label="all")

        # A link of the list leads to its claim, also where the filter had hidden it.
        claim = page.locator("p#claim-experiments-figure-2-amigo-is-like-stocbio")
        page.select_option("select[name=section]", label="Abstract")
        assert not claim.is_visible()
        page.locator(".ledger-list a[href='#claim-experiments-figure-2-amigo-is-like-stocbio']").click()
        claim.wait_for(state="visible")
        assert shown.count() == every
        assert visit.complaints == []
