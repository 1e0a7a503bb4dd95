"""BSA: inner stochastic gradient descent, then a product of random length.

Ghadimi, Wang (2018), "Approximation methods for bilevel programming", Algorithm 2 (Algorithm 3 for the product).

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v  = K eta prod_{j=1}^{k} (I - eta H_j) grad_y f(x, y),          k uniform on 0..K-1
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here eta is `eta_series`. Cost of a step: inner + 2 gradients, (K - 1) / 2 H v on average, 1 J v. The mean of v is
the Neumann sum with Q = K - 1, its variance grows with K. The paper has single samples; here a batch is what the
problem draws.
"""

from torch import Generator

from bilevel_core.directions import losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.estimates import inner_loop, truncated, uniform
from bilevel_core.solvers.solver import COUNT, POSITIVE, Solver, State, draw, lower_batches, method, option


@method
class BSA(Solver[State]):
    alpha: Rate = option(Power(0.1, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of y")
    inner: int = option(5, COUNT, "steps of y for one of x")
    K: int = option(12, COUNT, "the product has fewer factors than this")
    eta_series: float = option(0.3, POSITIVE, "eta of the product, below 2 / L")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, (alpha, beta) = state.x, self.at(state.t, "alpha", "beta")
        y = inner_loop(problem, x, state.y, lower_batches(problem, generator, self.inner), beta)
        samples = draw(problem, generator)
        f, g = losses(problem, x, samples)
        f_x, f_y = f.gradients(y)
        batches = lower_batches(problem, generator, uniform(generator, self.K))
        v = truncated(problem, x, y, f_y, batches, self.eta_series, self.K)
        return state.moved(x=x - alpha * (f_x - g.jacobian_vector(y, v)), y=y, v=v)
