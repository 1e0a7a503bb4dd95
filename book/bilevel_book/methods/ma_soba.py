"""MA-SOBA: SOBA whose x follows a moving average of its direction.

Chen, Xiao, Balasubramanian (2024), "Optimal algorithms for stochastic bilevel optimization under relaxed smoothness
conditions", JMLR 25.

    y_{t+1} = y_t - beta_t d_y,   v_{t+1} = v_t - lam_t d_v
    h_t = (1 - eta_t) h_{t-1} + eta_t d_x,   h_0 = d_x,   x_{t+1} = x_t - alpha_t h_t

Cost of a step: 3 gradients, 1 H v, 1 J v, half of FMBO's: the average still holds what it saw at earlier points, where
FMBO's corrects it. With alpha = Normalised(...) the step of x is that of SLIP (Gong, Hao, Liu, 2024).
Read: public code (SUSTech-Optimization/SPABA, solvers/masoba.py), not the paper's text; h starts at 0 there.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.base import UNIT, State, method, option
from bilevel_core.solvers.soba import SOBA


@dataclass(frozen=True)
class MASOBAState(State):
    """Also h, the average."""

    h: Tensor


@method
class MASOBA(SOBA):
    state_type = MASOBAState

    eta: Rate = option(Power(2.0, 8.0, 1 / 2, cap=1.0), UNIT, "weight of the newest direction, 1 is no average")

    def init_memory(self, state):
        return MASOBAState(**vars(state), h=torch.zeros_like(state.x))

    def update(self, problem, state, generator):
        d = self.directions(problem, state.x, state.y, state.v, self.draw(problem, generator), state.t)
        h = torch.lerp(state.h, d.x, self.momentum_weight(state.t))
        return self.move(problem, state, y=d.y, v=d.v, x=h).replace(h=h)
