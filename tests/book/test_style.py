"""How methods look: any two can be told apart, with colours and without, on a white page and on a dark one."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from bilevel_book.methods import SOLVERS
from bilevel_book.style import BLACK, BLUE, BROWN, GREEN, GREY, METHODS, ORANGE, PURPLE, RED, SKY, look, panels, spread

COLOURS = {BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BROWN, GREY, BLACK, *(method.color for method in METHODS.values())}


def luminance(colours):
    parts = np.asarray(colours)
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    """Of two colours, as WCAG has it: from 1, the same, to 21, black on white; 4.5 for words, 3 for lines."""
    low, high = np.sort([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def lab(colour):
    """CIELAB, in which a distance of 2.3 is just noticeable."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)])
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_methods_can_be_told_apart_with_and_without_colours():
    assert set(METHODS) == set(SOLVERS)
    for (one, a), (other, b) in combinations(METHODS.items(), 2):
        assert np.linalg.norm(lab(a.color) - lab(b.color)) > 15, (one, other)
        assert (a.linestyle, a.marker) != (b.linestyle, b.marker), (one, other)
    tuned = look("FMBO, tuned")
    assert (tuned.color, tuned.marker) == (METHODS["FMBO"].color, METHODS["FMBO"].marker)
    assert tuned.linestyle not in {method.linestyle for method in METHODS.values()}


def test_colours_are_legible_on_white_and_turned_round_on_dark():
    ground, luma = np.full(3, 0x12 / 255), np.array([0.213, 0.715, 0.072])
    for colour in COLOURS:
        drawn = np.array(to_rgb(colour))
        turned = 2 * luma @ (1 - drawn) - (1 - drawn)  # invert(1) hue-rotate(180deg): lightness turns, hue stays
        screened = 1 - (1 - np.clip(turned, 0, 1)) * (1 - ground)
        assert contrast(drawn, np.ones(3)) >= 4.5, colour
        assert contrast(screened, ground) >= 4.5, colour


def test_spread_moves_labels_as_little_as_it_must():
    assert spread([0.5, 0.5, 0.5], 0.1) == pytest.approx([0.4, 0.5, 0.6])
    assert spread([0.9, 0.2, 0.21], 0.1) == pytest.approx([0.9, 0.155, 0.255])  # in the order that was given
    assert spread([0.0, 0.0, 1.0], 0.2) == pytest.approx([0.0, 0.2, 1.0])  # none leaves the axes


def test_notebooks_show_figures_as_wide_as_a_column_of_text():
    with panels() as (figure, _):
        assert 580 < figure._repr_mimebundle_()[1]["image/png"]["width"] < 630
