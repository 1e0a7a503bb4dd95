"""stocBiO: inner stochastic gradient descent, then a Neumann sum with a fresh batch in every factor.

Ji, Yang, Liang (2021), "Bilevel optimization: convergence analysis and enhanced design", Algorithm 2.

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v  = eta sum_{q=0}^{Q} prod_{j=1}^{q} (I - eta H_j) grad_y f(x, y)
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here eta is `eta_series`. Cost of a step: inner + 2 gradients, Q H v, 1 J v. Bias of v: (I - eta H)^{Q+1} v*. Its
released code leaves the first term out of the sum and multiplies one term only by eta; this follows the paper.
"""

from torch import Generator

from bilevel_core.directions import losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.estimates import inner_loop, neumann
from bilevel_core.solvers.solver import COUNT, POSITIVE, Solver, State, draw, lower_batches, method, option


@method
class StocBiO(Solver[State]):
    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of y")
    inner: int = option(5, COUNT, "steps of y for one of x")
    Q: int = option(15, COUNT, "factors of the longest product in the sum")
    eta_series: float = option(0.3, POSITIVE, "eta of the sum, below 2 / L")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, (alpha, beta) = state.x, self.at(state.t, "alpha", "beta")
        y = inner_loop(problem, x, state.y, lower_batches(problem, generator, self.inner), beta)
        samples = draw(problem, generator)
        f, g = losses(problem, x, samples)
        f_x, f_y = f.gradients(y)
        v = neumann(problem, x, y, f_y, lower_batches(problem, generator, self.Q), self.eta_series)
        return state.moved(x=x - alpha * (f_x - g.jacobian_vector(y, v)), y=y, v=v)
