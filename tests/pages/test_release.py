"""A release as files: one version everywhere, citation, licences, workflows, and versions of the book side by side."""

import json
import re
import tomllib
from datetime import date
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

import bilevel_core
from bilevel_book.doctor import pinned
from workshop import release, site
from workshop.licences import SHIPPED, licence

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_citation_has_what_the_format_asks_for_and_zenodo_says_the_same():
    cited, kept = yaml.safe_load(text("CITATION.cff")), json.loads(text(".zenodo.json"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()  # required by version 1.2.0 of the format
    assert cited["cff-version"] == "1.2.0"
    assert cited["type"] in ("software", "dataset")
    for work in (cited, *cited["references"]):
        assert work["title"]
        assert all(
            {"name"} <= author.keys() or {"family-names", "given-names"} <= author.keys() for author in work["authors"]
        )
    assert isinstance(cited["date-released"], date)
    assert f"## [{cited['version']}] - {cited['date-released']}\n" in text("CHANGELOG.md")
    assert {"title", "upload_type", "description", "creators"} <= kept.keys()
    assert [author["name"] for author in kept["creators"]] == [author["name"] for author in cited["authors"]]
    same = ("title", "version", "license")
    assert [kept[name] for name in same] == [cited[name] for name in same]
    assert kept["version"] == bilevel_core.__version__


def test_the_supported_pythons_are_the_same_everywhere():
    project = tomllib.loads(text("pyproject.toml"))["project"]
    named = [line.rpartition(" ")[2] for line in project["classifiers"] if "Python :: 3" in line]
    jobs = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]
    assert jobs["test"]["strategy"]["matrix"]["python"] == named
    assert [name.removeprefix("python") for name in release.PYTHONS] == named
    (setup,) = (step for step in jobs["release"]["steps"] if "setup-python" in step.get("uses", ""))
    assert sorted(setup["with"]["python-version"].split()) == named
    assert project["requires-python"] == f">={named[0]}"


@pytest.mark.parametrize("path", sorted((ROOT / ".github" / "workflows").glob("*.yml")), ids=lambda path: path.stem)
def test_a_workflow_has_a_shape_that_github_runs(path):
    flow = yaml.safe_load(path.read_text())
    assert flow["name"]
    assert flow[True]  # YAML 1.1 reads `on` as a truth
    for job in flow["jobs"].values():
        assert job["runs-on"]
        assert {*([job["needs"]] if "needs" in job else [])} <= flow["jobs"].keys()
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w/-]+@v\d+", step.get("uses", "a/b@v1"))
            for target in re.findall(r"\bmake (\w+)", step.get("run", "")):
                assert re.search(rf"^[\w ]*\b{target}\b[\w ]*:", text("Makefile"), re.M), target


def test_once_a_week_the_newest_releases_are_tried_and_a_failure_is_told():
    flow = yaml.safe_load(text(".github/workflows/weekly.yml"))
    ((when,),) = ([list(entry.values()) for entry in flow[True]["schedule"]],)
    assert re.fullmatch(r"\d+ \d+ \* \* \d", *when)
    (job,) = flow["jobs"].values()
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    assert "--upgrade-strategy eager" in commands
    assert "requirements.txt" not in commands  # nothing is pinned
    for command in ("python -m bilevel_book doctor", "python -m doctest README.md", "pytest tests/core"):
        assert command in commands
    assert "failure()" in job["steps"][-1]["if"]
    assert job["permissions"]["issues"] == "write"


def test_everything_that_is_shipped_or_pinned_has_its_licence_in_the_table():
    rows = dict(re.findall(r"^\| (\S+) \| (\S+ \| .+) \|$", text("LICENCES.md").split("## Installed")[1], re.M))
    assert rows.keys() - {"package", "---"} == pinned().keys()
    for name, asked in pinned().items():
        told = rows[name].split(" | ")
        assert told[0] == asked
        assert len(told[1]) > 2
        if version(name).partition("+")[0] == asked:
            assert told[1] == licence(name)
    for place, about in SHIPPED.items():
        assert (ROOT / place).exists()
        assert f"| [{place}]({place}) | {about[0]} | {about[1]} |" in text("LICENCES.md")
    beside = {
        path.parent.relative_to(ROOT).as_posix()
        for part in ("book", "tests", "data")
        for path in (ROOT / part).rglob("LICEN*")
    }
    assert beside <= SHIPPED.keys()
    assert "breast_cancer.csv.gz" in text("README.md")


@pytest.fixture
def two(tmp_path, monkeypatch):
    """A site of two versions, of books of two pages."""
    base = yaml.safe_load(text("_config.yml"))["html"]["baseurl"]
    monkeypatch.setattr(site, "HTML", tmp_path / "html")
    for name, page in {"1.0": "old", "dev": "new", "1.10": "new"}.items():
        for place in ("book", "_static"):
            (tmp_path / "html" / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / "html" / "book" / "index.html").write_text(f'<link rel="canonical" href="{base}book/index.html">')
        (tmp_path / "html" / "book" / f"{page}.html").write_text(name)
        (tmp_path / "html" / "404.html").write_text('<a href="/bilevel-book/book/index.html">')
        (tmp_path / "html" / "sitemap.xml").write_text(f"<loc>{base}book/index.html</loc>")
        (tmp_path / "html" / "llms.txt").write_text("")
        site.site(name, str(tmp_path / "site"))
        (tmp_path / "html" / "book" / f"{page}.html").unlink()
    return base, tmp_path / "site"


def test_versions_know_one_another_and_the_top_leads_to_the_newest_release(two):
    base, folder = two
    for name in ("1.0", "1.10", "dev"):
        told = json.loads((folder / name / "_static" / "versions.js").read_text().split(" = ")[1].rstrip(";\n"))
        assert told["here"] == name
        assert [one["name"] for one in told["all"]] == ["1.10", "1.0", "dev"]
        assert [("book/old.html" in one["pages"], "book/new.html" in one["pages"]) for one in told["all"]] == [
            (False, True),
            (True, False),
            (False, True),
        ]
        assert f'href="{base}{name}/book/index.html"' in (folder / name / "book" / "index.html").read_text()
    assert "url=1.10/book/index.html" in (folder / "index.html").read_text()
    assert f"{base}1.10/book" in (folder / "sitemap.xml").read_text()
    assert 'href="/bilevel-book/1.10/book/index.html"' in (folder / "404.html").read_text()


def test_a_version_is_dev_or_two_numbers_and_needs_a_book(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match=r"called dev or as 1\.0 is, not '1\.0\.0'"):
        site.site("1.0.0", str(tmp_path))
    monkeypatch.setattr(site, "HTML", tmp_path)
    with pytest.raises(SystemExit, match="say make book"):
        site.site("dev", str(tmp_path))
    assert list(tmp_path.iterdir()) == []
