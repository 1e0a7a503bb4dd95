"""Chapter 16: rates as data, and the quadratic on a data set."""

import pytest
import torch
from pybtex.database import parse_file

from bilevel_book.complexity import exponent, settings, squared
from bilevel_book.finite import FiniteQuadratic
from bilevel_book.methods import SOLVERS
from bilevel_book.paths import ROOT


def test_every_rate_has_a_source_in_the_bibliography():
    known = parse_file(ROOT / "book" / "references.bib").entries
    for setting in settings():
        assert {setting.source, *(method.source for method in setting.methods)} <= set(known)
        assert all(each.read for each in (setting, *setting.methods))


def test_exponents_depend_on_the_order_and_halve_with_the_square():
    assert (exponent("6"), exponent("6", 3), exponent("4 + 2/p", 1), exponent("4 + 2/p", 4)) == (6, 6, 6, 4.5)
    assert (squared("3"), squared("4 + 2/p")) == ("3/2", "2 + 1/p")
    with pytest.raises(ValueError, match="depends on the order p"):
        exponent("4 + 2/p")


def test_the_mean_of_the_finite_quadratic_is_its_closed_form():
    problem = FiniteQuadratic(n=7, noise=0.5, seed=1)
    generator = torch.Generator().manual_seed(0)
    x, y = (torch.randn(n, generator=generator).double() for n in (5, 10))
    for loss, part in ((problem.upper, "upper"), (problem.lower, "lower")):
        each = torch.stack([loss(x, y, getattr(draw, part)) for draw in problem.draws])
        assert each.std() > 0.01
        assert torch.isclose(each.mean(), loss(x, y, getattr(problem.full(), part)))
    assert any(problem.sample(generator) is problem.draws[0] for _ in range(100))


def test_looks_at_all_the_data_are_counted():
    problem, solver = FiniteQuadratic(n=7), SOLVERS["SRBA"](period=4)
    state = solver.init(problem)
    for _ in range(9):
        state = solver.step(problem, state)
    assert problem.looks == 1 + 3  # when the state was made, and at t = 0, 4, 8
