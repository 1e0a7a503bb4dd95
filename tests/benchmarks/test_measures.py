"""What `make bench` compares gives the same answers, and its slopes are slopes."""

import math

import pandas as pd
import pytest
import torch

import attention
import peers
import scaling
from bilevel_core.directions import exact, finite_difference
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


@pytest.mark.slow
def test_recomputed_blocks_give_the_same_directions_and_fused_ones_have_no_products():
    again, kept, fused = (attention.RandomText(kind, 64, 8) for kind in ("plain, recomputed", "plain", "fused"))
    x, y = kept.start(torch.Generator())
    point = x, y, torch.ones_like(y), kept.sample(torch.Generator())
    for one, other, third in zip(*(finite_difference(p, *point, 0.01) for p in (kept, again, fused)), strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(third, one, rtol=1e-2, atol=1e-4)
    with pytest.raises(NotImplementedError, match="no second derivative"):
        exact(fused, *point)
