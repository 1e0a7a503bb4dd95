"""stocBiO: inner stochastic gradient descent, then a Neumann sum with a fresh batch in every factor.

Ji, Yang, Liang (2021), "Bilevel optimization: convergence analysis and enhanced design", Algorithm 2.

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v  = gamma sum_{q=0}^{Q} prod_{j=1}^{q} (I - gamma H_j) grad_y f(x, y)
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here gamma is `eta_series`. Cost of a step: inner + 2 gradients, Q H v, 1 J v. Bias of v: (I - gamma H)^{Q+1} v*. Its
released code leaves the first term out of the sum and multiplies one term only by gamma; this follows the paper.
"""

from bilevel_book.methods.estimates import DoubleLoop, lower_batches, neumann
from bilevel_core.solvers.base import COUNT, POSITIVE, method, option


@method
class StocBiO(DoubleLoop):
    Q: int = option(15, COUNT, "factors of the longest product in the sum")
    eta_series: float = option(0.3, POSITIVE, "gamma of the sum, below 2 / L")

    def solve(self, problem, state, f_y, g, generator):
        batches = lower_batches(problem, generator, self.Q, self.full)
        return state.replace(v=neumann(problem, state.x, state.y, f_y, batches, self.eta_series))
