"""SUSTAIN: single loop in x and y with recursive momentum on both, and a product of random length at every point.

Khanduri, Zeng, Hong, Wai, Wang, Yang (2021), "A near-optimal algorithm for stochastic bilevel optimization via
double-momentum", Algorithm 1.

    G = grad_x f - J v,   v = K gamma prod_{j=1}^{k} (I - gamma H_j) grad_y f,   k uniform on 0..K-1
    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for d = grad_y g and d = G
    y_{t+1} = y_t - beta_t h_y,   x_{t+1} = x_t - alpha_t h_x

with the same k and the same batches at both points. gamma is `eta_series`; the paper has 1 / L. Cost of a step: 6
gradients, K - 1 H v on average, 2 J v (half at t = 0).
"""

import torch
from torch import Generator, Tensor

from bilevel_book.methods.estimates import Pair, PairSolver, PairState, surrogate, truncated
from bilevel_core.directions import losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import COUNT, POSITIVE, UNIT, draw, lower_batches, method, option, recursive_momentum


@method
class SUSTAIN(PairSolver):
    alpha: Step = option(Power(0.1), POSITIVE, "step of x")
    beta: Step = option(Power(0.5), POSITIVE, "step of y")
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")
    K: int = option(12, COUNT, "the product has fewer factors than this")
    eta_series: float = option(0.3, POSITIVE, "gamma of the product, below 2 / L")

    def update(self, problem: BilevelProblem, state: PairState, generator: Generator) -> PairState:
        here, eta = Pair(state.x, state.y), self.momentum_weight(state.t)
        k = int(torch.randint(self.K, (), generator=generator))
        samples, batches = draw(problem, generator), list(lower_batches(problem, generator, k))

        def estimate(at: Pair) -> tuple[Pair, Tensor]:
            f, g = losses(problem, at.x, samples)
            G, v = surrogate(f, g, at.y, lambda r: truncated(problem, *at, r, batches, self.eta_series, self.K))
            return Pair(G, g.grad_y(at.y)), v

        h, v = estimate(here)
        if eta < 1:
            h = recursive_momentum(h, state.h, estimate(state.before)[0], eta)
        return self.move(problem, state, x=h.x, y=h.y).moved(v=v, before=here, h=h)
