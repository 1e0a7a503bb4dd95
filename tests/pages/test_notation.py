"""The notation page is the law of letters: each has one meaning, and what it says about code can be typed."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import torch

from bilevel_book.methods import SOLVERS
from bilevel_core.schedules import Rate, Step

PAGE = (Path(__file__).resolve().parents[2] / "book" / "notation.md").read_text()
ROWS = [[cell.strip() for cell in row.split("|")] for row in re.findall(r"^\|( \$.+)\|$", PAGE, re.M)]
CODE = [code for row in ROWS for code in re.findall(r"`([^`]+)`", row[2])]


@pytest.fixture(scope="module")
def typed():
    (example,) = re.findall(r"```python\n(.+?)```", PAGE, re.S)
    names = {}
    exec(example, names)
    return {code: eval(code, names) for code in CODE} | {"names": names}


def test_the_table_is_read_whole():
    assert len(ROWS) == PAGE.count("\n| $") > 30
    assert {len(row) for row in ROWS} == {4}
    assert len(CODE) > 25


def test_each_letter_has_one_meaning():
    letters = [letter for row in ROWS for letter in re.findall(r"\$([^$]+)\$", row[0])]
    assert sorted({x for x in letters if letters.count(x) > 1}) == []


def test_what_the_page_says_about_code_is_so(typed):
    problem, x, state = (typed["names"][name] for name in ("problem", "x", "state"))
    assert typed["state.x"].shape == x.shape
    assert typed["state.v"].shape == typed["state.y"].shape == (len(problem.A),)
    assert [len(typed[f"state.h.{name}"]) for name in "xyv"] == [len(x), len(state.y), len(state.y)]
    assert typed["state.t"] == 1
    H, J, v = typed["problem.A"], typed["-problem.B.T"], typed["hypergradient(problem, x).v"]
    y = typed["hypergradient(problem, x).y"]
    assert J.shape == (len(x), len(y))
    assert torch.allclose(H @ v, y - problem.c, atol=1e-8)  # H v* = grad_y f
    gradient = typed["hypergradient(problem, x).gradient"]
    assert torch.allclose(gradient, problem.rho * x - J @ v, atol=1e-8)
    assert torch.allclose(typed["problem.objective(x)"], problem.upper(x, y, typed["problem.full().upper"]), atol=1e-8)
    eigenvalues = torch.linalg.eigvalsh(H)
    assert torch.allclose(eigenvalues[[0, -1]], torch.tensor([typed["problem.mu"], typed["problem.L"]]).to(H))


def test_every_step_size_of_the_methods_is_in_the_table():
    named = {code.split(".")[-1] for code in CODE} | {"gamma"}  # told below the table
    options = {f.name for method in SOLVERS.values() for f in fields(method) if f.type in (Rate, Step)}
    assert {"alpha", "delta", "gamma"} < options
    assert options - named == set()
