"""Figures show what is in the tables."""

import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgba

from bilevel_book.figures.cleaning import rejected
from bilevel_book.figures.costs import PASSES, over_floor, passes
from bilevel_book.figures.reproduction import race, standings
from bilevel_book.style import METHODS, RED


def test_a_divergence_is_drawn(table):
    panel = race(table, ["upper_loss"]).axes[0]
    crosses = [line for line in panel.lines if line.get_marker() == "x"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in crosses] == [(30, 1.0)]
    assert panel.get_yscale() == "log"
    lanes = standings(table, "upper_loss", 15, (1, 10)).axes[0]
    assert [text.get_text() for text in lanes.get_yticklabels()] == ["A", "B", "C"]  # the best on top


def test_a_race_can_be_cut_to_the_part_that_matters(table):
    panels = race(table, ["upper_loss", "upper_loss"], limits=[(1, 2), (3, 4)]).axes
    assert [panel.get_ylim() for panel in panels] == [(1, 2), (3, 4)]
    with pytest.raises(ValueError, match="zip"):
        race(table, ["upper_loss"], limits=[(1, 2), (3, 4)])


def test_the_gallery_shows_the_images_of_lowest_weight():
    weights = torch.linspace(0.9, 0.1, 30)  # the last have the least
    given, true = torch.arange(30) % 10, (torch.arange(30) + (torch.arange(30) % 3 == 0).long()) % 10
    picture = rejected(torch.zeros(30, 28, 28, dtype=torch.uint8), given, true, weights, rows=1)
    words = [text.get_text() for text in picture.axes[0].texts]
    assert words[:3] == ["label 9, right\nweight 0.10", "label 8, right\nweight 0.13", "label 7, is 8\nweight 0.16"]
    assert len(words) == len(picture.axes[0].patches) == 6
    red = [patch for patch in picture.axes[0].patches if patch.get_edgecolor() == to_rgba(RED)]
    assert len(red) == 2  # 27 and 24 of the six


def test_a_missed_goal_is_hollow():
    table = pd.DataFrame({"case": ["FdeHBO", "BSA"], "value": [1.2, 9.0], "at_most": [1.1, None], "met": ["NO", ""]})
    panel = over_floor({"t": table}).axes[0]
    assert [line.get_markerfacecolor() for line in panel.lines][:2] == ["white", METHODS["BSA"].color]
    assert [line.get_xdata()[0] for line in panel.lines][:2] == [1.2, 9.0]


def test_passes_add_up_to_the_floor():
    counts, units = dict.fromkeys(PASSES, 2), {"features": 7, "through": 20, "head gradients": 1, "head products": 3}
    bars = passes(counts, units, 70, 80).axes[0].patches
    assert (bars[3].get_x() + bars[3].get_width(), bars[4].get_width()) == (62, 70)
