"""The family of Chapter 8 has every method of the paper, and says of each what counting says."""

from bilevel_book.figures.methods import FAMILIES, position
from bilevel_book.methods import PAPER, SOLVERS
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic

NEEDS = {name: how["text"] for _, methods in FAMILIES for name, how in methods}


def test_family_says_which_methods_take_products():
    assert sorted(NEEDS) == sorted((*PAPER, "alternating"))
    small = Quadratic(dim_x=2, dim_y=3, noise=0.1)
    for name, text in NEEDS.items():
        solver = SOLVERS[name]()
        with counting() as calls:
            solver.step(small, solver.init(small))
        assert ("products" in text) == (calls.Jv > 0), name


def test_position_in_a_race_is_the_last_step_that_is_paid_for():
    assert position(([0, 5, 10], [0.9, 0.45, 0.2]), 4) == 0.9
