"""BSA: inner stochastic gradient descent, then a product of random length.

Ghadimi, Wang (2018), "Approximation methods for bilevel programming", Algorithm 2 (Algorithm 3 for the product).

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v  = K gamma prod_{j=1}^{k} (I - gamma H_j) grad_y f(x, y),      k uniform on 0..K-1
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here gamma is `eta_series`. Cost of a step: inner + 2 gradients, (K - 1) / 2 H v on average, 1 J v. The mean of v is
the Neumann sum with Q = K - 1, its variance grows with K. The paper has single samples; here a batch is what the
problem draws.
"""

import torch

from bilevel_book.methods.estimates import DoubleLoop, lower_batches, truncated
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import COUNT, POSITIVE, STEP, method, option


@method
class BSA(DoubleLoop):
    is_random = True

    alpha: Step = option(Power(0.1, p=1 / 2), STEP, "step of x")
    K: int = option(12, COUNT, "the product has fewer factors than this")
    eta_series: float = option(0.3, POSITIVE, "gamma of the product, below 2 / L")

    def solve(self, problem, state, f_y, g, generator):
        k = int(torch.randint(self.K, (), generator=generator))
        batches = lower_batches(problem, generator, k, self.full)
        return state.replace(v=truncated(problem, state.x, state.y, f_y, batches, self.eta_series, self.K))
