"""What FMBO measures on the way to the figure of Chapter 5."""

import pytest
import torch

from bilevel_book.curvature import CurvatureOfFMBO, v_star
from bilevel_core import FMBO, run
from bilevel_core.problems import Quadratic


def test_v_star_solves_the_linear_system(generator):
    problem = Quadratic()
    x, y = problem.start(generator)
    exact = torch.linalg.solve(problem.A, y - problem.c)
    torch.testing.assert_close(v_star(problem, x, y), exact, rtol=0.02, atol=1e-3)


@pytest.mark.slow
def test_measuring_leaves_the_run_alone():
    problem, options = Quadratic(noise=0.5), {"alpha": 0.1, "eta": 0.5}
    watched = run(problem, CurvatureOfFMBO(**options, top_every=4, v_star_at=6), steps=8, every=2, progress=False)
    alone = run(problem, FMBO(**options), steps=8, every=2, progress=False)
    assert torch.equal(watched.state.x, alone.state.x)
    history = watched.history
    assert history[history.top_max.notna()].step.tolist() == [0, 4, 8]
    assert history[history.norm_v_star.notna()].step.tolist() == [6]
    assert (history.top_min <= history.top_max)[history.top_max.notna()].all()
    assert history.gradients.equals(alone.history.gradients)
