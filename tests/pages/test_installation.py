"""The first cell of a chapter, run where the package is there, where only its folder is, and where neither is."""

import importlib.util
import subprocess
import sys

import nbformat
import pytest

import tools
from bilevel_book.paths import CHAPTERS

CELL = tools.INSTALLATION.format(where="").strip()


@pytest.fixture
def commands(monkeypatch) -> list[list[str]]:
    """The commands that the cell starts; none is run."""
    started: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: started.append([str(part) for part in command]))
    return started


def pretend_not_installed(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def test_every_chapter_has_the_same_first_cell():
    paths = sorted(CHAPTERS.glob("*.ipynb"))
    assert {nbformat.read(path, as_version=4).cells[1].source for path in paths} == {CELL}


def test_lab_signs_what_git_has_like_this_and_nothing_else(monkeypatch, tmp_path):
    tracked, changed, _ = files = [tmp_path / "chapters" / f"{name}.ipynb" for name in "abc"]
    tracked.parent.mkdir()
    for file in files:
        file.write_text("as it was")
    for command in (["init", "-q"], ["add", tracked, changed]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    changed.write_text("another")
    monkeypatch.setattr(tools, "ROOT", tmp_path)
    assert tools.unchanged(files) == [tracked]


def test_folder_around_the_chapter_is_installed(commands, monkeypatch, tmp_path):
    pretend_not_installed(monkeypatch)
    for folder in ("book/bilevel_book", "chapters"):
        (tmp_path / folder).mkdir(parents=True)
    for here in (tmp_path, tmp_path / "chapters"):
        monkeypatch.chdir(here)
        exec(CELL, {})
    install = [sys.executable, "-m", "pip", "install", "--quiet", str(tmp_path), str(tmp_path / "book")]
    assert commands == [install, install]


def test_chapter_alone_says_what_to_do(commands, monkeypatch, tmp_path):
    pretend_not_installed(monkeypatch)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModuleNotFoundError, match=r"run `pip install \. \./book` in the folder of this book's repo"):
        exec(CELL, {})
    assert commands == []
