"""A release as files: one version everywhere, and a licence for all that is shipped or pinned."""

import json
import re
import tomllib
from pathlib import Path

import yaml

import bilevel_core
from bilevel_book.doctor import pinned

ROOT = Path(__file__).resolve().parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_citation_zenodo_and_changelog_agree_with_the_version():
    cited, kept = yaml.safe_load(text("CITATION.cff")), json.loads(text(".zenodo.json"))
    shared = ("title", "version", "license")
    assert [kept[name] for name in shared] == [cited[name] for name in shared]
    book = tomllib.loads(text("book/pyproject.toml"))["project"]
    assert kept["version"] == book["version"] == bilevel_core.__version__
    assert f"## [{cited['version']}] - {cited['date-released']}\n" in text("CHANGELOG.md")


def test_lock_has_every_pin_and_each_package_a_hash():
    packages = re.findall(r"^(\S+)==(\S+) \\\n    --hash=sha256:", text("requirements-lock.txt"), re.M)
    assert len(packages) == text("requirements-lock.txt").count("==")
    assert pinned().items() <= dict(packages).items()


def test_everything_shipped_or_pinned_has_its_licence_in_the_table():
    shipped, installed = text("LICENCES.md").split("## Installed")
    rows = dict(re.findall(r"^\| (\S+) \| (\d\S*) \| .+ \|$", installed, re.M))
    cluster = dict(line.split("==") for line in text("requirements-cluster.txt").splitlines() if "==" in line)
    assert rows == pinned() | cluster
    places = set(re.findall(r"^\| \[(\S+)\]\(", shipped, re.M))
    assert [place for place in places if not (ROOT / place).exists()] == []
    found = (path for part in ("book", "tests", "data") for path in (ROOT / part).rglob("LICEN*"))
    assert {path.parent.relative_to(ROOT).as_posix() for path in found} <= places
