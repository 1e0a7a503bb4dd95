"""What `make bench` compares gives the same answers, and its slopes are slopes."""

import math

import pandas as pd
import pytest
import torch

import peers
import scaling
from bilevel_core.problems import Quadratic


@pytest.mark.slow
def test_hypertorch_stand_in_gives_the_hypergradient():
    problem = Quadratic(dim_x=4, dim_y=6, L=10.0)
    x = problem.x0
    found = peers.hypertorch_cg(problem, x, problem.y_star(x), problem.full(), 1e-12, 0)
    torch.testing.assert_close(found, problem.hypergradient(x), rtol=1e-10, atol=1e-12)


def test_slope_is_the_exponent_of_the_larger_half():
    sizes = [1, 10, 100, 1000]
    table = pd.DataFrame({"grows": "n", "method": "A", "size": sizes, "ms": [5, 5, 3e2, 3e3], "megabytes": 7.0})
    (row,) = scaling.slopes(table).to_dict("records")
    assert math.isclose(row["ms"], 1, abs_tol=1e-9)
    assert math.isclose(row["megabytes"], 0, abs_tol=1e-9)
