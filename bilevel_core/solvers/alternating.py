"""The control: alternating stochastic gradient descent, with no second-order term at all.

    y_{t+1} = y_t - beta_t grad_y g(x_t, y_t)
    x_{t+1} = x_t - alpha_t grad_x f(x_t, y_{t+1})

It ignores how y* moves with x, so it is no bilevel method: what it reaches shows what the implicit term is worth.
Where f depends on y only, as in data hyper-cleaning, x never moves. Cost of a step: 2 gradients. v is unused.
"""

from torch import Generator

from bilevel_core.directions import grad_x, grad_y
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import STEP, Solver, State, draw, method, option


@method
class Alternating(Solver[State]):
    alpha: Step = option(Power(0.2, p=1 / 2), STEP, "step of x")
    beta: Step = option(Power(0.5, p=1 / 2), STEP, "step of y")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        samples = draw(problem, generator)
        state = self.move(problem, state, y=grad_y(problem.lower, state.x, state.y, samples.lower))
        return self.move(problem, state, x=grad_x(problem.upper, state.x, state.y, samples.upper))
