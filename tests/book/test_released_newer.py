"""Newer released code as switches: off they change nothing, on they do what the formula says."""

import pytest
import torch

from bilevel_book.finite import FiniteQuadratic
from bilevel_book.methods import SOLVERS
from bilevel_book.released.newer import ReleasedF2SA, ReleasedSPABA
from bilevel_core.problems import Quadratic


@pytest.mark.parametrize(("name", "released"), [("F2SA", ReleasedF2SA), ("SPABA", ReleasedSPABA)])
def test_with_its_switch_off_a_method_is_the_library_s(name, released):
    problem, pair = FiniteQuadratic(n=5), (SOLVERS[name](), released())
    states = [solver.init(problem, 3) for solver in pair]
    for _ in range(20):
        states = [solver.step(problem, state) for solver, state in zip(pair, states, strict=True)]
    assert all(torch.equal(getattr(states[0], part), getattr(states[1], part)) for part in ("x", "y", "v"))


def test_with_the_gradient_at_z_the_gap_is_a_sum_of_upper_gradients():
    problem, gamma, ell, K = Quadratic(seed=2), 0.3, 1000.0, 12
    options = {"alpha": 1e-9, "beta": gamma / ell, "gamma": gamma, "multiplier": ell, "inner": K}
    start = torch.full_like(problem.b, 0.7)
    y, total = start, torch.zeros_like(start)
    z = start
    for _ in range(K):
        total = total + (y - problem.c)
        at_z = problem.A @ z - problem.B @ problem.x0 - problem.b
        y, z = y - gamma / ell * (y - problem.c) - gamma * at_z, z - gamma * at_z
    solver = ReleasedF2SA(**options, elsewhere=True)
    state = solver.step(problem, solver.init(problem, y=start))
    assert torch.allclose(state.v, gamma * total)
    far, near = (state.v - problem.v_star(state.x)).norm(), problem.v_star(state.x).norm()
    assert far > 3 * near
    right = ReleasedF2SA(**options | {"inner": 100})
    v = right.step(problem, right.init(problem, y=start)).v
    assert (v - problem.v_star(problem.x0)).norm() < 0.01 * near


def test_a_run_that_never_looks_comes_to_rest_at_the_origin():
    problem = FiniteQuadratic(n=5, noise=0.0)
    solver = ReleasedSPABA(alpha=0.3, beta=0.3, lam=0.3, once=True)
    state = solver.init(problem)
    for _ in range(300):
        state = solver.step(problem, state)
    assert problem.looks == 1  # when the state was made, to see that there are data
    assert max(part.abs().max() for part in (state.x, state.y, state.v)) < 1e-6
    assert problem.hypergradient(state.x).norm() > 0.1


def test_a_run_whose_only_toss_shows_a_look_looks_in_every_step():
    problem, solver = FiniteQuadratic(n=5), ReleasedSPABA(once=True, shows=True)
    state = solver.init(problem)
    for _ in range(10):
        state = solver.step(problem, state)
    assert problem.looks == 1 + 10
