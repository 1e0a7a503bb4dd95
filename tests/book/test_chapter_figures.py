"""Figures of chapters 4 to 6: what is drawn is what was given, in the colours of the book."""

import numpy as np
import pytest
from matplotlib.patches import Circle

from bilevel_book.figures.finite_differences import rounding, what_rounds
from bilevel_book.figures.momentum import LOOKS, error_against_time, following, race_of_schedules
from bilevel_book.figures.projection import map_and_path, seen_slopes
from bilevel_book.style import METHODS


def drawn(axes, colour):
    return [line for line in axes.lines if line.get_color() == colour]


def test_rounding_is_drawn_between_two_guesses():
    deltas = np.logspace(-7, -1, 7)
    largest, typical = 3 * deltas**-1, deltas**-1
    axes = what_rounds(deltas, largest, typical, {"terms": 5 / deltas, "sum": 1e-4 / deltas}).axes[0]
    assert {line.get_label(): list(line.get_ydata()) for line in axes.lines if line.get_label()[0] != "_"} == {
        "largest of 400": list(largest),
        "typical": list(typical),
    }
    tops = sorted(max(line.get_ydata()) for line in axes.lines if line.get_linestyle() != "None")
    assert tops == pytest.approx([1e3, 5e7])
    assert [text.get_text() for text in axes.texts] == ["ε ω / (2δ)", "ε ‖∇g‖ / δ"]


def test_the_magnifying_glass_joins_the_two_gradients():
    steps = np.linspace(-2, 2, 5)
    above, below = rounding({"float32": ([1, 2], [3, 4])}, (steps, 2 * steps), 2.0, 1.9, ("float32", 1.5, 0.5)).axes
    chord = next(line for line in above.lines if line.get_label() == "the two gradients")
    assert (list(chord.get_xdata()), list(chord.get_ydata())) == ([-1, 1], [-2, 2])
    assert [(*line.get_xdata(), *line.get_ydata()) for line in below.lines if len(line.get_xdata()) == 1] == [
        (1.5, 0.5)
    ]


def test_the_map_marks_the_place_of_the_sliders():
    gaps = np.array([[0.01, 2.0, 0.0], [0.5, 0.04, 3.0]])
    axes = map_and_path(gaps, (1, 2), (0.1, 0.2, 0.5), (1, 2), np.zeros(5), np.zeros(5)).axes[0]
    assert [patch.center for patch in axes.patches if isinstance(patch, Circle)] == [(2, 1)]
    assert [text.get_text() for text in axes.texts] == [f"{gap:.2f}" for gap in gaps.flat]


def test_each_radius_comes_to_rest_on_the_zero_line():
    x = np.linspace(-1, 1, 5)
    axes = seen_slopes(x, {"true": x, "small": x - 0.5, "large": x}, {"small": 0.5, "large": 0.0}).axes[0]
    ends = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if len(line.get_xdata()) == 1]
    assert ends == [(0.5, 0), (0.0, 0)]


def test_an_estimator_has_one_colour_in_both_panels():
    paths = {name: [k, k + 1] for k, name in enumerate(LOOKS, 1)}
    above, below = following([0, 0], paths, paths).axes
    for name, (colour, _) in LOOKS.items():
        assert [list(line.get_ydata()) for axes in (above, below) for line in drawn(axes, colour)] == 2 * [paths[name]]


def test_a_schedule_is_told_by_its_line_and_a_method_by_its_colour():
    runs = {
        name: (np.array([1, 2]), np.array([k, k]))
        for k, name in enumerate(("FMBO, a", "SOBA, b", "SOBA, c", "SOBA, d"), 1)
    }
    axes = race_of_schedules(runs, "t").axes[0]
    assert [line.get_color() for line in axes.lines] == [METHODS["FMBO"].color, *3 * [METHODS["SOBA"].color]]
    assert len({line.get_linestyle() for line in axes.lines}) == 4
    with pytest.raises(ValueError, match="zip"):
        race_of_schedules(dict(list(runs.items())[:3]), "t")


def test_the_chosen_weight_stands_out_against_soba():
    curves = {eta: np.array([9.0, 3 * eta, eta]) for eta in (0.1, 0.5, 1.0)}
    axes = error_against_time(curves, 0.5).axes[0]
    (ours,), (soba,) = drawn(axes, METHODS["FMBO"].color), drawn(axes, METHODS["SOBA"].color)
    assert (list(ours.get_ydata()), list(soba.get_ydata())) == ([1.5, 0.5], [3.0, 1.0])
    assert axes.get_title("left") == "After 2 steps: 0.500, SOBA 1.00"
