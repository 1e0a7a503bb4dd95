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

from bilevel_book.methods.estimates import truncated
from bilevel_book.methods.mrbo import PairMomentum
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import COUNT, STEP, method, option


@method
class SUSTAIN(PairMomentum):
    is_random = True

    alpha: Step = option(Power(0.1), STEP, "step of x")
    K: int = option(12, COUNT, "the product has fewer factors than this")

    def factors(self, generator):
        return int(torch.randint(self.K, (), generator=generator))

    def solve(self, problem, at, r, batches):
        return truncated(problem, at.x, at.y, r, batches, self.eta_series, self.K)
