"""MRBO: single loop in x and y with recursive momentum on both, and a Neumann sum at every point.

Yang, Ji, Liang (2021), "Provably faster algorithms for bilevel optimization", Algorithm 1.

    G = grad_x f - J v,   v = gamma sum_{q=0}^{Q} prod_{j=1}^{q} (I - gamma H_j) grad_y f
    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for d = grad_y g and d = G
    y_{t+1} = y_t - beta_t h_y,   x_{t+1} = x_t - alpha_t h_x

gamma is `eta_series`; d(now) and d(before) are on the same samples. Cost of a step: 6 gradients, 2 Q H v, 2 J v (half
at t = 0). The paper lets the momentum weights of x and y differ; here they are one. Its released code resets the decay
at every step and moves y twice; this follows the paper.
"""

from torch import Generator, Tensor

from bilevel_book.methods.estimates import Pair, PairSolver, PairState, neumann, surrogate
from bilevel_core.directions import losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import COUNT, POSITIVE, UNIT, draw, lower_batches, method, option, recursive_momentum


@method
class MRBO(PairSolver):
    alpha: Step = option(Power(0.2), POSITIVE, "step of x")
    beta: Step = option(Power(0.5), POSITIVE, "step of y")
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")
    Q: int = option(15, COUNT, "factors of the longest product in the sum")
    eta_series: float = option(0.3, POSITIVE, "gamma of the sum, below 2 / L")

    def update(self, problem: BilevelProblem, state: PairState, generator: Generator) -> PairState:
        here, eta = Pair(state.x, state.y), self.momentum_weight(state.t)
        samples, batches = draw(problem, generator), list(lower_batches(problem, generator, self.Q))

        def estimate(at: Pair) -> tuple[Pair, Tensor]:
            f, g = losses(problem, at.x, samples)
            G, v = surrogate(f, g, at.y, lambda r: neumann(problem, *at, r, batches, self.eta_series))
            return Pair(G, g.grad_y(at.y)), v

        h, v = estimate(here)
        if eta < 1:
            h = recursive_momentum(h, state.h, estimate(state.before)[0], eta)
        return self.move(problem, state, x=h.x, y=h.y).moved(v=v, before=here, h=h)
