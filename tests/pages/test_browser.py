"""Every page of the built book, opened in Chromium with the network off."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from contrast import contrast, luminance

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
PAGES = sorted(p.relative_to(HTML).as_posix() for part in ("book", "chapters") for p in (HTML / part).rglob("*.html"))


@pytest.fixture(scope="module", autouse=True)
def built(missing):
    if not PAGES:
        missing("the book is not built: run `make book`")


class Visit:
    """An offline tab that remembers what the page asked for and complained about."""

    def __init__(self, browser, **device):
        self.context = browser.new_context(**device)
        self.context.set_offline(True)
        self.context.set_default_timeout(180_000)  # a busy machine is no mistake of the page
        self.page = self.context.new_page()
        self.requests, self.complaints = [], []
        self.page.on(
            "request", lambda r: self.requests.append(r.url) if not r.url.startswith(("file:", "data:")) else None
        )
        self.page.on("requestfailed", lambda r: self.complaints.append(f"failed: {r.url}"))
        self.page.on("pageerror", lambda e: self.complaints.append(str(e)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def open(self, name):
        self.page.goto((HTML / name).as_uri())
        if self.page.locator(".math").count():
            self.page.wait_for_function("window.MathJax && MathJax.startup && MathJax.startup.promise")
            self.page.evaluate("MathJax.startup.promise.then(() => true)")
        self.page.wait_for_function("document.documentElement.dataset.wide")
        return self.page

    def becomes(self, size, scheme):
        """Another window, another time of day; what watches the width answers a frame later."""
        self.page.set_viewport_size(size)
        self.page.emulate_media(color_scheme=scheme)
        self.page.evaluate(
            "new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(go, 50))))"
        )

    def hidden(self):
        """What can be seen and is wider than its place: its words, and at which side it says so."""
        return self.page.evaluate(
            """Array.from(document.querySelectorAll(".bd-article *"))
            .filter(one => one.checkVisibility() && one.scrollWidth > one.clientWidth + 1)
            .filter(one => /auto|scroll/.test(getComputedStyle(one).overflowX))
            .map(one => [one.tagName + ": " + one.textContent.trim().slice(0, 60), one.dataset.more || ""])"""
        )

    def loose(self):
        """Full stops and commas that begin a line, away from the formula that they follow."""
        return self.page.evaluate(
            """Array.from(document.querySelectorAll(".bd-article span.math")).filter(formula => {
                const next = formula.nextSibling, sign = document.createRange()
                if (!next || next.nodeType !== Node.TEXT_NODE || !/^[.,;:]/.test(next.data)) return false
                sign.setStart(next, 0)
                sign.setEnd(next, 1)
                const box = sign.getBoundingClientRect()
                return box.width > 0 && box.left < formula.getBoundingClientRect().left
            }).map(formula => formula.parentElement.textContent.slice(0, 60))"""
        )


AXE = Path(__file__).with_name("axe") / "axe.min.js"  # axe-core 4.14.0, under the licence beside it


def barriers(page, where="document", **options):
    """What axe-core calls a serious or critical hindrance.

    Its time goes into thousands of small parts: formulas are a letter to it, and code that it leaves out is a text.
    """
    if not page.evaluate("window.axe"):
        page.add_script_tag(path=AXE)
        page.evaluate("document.querySelectorAll('mjx-container').forEach(formula => formula.replaceWith('x'))")
        if where == ARTICLE:
            page.evaluate(f"document.querySelectorAll({CODE!r}).forEach(code => code.textContent = code.textContent)")
    return page.evaluate(
        f"options => axe.run({where}, {{ resultTypes: ['violations'], ...options }}).then(found => found.violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => [one.id, one.nodes.map(node => node.target.join(' ')).slice(0, 3)]))",
        options,
    )


def test_there_are_pages(browser):
    assert "book/index.html" in PAGES
    assert any(page.startswith("chapters/") for page in PAGES)


CHAPTERS = [name for name in PAGES if name.startswith("chapters/")]
# What is around an article and the colours of code are the same on every page: two are enough for them.
CODE = ".highlight pre"
ARTICLE = f"{{ include: [['.bd-article']], exclude: [[{CODE!r}]] }}"
WHOLE = ["book/index.html", *(name for name in CHAPTERS if "/07_" in name)]
LIGHT = next((name for name in CHAPTERS if "/15_" in name), None)  # few formulas, and one of everything else
DESKTOP, PHONE = {"width": 1400, "height": 800}, {"width": 390, "height": 800}
GROUND = np.full(3, 0x12 / 255)  # of a dark page


@pytest.mark.parametrize("name", PAGES or ["none"])
def test_a_page_on_a_desktop_and_on_a_phone_by_day_and_by_night(browser, name):
    """One visit: what a page costs is its formulas."""
    with Visit(browser, viewport=DESKTOP, has_touch=True, reduced_motion="reduce") as visit:
        page = visit.open(name)
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        needs_nothing_and_shows_all(visit)
        if name in ("book/index.html", *CHAPTERS):
            every_slider_changes_its_picture(page)
        visit.becomes(PHONE, "dark")
        fits_a_phone(visit)
        if name in CHAPTERS:
            figures_have_its_ground_and_light_words(page)
        assert (visit.requests, visit.complaints) == ([], [])
        where = "document" if name in WHOLE else ARTICLE
        assert barriers(page, where, runOnly=["color-contrast"]) == []
        visit.becomes(DESKTOP, "light")
        assert barriers(page, where) == []


def needs_nothing_and_shows_all(visit):
    page = visit.page
    assert (visit.requests, visit.complaints) == ([], [])
    assert visit.hidden() == []  # on a desktop nothing scrolls sideways
    assert page.locator("mjx-container").count() == page.locator(".math").count()
    assert page.locator("mjx-merror, .MathJax_Error").count() == 0
    assert page.locator("img:not([alt]), img[alt='']").count() == 0
    broken = page.eval_on_selector_all("img", "all => all.filter(i => !i.complete || !i.naturalWidth).map(i => i.src)")
    assert broken == []


def fits_a_phone(visit):
    page = visit.page
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert [words for words, side in visit.hidden() if side != "right"] == []  # what is cut off fades
    assert visit.loose() == []
    for picture in page.locator("figure.explore img").all():
        box = picture.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390


def figures_have_its_ground_and_light_words(page):
    for kind in (".cell_output img:not(.explore img)", "figure.explore img"):
        if not page.locator(kind).count():
            continue
        image = Image.open(io.BytesIO(page.locator(kind).first.screenshot())).convert("RGB")
        _, most = max(image.getcolors(1 << 24))
        assert np.array(most) / 255 == pytest.approx(GROUND, abs=0.025)
        pixels = np.asarray(image).reshape(-1, 3) / 255
        words = pixels[luminance(pixels).argsort()[-len(pixels) // 500]]  # strokes of letters and axes
        assert contrast(words, GROUND) >= 4.5
    page.emulate_media(media="print")
    printed = page.locator(".cell_output img").evaluate_all("all => all.map(one => getComputedStyle(one).filter)")
    assert not [how for how in printed if "invert" in how]
    page.emulate_media(media="screen")


def awake(figure):
    """Frames come when their slider is near."""
    figure.scroll_into_view_if_needed()
    figure.locator("xpath=self::*[@data-source='frames']").wait_for()


# Notes what is seen at each place that a slider comes to: number of the picture, description, readout, title.
WATCH = """(slider, j) => {
    const [picture, title] = ["img", "figcaption"].map(name => slider.closest("figure").querySelector(name))
    const label = slider.closest("figure").querySelectorAll("output")[j], sources = []
    window.seen = []
    window.number = () => (sources.includes(picture.src) || sources.push(picture.src), sources.indexOf(picture.src))
    slider.addEventListener("input", () => seen.push([number(), picture.alt, label.textContent, title.innerText]))
}"""


def every_slider_changes_its_picture(page):
    figures = page.locator("figure.explore")
    assert figures.count() >= 1
    for i in range(figures.count()):
        awake(figures.nth(i))
        sliders, titles = figures.nth(i).locator("input"), set()
        for j in range(sliders.count()):
            slider, last = sliders.nth(j), int(sliders.nth(j).get_attribute("max"))
            slider.scroll_into_view_if_needed()
            slider.press("End")
            slider.evaluate(WATCH, j)
            page.keyboard.press("Home")
            for _ in range(last):  # the keyboard reaches every place
                page.keyboard.down("ArrowRight")
            page.keyboard.up("ArrowRight")
            seen = page.evaluate("seen")
            assert len(seen) == last + 1
            pictures, *words, its_titles = map(set, zip(*seen, strict=True))
            titles |= its_titles
            assert len(pictures) >= 0.8 * (last + 1)
            assert [len(each) for each in words] == [last + 1] * 2
            assert slider.get_attribute("aria-valuetext") == seen[-1][2]
            box = slider.bounding_box()
            middle = box["y"] + box["height"] / 2
            page.mouse.click(box["x"] + 3, middle)
            assert page.evaluate("number()") == seen[0][0]
            page.touchscreen.tap(box["x"] + box["width"] - 3, middle)
            assert page.evaluate("number()") == seen[-1][0]
        assert len(titles) > 1  # what there is to see may be the same at two places, not at all


def test_tables_keep_what_matters_in_view_on_a_phone(browser):
    with Visit(browser, viewport={"width": 390, "height": 800}) as visit:
        page = visit.open("book/notation.html")
        cells = page.locator("table td:has(p:not(:empty))")
        edges = cells.evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
        assert len(edges) > 60  # every cell that says something
        assert max(edges) <= 390
        assert cells.nth(1).evaluate("one => getComputedStyle(one, '::before').content") == '"in words"'
        page = visit.open("chapters/10_hyper_cleaning.html")
        block = page.locator(".text_html:has(table.dataframe)").first
        loss = block.locator("th", has_text="train_loss").bounding_box()
        assert loss["x"] + loss["width"] <= 390
        block.evaluate("one => one.scrollTo(1000, 0)")
        page.wait_for_function("document.querySelector('.text_html:has(table.dataframe)').dataset.more === 'left'")
        first = block.locator("tbody th").first.bounding_box()
        assert 0 <= first["x"] < 30  # the name of the row stays


def test_the_play_button_walks_to_the_end_and_stops(browser):
    with Visit(browser) as visit:
        page = visit.open(LIGHT)
        figure = page.locator("figure.explore").first
        awake(figure)
        slider, button = figure.locator("input"), figure.locator("button")
        assert button.get_attribute("aria-label") == f"Play {figure.locator('label span').inner_text()}"
        slider.focus()
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        button.click()
        assert button.inner_text() == "⏸"
        page.wait_for_function("document.querySelector('figure.explore button').textContent === '▶'")
        assert slider.input_value() == slider.get_attribute("max")
        button.click()  # from the end it starts again
        page.wait_for_function("document.querySelector('figure.explore input').value === '1'")


def test_the_doors_of_the_front_page_open(browser):
    with Visit(browser) as visit:
        page = visit.open("book/index.html")
        doors = page.locator(".sd-card")
        assert doors.count() == 4  # to study, to teach, to do research, to solve a problem
        for i in range(4):
            visit.open("book/index.html")
            doors.nth(i).click()
            assert page.locator("h1").first.inner_text()
            assert page.url.split("#")[0] != (HTML / "book/index.html").as_uri()
        assert visit.requests == []


def test_solutions_open_on_click(browser):
    with Visit(browser) as visit:
        page = visit.open(LIGHT)
        solution = page.locator(".solution.dropdown").first
        inside = solution.locator("p").last
        assert not inside.is_visible()
        solution.locator("button, summary").first.click()
        inside.wait_for(state="visible")
        assert inside.is_visible()


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


def test_a_term_says_what_it_means_and_leads_to_the_glossary(browser):
    with Visit(browser) as visit:
        page = visit.open(CHAPTERS[0])
        term = page.locator("a.glossary-term", has_text="hypergradient")
        assert term.count() == 1
        assert "It has a direct term and a term through the answer" in hovered(page, term).inner_text()
        page.mouse.move(0, 0)
        page.wait_for_selector(".tippy-content", state="detached")
        term.focus()  # a keyboard sees it, too
        page.wait_for_selector(".tippy-content")
        page.keyboard.press("Enter")
        page.wait_for_url("**/glossary.html#term-hypergradient")
        assert (visit.requests, visit.complaints) == ([], [])


def test_equations_theorems_and_citations_are_shown_on_hovering(browser):
    with Visit(browser) as visit:
        page = visit.open(next(name for name in CHAPTERS if "/04_" in name))
        theorem = page.locator(".proof").first.get_attribute("id")
        for link, inside in {
            "a.reference[href^='#equation-']": "div.math mjx-container",
            f"a.reference[href='#{theorem}']": f"#{theorem} mjx-container",
            "a.reference[href*='bibliography.html#']": ".citation",
        }.items():
            shown = hovered(page, page.locator(f"article {link}").first)
            assert shown.locator(inside).count() >= 1, link
        assert (visit.requests, visit.complaints) == ([], [])


QUIZZES = sorted((ROOT / "book" / "bilevel_book" / "quizzes").glob("*.toml"))


@pytest.mark.skipif(not QUIZZES, reason="no chapter has a quiz")
def test_a_quiz_is_answered_with_the_keyboard_and_says_why(browser):
    with Visit(browser, color_scheme="dark") as visit:
        page = visit.open(next(name for name in CHAPTERS if f"/{QUIZZES[0].stem}_" in name))
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


def test_a_fold_is_called_by_what_is_written_on_it_and_opens_with_a_key(browser):
    with Visit(browser) as visit:
        page = visit.open(LIGHT)
        fold = page.locator("details.hide").first
        words = fold.locator("summary p").first.inner_text()
        assert "Toggle hidden" not in fold.locator("summary").aria_snapshot()
        assert words in fold.locator("summary").aria_snapshot()
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        assert fold.locator("pre").first.is_visible()


def test_who_asked_for_less_motion_sees_none(browser):
    with Visit(browser, reduced_motion="reduce") as visit:
        page = visit.open(LIGHT)
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        assert page.evaluate("getComputedStyle(document.querySelector('a.reference')).transitionDuration") in (
            "0s",
            "none",
        )


def test_a_lost_reader_finds_the_way_back(browser):
    with Visit(browser, color_scheme="dark") as visit:
        page = visit.page
        page.goto((HTML / "404.html").as_uri())
        assert page.locator("a").first.get_attribute("href").endswith("/bilevel-book/book/index.html")
        assert (barriers(page), visit.requests, visit.complaints) == ([], [], [])


def test_the_ledger_is_filtered_by_verdict_section_and_chapter(browser):
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
