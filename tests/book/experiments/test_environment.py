"""The commit of a run: that of the checkout in which the library lies."""

import os
import subprocess

import pytest

import bilevel_core
from bilevel_book.experiments.environment import commit


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one commit, in which the library seems to lie; and git in it."""
    environment = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    author = ("-c", "user.name=nobody", "-c", "user.email=nobody@example.org")

    def git(*arguments):
        command = ["git", *author, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=os.environ | environment, check=True, capture_output=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "of something else")
    for package in ("core", "book"):
        (tmp_path / package / "experiments").mkdir(parents=True)
    (tmp_path / "core" / "__init__.py").write_text("first")
    monkeypatch.setattr(bilevel_core, "__file__", str(tmp_path / "core" / "__init__.py"))
    place = str(tmp_path / "book" / "experiments" / "environment.py")
    monkeypatch.setattr("bilevel_book.experiments.environment.__file__", place)
    return git


def commit_now():
    commit.cache_clear()
    try:
        return commit()
    finally:
        commit.cache_clear()


def test_commit_is_that_of_the_checkout(checkout, tmp_path):
    assert commit_now() is None  # a checkout, but the library is no part of it
    (tmp_path / "result.csv").write_text("first")
    checkout("add", ".")
    checkout("commit", "-q", "-m", "first")
    head = checkout("rev-parse", "HEAD")
    assert commit_now() == head
    (tmp_path / "result.csv").write_text("a changed result changes nothing")
    assert commit_now() == head
    (tmp_path / "core" / "__init__.py").write_text("second")
    assert commit_now() == f"{head}-dirty"
