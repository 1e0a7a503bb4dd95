"""The notation page: each letter has one meaning, and what the page says about code is so."""

import re
from pathlib import Path

import torch

PAGE = (Path(__file__).resolve().parents[2] / "book" / "notation.md").read_text()
ROWS = [[cell.strip() for cell in row.split("|")] for row in re.findall(r"^\|( \$.+)\|$", PAGE, re.M)]


def test_each_letter_has_one_meaning():
    letters = [letter for row in ROWS for letter in re.findall(r"\$([^$]+)\$", row[0])]
    assert len(letters) > 30
    assert sorted({x for x in letters if letters.count(x) > 1}) == []


def test_code_beside_a_letter_computes_it():
    (example,) = re.findall(r"```python\n(.+?)```", PAGE, re.S)
    names = {}
    exec(example, names)
    value = {code: eval(code, names) for row in ROWS for code in re.findall(r"`([^`]+)`", row[2])}
    problem, x = names["problem"], names["x"]
    H, J, v = value["problem.A"], value["-problem.B.T"], value["hypergradient(problem, x).v"]
    y = value["hypergradient(problem, x).y"]
    assert torch.allclose(H @ v, y - problem.c, atol=1e-8)  # H v* = grad_y f
    assert torch.allclose(value["hypergradient(problem, x).gradient"], problem.rho * x - J @ v, atol=1e-8)
    assert torch.allclose(value["problem.objective(x)"], problem.upper(x, y, problem.full().upper), atol=1e-8)
    extremes = torch.linalg.eigvalsh(H)[[0, -1]]
    assert torch.allclose(extremes, torch.tensor([value["problem.mu"], value["problem.L"]]).to(H))
