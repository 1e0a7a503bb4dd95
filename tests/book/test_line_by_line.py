"""The family of Chapter 8 has every method of the paper, and says of each what counting says."""

from bilevel_book.figures.methods import FAMILIES
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
        assert ("Jv" in text) == (calls.Jv > 0), name
    assert sum("Jv" in text for text in NEEDS.values()) == 11  # as the title says
