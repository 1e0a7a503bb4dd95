"""SUSTAIN: single loop in x and y with recursive momentum on both, and a product of random length at every point.

Khanduri, Zeng, Hong, Wai, Wang, Yang (2021), "A near-optimal algorithm for stochastic bilevel optimization via
double-momentum", Algorithm 1.

    G = grad_x f - J v,   v = K eta_series prod_{j=1}^{k} (I - eta_series H_j) grad_y f,   k uniform on 0..K-1
    and the update of MRBO, with the same k and the same batches at both points.

The paper has eta_series = 1 / L. Cost of a step: 6 gradients, K - 1 H v on average, 2 J v (half at t = 0).
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.mrbo import RecursiveMomentum
from bilevel_core.solvers.series import SeriesSamples, draw_series, truncated, uniform
from bilevel_core.solvers.solver import COUNT, POSITIVE, option


@dataclass(frozen=True, kw_only=True)
class SUSTAIN(RecursiveMomentum):
    alpha: Rate = option(Power(0.1), POSITIVE)
    K: int = option(12, COUNT)

    def draw(self, problem: BilevelProblem, generator: torch.Generator) -> SeriesSamples:
        return draw_series(problem, generator, uniform(generator, self.K))

    def solve(self, problem: BilevelProblem, x: Tensor, y: Tensor, f_y: Tensor, samples: SeriesSamples) -> Tensor:
        return truncated(problem, x, y, f_y, samples.hessians, self.eta_series, self.K)
