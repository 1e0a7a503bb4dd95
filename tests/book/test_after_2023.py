"""Chapter 16: rates as data, its figures, and the quadratic on a data set."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from pybtex.database import parse_file

from bilevel_book.complexity import exponent, settings, squared, table
from bilevel_book.figures.after_2023 import ORDERS, ladder, noisy_products, slopes_by_calls, two_walks
from bilevel_book.finite import FiniteQuadratic
from bilevel_book.methods import SOLVERS
from bilevel_book.newer import at_edges
from bilevel_book.paths import ROOT
from bilevel_book.style import BLUE, look


def test_no_method_is_proved_to_beat_what_none_can_beat():
    pairs = [(method.upper, setting.lower) for setting in settings() for method in setting.methods]
    assert len(pairs) > 10
    assert all(exponent(upper, p) >= exponent(lower, p) for upper, lower in pairs for p in (1, 2, 3, 100))


def test_every_rate_has_a_source_in_the_bibliography_and_says_what_was_read():
    known = parse_file(ROOT / "book" / "references.bib").entries
    for setting in settings():
        assert setting.source in known
        assert setting.read
        assert {method.source for method in setting.methods} <= set(known)
        assert all(method.read for method in setting.methods)


def test_an_order_changes_only_the_exponent_that_depends_on_it():
    assert (exponent("6"), exponent("6", 3), exponent("4 + 2/p", 1), exponent("4 + 2/p", 4)) == (6, 6, 6, 4.5)
    with pytest.raises(ValueError, match="depends on the order p"):
        exponent("4 + 2/p")


def test_the_square_of_an_accuracy_halves_every_exponent():
    for p in (1, 2, 4):
        whole, over = squared("4 + 2/p").split(" + ")
        assert Fraction(whole) + Fraction(over.removesuffix("/p")) / p == Fraction(exponent("4 + 2/p", p)) / 2
    assert squared("3") == "3/2"


def test_the_table_has_a_row_for_every_method_of_every_setting():
    rows = table()
    assert list(rows.index) == [method.name for setting in settings() for method in setting.methods]
    assert tuple(rows.loc["FdeHBO"]) == (
        "gradients", "one sample at two points: smooth f, g, H and J", "ε^-(3)", "ε^-(3/2)", "ε^-(3)",
    )  # fmt: skip


def test_the_ladder_draws_methods_at_their_exponents_and_grey_up_to_the_bound():
    axes = ladder(settings()).axes[0]
    drawn = {(line.get_ydata()[0], line.get_xdata()[0]) for line in axes.lines if line.get_color() == BLUE}
    expected = set()
    for row, setting in enumerate(settings()):
        orders = ORDERS if "p" in setting.lower else (None,)
        expected |= {(-row, exponent(method.upper, p)) for method in setting.methods for p in orders}
        bar = axes.patches[row]
        assert bar.get_x() + bar.get_width() == exponent(setting.lower, ORDERS[-1])
    assert drawn == expected


def test_the_two_walks_are_drawn_with_their_distance_from_the_saddle():
    path = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]])
    plane, below = two_walks({"FdeHBO": path, "SGHA": 2 * path}, (0.0, 1.0)).axes
    first = plane.lines[0]
    assert np.array_equal(np.column_stack([first.get_xdata(), first.get_ydata()]), path)
    assert list(below.lines[0].get_ydata()) == pytest.approx([np.sqrt(2), 1, 0])
    assert [line.get_color() for line in below.lines] == [look(name).color for name in ("FdeHBO", "SGHA")]


def test_curves_of_a_race_and_the_best_of_a_product_are_drawn_as_given():
    (line,) = slopes_by_calls({"SOBA": (np.array([1, 2, 4]), np.array([9.0, 3.0, 1.0]))}, "t").axes[0].lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([2, 4], [3, 1])
    error = {"one": np.array([2.0, 1.0]), "two": np.array([1.0, 3.0])}
    axes = noisy_products(np.array([0.1, 1.0]), error, {"one": (1.0, 1.0), "two": (0.1, 1.0)}).axes[0]
    dots = [(line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines if len(line.get_xdata()) == 1]
    assert dots == [(1.0, 1.0), (0.1, 1.0)]


def test_the_data_of_the_finite_quadratic_have_its_closed_form_as_their_mean():
    problem = FiniteQuadratic(n=7, noise=0.5, seed=1)
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, generator=generator).double() for n in (5, 10))
    for loss, part in ((problem.upper, "upper"), (problem.lower, "lower")):
        each = torch.stack([loss(x, y, getattr(draw, part)) for draw in problem.draws])
        assert each.std() > 0.01
        assert torch.isclose(each.mean(), loss(x, y, getattr(problem.full(), part)))
    assert all(draw.lower.scale > 0 for draw in problem.draws)
    assert any(problem.sample(generator) is problem.draws[0] for _ in range(100))


def test_looks_at_all_the_data_are_counted():
    problem, solver = FiniteQuadratic(n=7), SOLVERS["SRBA"](period=4)
    state = solver.init(problem)
    for _ in range(9):
        state = solver.step(problem, state)
    assert problem.looks == 1 + 3  # when the state was made, and at t = 0, 4, 8


def test_a_setting_is_called_an_edge_in_the_outer_tenth_of_its_box():
    """alpha of FdeHBO on the penalties, 53.4 between 0.1 and 100, lies at .91 of the way; its eta, .811, at .94."""
    assert at_edges("penalties")["FdeHBO"] == ["alpha high", "eta high"]
    assert "SOBA" not in at_edges("penalties")
