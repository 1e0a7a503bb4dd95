"""The way from one version of the book to another, in Chromium and from disk."""

import shutil

import pytest

from bilevel_core import __version__
from pages.visit import DESKTOP, HTML, PHONE, Visit, barriers
from workshop import site

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def versions(tmp_path_factory, missing):
    """1.0, which has no page for lecturers, and dev, which has one; of each two pages of the built book."""
    if not (HTML / "book" / "index.html").is_file():
        missing("the book is not built: run `make book`")
    folder, patch = tmp_path_factory.mktemp("versions"), pytest.MonkeyPatch()
    shutil.copytree(HTML / "_static", folder / "html" / "_static", ignore=shutil.ignore_patterns("frames"))
    (folder / "html" / "book").mkdir()
    for name in ("404.html", "sitemap.xml", "llms.txt", "book/index.html"):
        shutil.copy(HTML / name, folder / "html" / name)
    with patch.context() as here:
        here.setattr(site, "HTML", folder / "html")
        site.site("1.0", str(folder / "site"))
        shutil.copy(HTML / "book" / "teaching.html", folder / "html" / "book")
        site.site("dev", str(folder / "site"))
    return folder / "site"


def test_a_reader_changes_the_version_and_stays_on_the_page_if_it_is_there(window, versions):
    with Visit(window, reduced_motion="reduce") as visit:
        page = visit.page
        page.goto((versions / "dev" / "book" / "teaching.html").as_uri())
        assert page.locator(".versions").inner_text() == "Version in development"  # the others are folded
        for words, place in {"1.0": "1.0/book/index.html", "in development": "dev/book/index.html"}.items():
            page.locator(".versions summary").press("Enter")
            links = page.locator(".versions a")
            assert links.all_inner_texts() == ["1.0", "in development"]
            assert page.locator(".versions [aria-current]").count() == 1
            links.get_by_text(words, exact=True).click()
            page.wait_for_url((versions / place).as_uri())
        page.locator(".versions summary").click()
        assert visit.requests == []
        visit.becomes(PHONE, "dark")
        page.locator("button.primary-toggle").first.click()
        box = page.locator(".versions").bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
        assert barriers(page, "'.versions'") == []
        visit.becomes(DESKTOP, "light")
        assert barriers(page, "'.versions'") == []


def test_a_book_that_lies_alone_says_its_version_and_offers_no_other(versions):
    assert f'<div class="versions" data-release="{__version__}">Version {__version__}</div>' in (
        HTML / "book" / "teaching.html"
    ).read_text(encoding="utf-8")
    assert "all: []" in (HTML / "_static" / "versions.js").read_text(encoding="utf-8")
