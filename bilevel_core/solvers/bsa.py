"""BSA: inner stochastic gradient descent, then a product of random length.

Ghadimi, Wang (2018), "Approximation methods for bilevel programming", Algorithm 2 (with Algorithm 3 for the product).

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v  = K eta prod_{j=1}^{k} (I - eta H_j) grad_y f(x, y),          k uniform on 0..K-1
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here eta is `eta_series`. Cost of a step: inner + 2 gradients, (K - 1) / 2 H v on average, 1 J v. The mean of v is
the Neumann sum with Q = K - 1, its variance grows with K. The paper has single samples; here a batch is what the
problem draws.
"""

from dataclasses import dataclass

from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.double_loop import DoubleLoop
from bilevel_core.solvers.series import truncated, uniform
from bilevel_core.solvers.solver import COUNT, POSITIVE, option


@dataclass(frozen=True, kw_only=True)
class BSA(DoubleLoop):
    alpha: Rate = option(Power(0.1, p=1 / 2), POSITIVE)
    K: int = option(12, COUNT)
    eta_series: float = option(0.3, POSITIVE)

    def solve(self, problem, x, y, f_y, state, generator):
        k = uniform(generator, self.K)
        batches = tuple(self.lower_batch(problem, generator) for _ in range(k))
        return truncated(problem, x, y, f_y, batches, self.eta_series, self.K)
