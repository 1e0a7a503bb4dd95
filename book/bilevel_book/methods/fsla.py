"""FSLA: single loop, one variable after the other, momentum on x only.

Li, Gu, Huang (2022), "A fully single loop algorithm for bilevel optimization without Hessian inverse", Algorithm 1.

    y_{t+1} = y_t - beta grad_y g(x_t, y_t)
    v_{t+1} = v_t - lam (H(x_t, y_{t+1}) v_t - grad_y f(x_t, y_{t+1}))
    D_t     = grad_x f(x_t, y_{t+1}) - J(x_t, y_{t+1}) v_{t+1}
    h_t     = D_t + (1 - eta) (h_{t-1} - D'_t),    D'_t: the same samples at (x_{t-1}, y_t, v_t);    h_0 = D_0
    x_{t+1} = x_t - alpha h_t

Cost of a step: 4 gradients, 1 H v, 2 J v (3, 1, 1 at t = 0). No projection.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from bilevel_book.methods.losses import losses
from bilevel_core.directions import ThreeSamples
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.base import UNIT, State, method, option
from bilevel_core.solvers.soba import SOBA


@dataclass(frozen=True)
class FSLAState(State):
    """Also the previous x and the estimator h."""

    x_before: Tensor
    h: Tensor


@method
class FSLA(SOBA):
    state_type = FSLAState

    eta: Rate = option(Power(1.0, 8.0, 1 / 2, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")

    def init_memory(self, state):
        return FSLAState(**vars(state), x_before=state.x, h=torch.zeros_like(state.x))

    def update(self, problem, state, generator):
        x, last_y, last_v, delta = state.x, state.y, state.v, self.value("delta", state.t)
        samples = self.draw(problem, generator)
        three = samples if isinstance(samples, ThreeSamples) else (samples,)
        (_, g), (f_v, g_v), (f_x, g_x) = [losses(problem, x, each) for each in three] * (3 // len(three))

        state = self.move(problem, state, y=g.grad_y(last_y))
        state = self.move(problem, state, v=g_v.hessian_vector(state.y, last_v, delta) - f_v.grad_y(state.y))
        h = f_x.grad_x(state.y) - g_x.jacobian_vector(state.y, state.v, delta)
        if (eta := self.momentum_weight(state.t)) < 1:
            f, g = losses(problem, state.x_before, three[-1])
            before = f.grad_x(last_y) - g.jacobian_vector(last_y, last_v, delta)
            h = torch.add(h, state.h - before, alpha=1 - eta)
        return self.move(problem, state, x=h).replace(x_before=x, h=h)
