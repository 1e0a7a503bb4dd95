"""The chapter on problems of one's own: its pictures, and what it promises about its code."""

import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgba

from bilevel_book.figures import own_problem as figures
from bilevel_book.style import BLUE, GREY, METHODS

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


ORDER = ["First", "Second", "Third", "Fourth", "Fifth", "Sixth"]
SIX = {name: cells for name, cells in sections().items() if name.split(":")[0] in ORDER}


def test_there_are_six_problems_and_each_says_what_to_watch():
    assert [name.split(":")[0] for name in SIX] == ORDER
    for cells in SIX.values():
        text = "\n".join(cell.source for cell in cells)
        assert ":::{admonition} What to watch" in text
        assert "baseline" in text or "truth" in text


@pytest.mark.parametrize("name", SIX)
def test_a_problem_and_its_first_run_take_less_than_twenty_five_lines(name):
    """The cells up to the first `run`, without the data, blank lines and imports."""
    lines = []
    for cell in SIX[name]:
        if cell.cell_type == "code" and not FOLDED & set(cell.metadata.get("tags", [])):
            blocks = re.split(r"\n\n\n", cell.source)
            lines += [line for block in blocks if not is_data(block) for line in block.splitlines() if line.strip()]
            if re.search(r"\brun\(", cell.source):
                break
    assert any("run(" in line for line in lines)
    assert len(lines) < 25, lines


def is_data(block):
    """Where the examples come from, which is not part of the problem."""
    words = ("class Digits", "def examples", "def small", "def curves", "def shots", "mnist", "randint", "class Ledger")
    return any(word in block for word in words)


def test_twelve_symptoms_are_produced_by_cells_and_stand_in_the_table():
    cells = sections()["When it goes wrong"]
    headings = [k for k, cell in enumerate(cells) if re.match(r"### \d+\. ", cell.source)]
    assert len(headings) == 12
    for k in headings:
        assert "**Cause**" in cells[k].source
        assert "**Cure**" in cells[k].source
        assert cells[k + 1].cell_type == "code"
        assert cells[k + 1].outputs
    assert cells[-1].source.count("\n| ") == 12


def test_penalties_are_drawn_where_they_are_and_features_that_matter_are_marked():
    (axes,) = figures.penalties([1.0, -2.0, 0.5], [2.0, -1.0, 0.0], matter=2).axes
    shown = {line.get_label(): line for line in axes.lines if not line.get_label().startswith("_")}
    assert list(shown["FdeHBO"].get_ydata()) == [1.0, -2.0, 0.5]
    assert shown["FdeHBO"].get_color() == BLUE
    assert list(shown["L-BFGS on Φ"].get_ydata()) == [2.0, -1.0, 0.0]
    assert axes.patches[0].get_x() + axes.patches[0].get_width() == 2.5


def test_every_row_of_pictures_has_its_name_and_all_its_images():
    rows = {"real": np.zeros((3, 4, 4)), "learned": np.arange(48.0).reshape(3, 4, 4)}
    figure = figures.pictures(rows)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["real", "learned"]
    (image,) = figure.axes[1].images
    assert image.get_array().shape == (6, 18)  # three of 4 x 4, each in a frame
    assert image.get_array()[1, 1] == 0.0
    assert image.get_array()[4, 16] == 47.0


def test_a_search_is_a_staircase_and_the_gradient_has_the_colour_of_fdehbo():
    curves = {name: ([1.0, 2.0], [3.0, 1.0]) for name in ("grid", "random", "FdeHBO")}
    (axes,) = figures.search(curves).axes
    assert [line.get_color() for line in axes.lines] == [GREY, axes.lines[1].get_color(), METHODS["FdeHBO"].color]
    assert all(line.get_drawstyle() == "steps-post" for line in axes.lines)


def test_costs_over_sizes_have_the_looks_of_their_methods_and_a_name_each():
    costs = {"objective": [1e4, 1e6], "FdeHBO": [2e4, 2e4], "SOBA": [3e4, 2e4]}
    (axes,) = figures.by_size([10, 1000], costs).axes
    for line in axes.lines:
        assert list(line.get_ydata()) == costs[line.get_label()]
    drawn = {line.get_label(): to_rgba(line.get_color()) for line in axes.lines}
    assert drawn["SOBA"] == to_rgba(METHODS["SOBA"].color)
    assert {text.get_text() for text in axes.texts} == set(costs)


def test_a_run_that_diverged_says_so_in_its_picture():
    def words(steps):
        (axes,) = figures.two_losses(steps, [5.0] * len(steps), [4.0] * len(steps), 1.0).axes
        return [text.get_text() for text in axes.texts]

    assert words([0, 10, 20]) == []
    assert words([0]) == ["diverged"]
