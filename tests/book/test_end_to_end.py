"""The experiments of the paper in one cell: the chapter's text is the file's, short, and on nothing but the library."""

import json
import re

import pytest

from bilevel_book.paths import ROOT, chapter


@pytest.mark.parametrize(("number", "name"), [(9, "figure_1"), (10, "figure_2")])
def test_chapter_shows_the_file(number, name):
    text = (ROOT / "reproduction" / f"{name}.py").read_text()
    cells = json.loads(chapter(number).read_text())["cells"]
    (cell,) = [cell for cell in cells if "".join(cell["source"]) == text.rstrip("\n")]
    assert not cell["metadata"].get("tags")
    assert text.count("\n") <= 30
    assert text.endswith(".figure\n")  # or the notebook stores no picture
    assert set(re.findall(r"^from (bilevel\w+\.?\w*)", text, re.M)) <= {
        "bilevel_core", "bilevel_core.schedules", "bilevel_book.mnist", "bilevel_book.experiments",
    }  # fmt: skip
