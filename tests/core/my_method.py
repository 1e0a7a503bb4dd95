"""A method of one's own, as a reader would write it: SOBA with v moved twice a step. The tests of methods run it."""

from torch import Generator

from bilevel_core.directions import exact
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import POSITIVE, Solver, State, draw, method, option


@method
class MyMethod(Solver[State]):
    """SOBA with v moved twice a step."""

    alpha: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Step = option(Power(0.5, p=1 / 2), POSITIVE, "step of y")
    lam: Step = option(Power(0.5, p=1 / 2), POSITIVE, "step of v")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        for _ in range(2):
            d = exact(problem, state.x, state.y, state.v, draw(problem, generator))
            state = self.move(problem, state, v=d.v)
        return self.move(problem, state, x=d.x, y=d.y)
