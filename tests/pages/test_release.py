"""A release as files: one version everywhere, licences, and versions of the book side by side."""

import json
import re
import shutil
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import bilevel_core
from bilevel_book import address
from bilevel_book.doctor import pinned
from pages.visit import HTML, PHONE, Visit, barriers
from workshop import site
from workshop.licences import SHIPPED, licence

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_citation_zenodo_and_changelog_agree_with_the_version():
    cited, kept = yaml.safe_load(text("CITATION.cff")), json.loads(text(".zenodo.json"))
    assert [kept[name] for name in ("title", "version", "license")] == [
        cited[name] for name in ("title", "version", "license")
    ]
    assert kept["version"] == bilevel_core.__version__
    assert f"## [{cited['version']}] - {cited['date-released']}\n" in text("CHANGELOG.md")


def test_everything_shipped_or_pinned_has_its_licence_in_the_table():
    rows = dict(re.findall(r"^\| (\S+) \| (\S+ \| .+) \|$", text("LICENCES.md").split("## Installed")[1], re.M))
    assert rows.keys() - {"package", "---"} == pinned().keys()
    for name, asked in pinned().items():
        listed = rows[name].split(" | ")
        assert listed[0] == asked
        if version(name).partition("+")[0] == asked:
            assert listed[1] == licence(name)
    for place, about in SHIPPED.items():
        assert (ROOT / place).exists()
        assert f"| [{place}]({place}) | {about[0]} | {about[1]} |" in text("LICENCES.md")
    found = (path for part in ("book", "tests", "data") for path in (ROOT / part).rglob("LICEN*"))
    assert {path.parent.relative_to(ROOT).as_posix() for path in found} <= SHIPPED.keys()


BASE = "https://owner.github.io/book/"


@pytest.fixture(params=["", BASE], ids=["no address", "address"])
def base(request, monkeypatch) -> str:
    monkeypatch.setattr(address, "pages", lambda: request.param)
    return request.param


def test_versions_link_one_another_and_the_top_leads_to_the_newest(base, tmp_path, monkeypatch):
    html, folder = tmp_path / "html", tmp_path / "site"
    monkeypatch.setattr(site, "HTML", html)
    for place in ("book", "_static"):
        (html / place).mkdir(parents=True)
    for name, page in {"1.0": "old", "dev": "new", "1.10": "new"}.items():
        for file in ("book/index.html", "404.html", "sitemap.xml", "llms.txt"):
            (html / file).write_text(f'<a href="{base}book/index.html">')
        (html / "book" / f"{page}.html").write_text(name)
        site.site(name, str(folder))
        (html / "book" / f"{page}.html").unlink()
    for name in ("1.0", "1.10", "dev"):
        listed = json.loads((folder / name / "_static" / "versions.js").read_text().split(" = ")[1].rstrip(";\n"))
        assert listed["here"] == name
        assert [one["name"] for one in listed["all"]] == ["1.10", "1.0", "dev"]
        assert ["book/old.html" in one["pages"] for one in listed["all"]] == [False, True, False]
        links = f"{base}{name}/" if base else ""
        assert f'href="{links}book/index.html"' in (folder / name / "book" / "index.html").read_text()
    assert "url=1.10/book/index.html" in (folder / "index.html").read_text()


def test_invalid_version_or_missing_book_is_refused(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"called dev or as 1\.0 is, not '1\.0\.0'"):
        site.site("1.0.0", str(tmp_path))
    monkeypatch.setattr(site, "HTML", tmp_path)
    with pytest.raises(SystemExit, match="say make book"):
        site.site("dev", str(tmp_path))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.browser
def test_reader_changes_the_version_and_stays_on_the_page(window, tmp_path, monkeypatch):
    """1.0 has no page for lecturers, dev has one; of each two pages of the built book."""
    html, folder = tmp_path / "html", tmp_path / "site"
    shutil.copytree(HTML / "_static", html / "_static", ignore=shutil.ignore_patterns("frames"))
    (html / "book").mkdir()
    monkeypatch.setattr(site, "HTML", html)
    for name, page in {"1.0": "index", "dev": "teaching"}.items():
        shutil.copy(HTML / "book" / f"{page}.html", html / "book")
        site.site(name, str(folder))
    with Visit(window, viewport=PHONE, color_scheme="dark", reduced_motion="reduce") as visit:
        page = visit.page
        page.goto((folder / "dev" / "book" / "teaching.html").as_uri())
        for words, place in {"in development": "dev/book/teaching.html", "1.0": "1.0/book/index.html"}.items():
            page.locator("button.primary-toggle").first.click()
            page.locator(".versions summary").press("Enter")
            assert page.locator(".versions a").all_inner_texts() == ["1.0", "in development"]
            assert barriers(page, "'.versions'") == []
            page.locator(".versions a").get_by_text(words, exact=True).click()
            page.wait_for_url((folder / place).as_uri())
        assert visit.requests == []
