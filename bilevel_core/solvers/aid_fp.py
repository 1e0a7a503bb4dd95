"""AID-FP: gradient descent on y, then a fixed-point iteration for v, from zero.

Grazzi, Franceschi, Pontil, Salzo (2020), "On the iteration complexity of hypergradient computation".

    y <- y - beta grad_y g(x, y)                                     `inner` times
    v <- v - eta (H(x, y) v - grad_y f(x, y))                        K times from v = 0
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here eta is `eta_series`. After K iterations v has the mean of the Neumann sum with Q = K - 1. Cost of a step: inner + 2
gradients, K - 1 H v (the first product is with v = 0), 1 J v. The method is deterministic: `full` gives it the
whole data, `problem.full()`, as the paper's experiment does. By default each gradient and product is on a fresh
draw, so that it can be run wherever the others can.
"""

from torch import Generator

from bilevel_core.directions import hessian_vector, losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.estimates import inner_loop
from bilevel_core.solvers.solver import COUNT, POSITIVE, SWITCH, Solver, State, draw, lower_batches, method, option


@method
class AIDFP(Solver[State]):
    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of y")
    inner: int = option(5, COUNT, "steps of y for one of x")
    K: int = option(15, COUNT, "iterations for v")
    eta_series: float = option(0.3, POSITIVE, "eta of the iteration, below 2 / L")
    full: bool = option(False, SWITCH, "whether every call sees the whole data")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, (alpha, beta) = state.x, self.at(state.t, "alpha", "beta")
        y = inner_loop(problem, x, state.y, lower_batches(problem, generator, self.inner, self.full), beta)
        samples = draw(problem, generator, self.full)
        f, g = losses(problem, x, samples)
        f_x, f_y = f.gradients(y)
        v = self.eta_series * f_y
        for batch in lower_batches(problem, generator, self.K - 1, self.full):
            v = v - self.eta_series * (hessian_vector(problem, x, y, v, batch) - f_y)
        return state.moved(x=x - alpha * (f_x - g.jacobian_vector(y, v)), y=y, v=v)
