"""A method of one's own, as a reader would write it: SOBA with v moved twice a step. The tests of methods run it."""

from torch import Generator

from bilevel_core.directions import exact
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.solver import POSITIVE, Solver, State, draw, method, option


@method
class MyMethod(Solver[State]):
    """SOBA with v moved twice a step."""

    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of y and v")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, y, v = state.x, state.y, state.v
        alpha, beta = self.at(state.t, "alpha", "beta")
        for _ in range(2):
            d = exact(problem, x, y, v, draw(problem, generator))
            v = v - beta * d.v
        return state.moved(x=x - alpha * d.x, y=y - beta * d.y, v=v)
