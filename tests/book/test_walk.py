import torch

from bilevel_book.walk import walk
from bilevel_core import FMBO
from bilevel_core.problems import Quadratic


def test_a_walk_is_every_state_from_the_first_to_the_last():
    problem, solver = Quadratic(noise=1.0), FMBO()
    states = walk(problem, solver, 3, seed=5)
    assert [state.t for state in states] == [0, 1, 2, 3]
    state = solver.init(problem, seed=5)
    for found in states:
        assert torch.equal(found.x, state.x)
        state = solver.step(problem, state)
