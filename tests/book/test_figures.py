"""Figures show what is in the tables."""

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgb, to_rgba

from bilevel_book.figures.cleaning import rejected
from bilevel_book.figures.costs import PASSES, over_floor, passes
from bilevel_book.figures.reproduction import lanes, race
from bilevel_book.style import (
    BLACK,
    BLUE,
    BROWN,
    GREEN,
    GREY,
    METHODS,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    look,
    name_lines,
    panels,
    spread,
)
from contrast import contrast


def test_a_divergence_is_drawn(table):
    panel = race(table, ["upper_loss"], "seconds").axes[0]
    crosses = [line for line in panel.lines if line.get_marker() == "x"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in crosses] == [(30, 1.0)]
    assert panel.get_yscale() == "log"


def test_on_an_axis_that_a_method_does_not_have_it_is_not_drawn(table):
    table["equivalents"] = table.gradients.where(table.label != "B")
    panel = race(table, ["upper_loss"], "equivalents").axes[0]
    assert [text.get_text() for text in panel.texts] == ["A", "C"]


@pytest.mark.parametrize(("limits", "shown"), [((0.3, 2), {0.4, 1.5}), ((0.03, 6), {0.05, 0.2, 5})])
def test_a_log_axis_has_as_many_numbers_as_there_is_room_for(table, limits, shown):
    panel = race(table, ["upper_loss"], "seconds", limits=[limits]).axes[0]
    ticks = {round(float(tick), 6) for tick in panel.get_yticks() if limits[0] <= tick <= limits[1]}
    assert shown <= ticks
    assert len(ticks) <= 10


def test_a_band_of_accuracies_stays_below_one(history):
    runs = pd.concat([history("SOBA", seed, [0, 1], [0.5, end]) for seed, end in ((0, 0.99), (1, 0.5))])
    panel = race(runs.rename(columns={"upper_loss": "upper_accuracy"}), ["upper_accuracy"], "seconds").axes[0]
    (band,) = panel.collections
    assert band.get_paths()[0].vertices[:, 1].max() == 1.0  # Student's t alone would go to 3.9


def test_variants_of_one_method_have_dashes_of_their_own(history):
    names = ["FMBO", "FMBO, steps 0.1", "FMBO, steps 0.3", "SOBA, steps 0.1"]
    runs = [history(name, 0, [0, 1], [2.0, 1.0], solver=name.split(",")[0]) for name in names]
    lines = race(pd.concat(runs), ["upper_loss"], "seconds").axes[0].get_lines()
    assert [line.get_label() for line in lines] == names
    assert len({line.get_linestyle() + str(line._dash_pattern) for line in lines[:3]}) == 3
    assert len({line.get_color() for line in lines[:3]}) == 1
    assert [line.get_marker() for line in lines] == ["o", "o", "o", "s"]  # one mark a method
    assert len({line.get_markevery()[0] for line in lines}) == 4


def test_lanes_have_the_best_on_top_and_a_dot_for_each_seed():
    read = pd.DataFrame([[0.9, 0.8], [0.5, 0.7]], index=["SOBA", "FSLA"])
    axes = lanes(read, "AUC", "t", {}, {"chance": 0.5}).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["FSLA", "SOBA"]
    assert axes.lines[0].get_xdata().tolist() == [0.5, 0.7]
    assert axes.texts[0].get_text() == "chance"


@pytest.mark.slow
def test_a_race_can_be_cut_to_the_part_that_matters(table):
    panels = race(table, ["upper_loss", "upper_loss"], "seconds", limits=[(1, 2), (3, 4)]).axes
    assert [panel.get_ylim() for panel in panels] == [(1, 2), (3, 4)]
    with pytest.raises(ValueError, match="zip"):
        race(table, ["upper_loss"], "seconds", limits=[(1, 2), (3, 4)])


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


COLOURS = {BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BROWN, GREY, BLACK, *(method.color for method in METHODS.values())}


@pytest.mark.parametrize("colour", sorted(COLOURS))
def test_a_colour_is_legible_on_a_white_page_and_turned_round_on_a_dark_one(colour):
    drawn, ground = np.array(to_rgb(colour)), np.full(3, 0x12 / 255)
    luma = np.array([0.213, 0.715, 0.072])
    turned = 2 * luma @ (1 - drawn) - (1 - drawn)  # invert(1) hue-rotate(180deg): lightness turns, hue stays
    screened = 1 - (1 - np.clip(turned, 0, 1)) * (1 - ground)
    assert contrast(drawn, np.ones(3)) >= 4.5
    assert contrast(screened, ground) >= 4.5


def test_no_two_methods_look_alike():
    for parts in (("color", "linestyle"), ("color", "marker")):
        pairs = [tuple(getattr(method, part) for part in parts) for method in METHODS.values()]
        assert len(set(pairs)) == len(pairs)
    variant = look("FdeHBO, tuned")
    assert (variant.color, variant.marker) == (METHODS["FdeHBO"].color, METHODS["FdeHBO"].marker)
    assert variant.linestyle not in {method.linestyle for method in METHODS.values()}


def test_places_are_the_nearest_that_are_apart():
    assert spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    assert spread([0.9, 0.2, 0.21], 0.1) == pytest.approx([0.9, 0.155, 0.255])  # in the order that was given
    assert spread([0.0, 0.0, 1.0], 0.2) == pytest.approx([0.0, 0.2, 1.0])  # none leaves the axes
    wanted = np.random.default_rng(0).random(12)
    places = spread(wanted, 0.05)
    assert (np.diff(places[wanted.argsort()]) >= 0.05 - 1e-12).all()
    rest = [np.clip(places + 1e-3 * step, 0, 1) for step in [*np.eye(12), *-np.eye(12)]]
    nearer = [other for other in rest if np.abs(np.diff(np.sort(other))).min() >= 0.05]
    assert all(((other - wanted) ** 2).sum() >= ((places - wanted) ** 2).sum() for other in nearer)


def test_a_line_is_named_at_its_end_in_its_colour():
    _, axes = panels()
    axes.plot([0, 1], [0, 1.0], color=BLUE, label="up")
    axes.plot([0, 0.5], [0, 0.98], color=RED, label="up, half the way")
    axes.plot([0, 1], [0, 0.0], color=GREEN)
    name_lines(axes)
    words = {text.get_text(): text for text in axes.texts}
    assert list(words) == ["up", "up, half the\nway"]  # long names break; a line without a name has none
    assert [text.get_color() for text in words.values()] == [BLUE, RED]
    (x, y), (half, _) = (text.xy for text in words.values())
    assert (x, y) == pytest.approx((1 / 1.1 + 0.05 / 1.1, 1 / 1.1 + 0.05 / 1.1))
    assert half == pytest.approx(0.5)
    heights = [text.get_position()[1] for text in words.values()]
    assert heights[0] > heights[1] + 0.05
    assert axes.get_legend() is None
