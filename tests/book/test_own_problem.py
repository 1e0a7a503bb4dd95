"""The chapter on problems of one's own keeps what it promises about its code."""

import re
from pathlib import Path

import nbformat
import pytest

CHAPTER = nbformat.read(next((Path(__file__).parents[2] / "chapters").glob("17_*.ipynb")), as_version=4)
FOLDED = {"hide-cell", "hide-input", "remove-input", "remove-cell"}


def sections():
    """The cells below each heading of the second level, by its words."""
    found, name = {}, ""
    for cell in CHAPTER.cells:
        heading = re.search(r"^## (.+)$", cell.source, re.M) if cell.cell_type == "markdown" else None
        name = heading[1] if heading else name
        found.setdefault(name, []).append(cell)
    return found


ORDER = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth", "Seventh"]
PROBLEMS = {name: cells for name, cells in sections().items() if name.split(":")[0] in ORDER}


@pytest.mark.parametrize("name", PROBLEMS)
def test_problem_and_first_run_take_less_than_25_lines(name):
    """The cells up to the first `run`, without the data, blank lines and imports."""
    lines = []
    for cell in PROBLEMS[name]:
        if cell.cell_type == "code" and not FOLDED & set(cell.metadata.get("tags", [])):
            blocks = re.split(r"\n\n\n", cell.source)
            lines += [line for block in blocks if not is_data(block) for line in block.splitlines() if line.strip()]
            if re.search(r"\brun\(", cell.source):
                break
    assert any("run(" in line for line in lines)
    assert len(lines) < 25, lines


def is_data(block):
    """Where the examples come from, which is not part of the problem."""
    return any(word in block for word in ("class Digits", "def examples", "def curves", "def shots", "randint"))


def test_six_symptoms_are_produced_by_cells_and_six_more_are_in_a_table():
    cells = sections()["When it goes wrong"]
    headings = [k for k, cell in enumerate(cells) if re.match(r"### .+\n\n\*\*Cause", cell.source)]
    assert len(headings) == 6
    for k in headings:
        assert "**Cause**" in cells[k].source
        assert "**Cure**" in cells[k].source
        assert cells[k + 1].cell_type == "code"
        assert cells[k + 1].outputs
    assert cells[-1].source.count("\n| ") == 6
