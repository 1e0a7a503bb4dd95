"""MRBO: single loop in x and y with recursive momentum on both, and a Neumann sum at every point.

Yang, Ji, Liang (2021), "Provably faster algorithms for bilevel optimization", Algorithm 1.

    G = grad_x f - J v,   v = gamma sum_{q=0}^{Q} prod_{j=1}^{q} (I - gamma H_j) grad_y f
    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for d = grad_y g and d = G
    y_{t+1} = y_t - beta_t h_y,   x_{t+1} = x_t - alpha_t h_x

gamma is `eta_series`; d(now) and d(before) are on the same samples. Cost of a step: 6 gradients, 2 Q H v, 2 J v (half
at t = 0). The paper lets the momentum weights of x and y differ; here they are one. Its released code resets the decay
at every step and moves y twice; this follows the paper.
"""

from typing import Any

from torch import Generator, Tensor

from bilevel_book.methods.estimates import Pair, PairMomentum, neumann
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.base import COUNT, method, option


@method
class MRBO(PairMomentum):
    Q: int = option(15, COUNT, "factors of the longest product in the sum")

    def factors(self, generator: Generator) -> int:
        return self.Q

    def solve(self, problem: BilevelProblem, at: Pair, r: Tensor, batches: list[Any]) -> Tensor:
        return neumann(problem, at.x, at.y, r, batches, self.eta_series)
