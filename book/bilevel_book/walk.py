"""The path of a method."""

from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers import Solver, State


def walk(problem: BilevelProblem, solver: Solver, steps: int, seed: int = 0) -> list[State]:
    """Every state from the first, before any step, to the last: steps + 1 of them."""
    states = [solver.init(problem, seed)]
    for _ in range(steps):
        states.append(solver.step(problem, states[-1]))
    return states
