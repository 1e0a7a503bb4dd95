"""stocBiO: inner stochastic gradient descent, then a Neumann sum with a fresh batch in every factor.

Ji, Yang, Liang (2021), "Bilevel optimization: convergence analysis and enhanced design", Algorithm 2.

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v  = eta sum_{q=0}^{Q} prod_{j=1}^{q} (I - eta H_j) grad_y f(x, y)
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here eta is `eta_series`. Cost of a step: inner + 2 gradients, Q H v, 1 J v. Bias of v: (I - eta H)^{Q+1} v*. Its
released code leaves the first term out of the sum and multiplies one term only by eta; this file follows the paper.
"""

from dataclasses import dataclass

from bilevel_core.solvers.double_loop import DoubleLoop
from bilevel_core.solvers.series import neumann
from bilevel_core.solvers.solver import COUNT, POSITIVE, option


@dataclass(frozen=True, kw_only=True)
class StocBiO(DoubleLoop):
    Q: int = option(15, COUNT)
    eta_series: float = option(0.3, POSITIVE)

    def solve(self, problem, x, y, f_y, state, generator):
        batches = tuple(self.lower_batch(problem, generator) for _ in range(self.Q))
        return neumann(problem, x, y, f_y, batches, self.eta_series)
