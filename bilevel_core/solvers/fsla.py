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

from bilevel_core.directions import ThreeSamples, grad_y, hessian_vector, surrogate
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.estimates import recursive_momentum
from bilevel_core.solvers.solver import POSITIVE, UNIT, SingleLoop, State, method, option


@dataclass(frozen=True)
class FSLAState(State):
    """Also the previous x and the estimator h."""

    x_before: Tensor
    h: Tensor


@method
class FSLA(SingleLoop[FSLAState]):
    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of y")
    lam: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of v")
    eta: Rate = option(Power(1.0, 8.0, 1 / 2, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")

    def remember(self, state: State) -> FSLAState:
        return FSLAState(**vars(state), x_before=state.x, h=torch.zeros_like(state.x))

    def update(self, problem: BilevelProblem, state: FSLAState, generator: torch.Generator) -> FSLAState:
        x = state.x
        alpha, beta, lam = self.at(state.t, "alpha", "beta", "lam")
        samples = self.draw(problem, generator)
        zeta, psi, xi = samples if isinstance(samples, ThreeSamples) else (samples,) * 3

        y = state.y - beta * grad_y(problem.lower, x, state.y, zeta.lower)
        residual = hessian_vector(problem, x, y, state.v, psi.lower) - grad_y(problem.upper, x, y, psi.upper)
        v = state.v - lam * residual
        h = recursive_momentum(
            surrogate(problem, x, y, v, xi),
            state.h,
            lambda: surrogate(problem, state.x_before, state.y, state.v, xi),
            self.momentum_weight(state.t),
        )
        return state.moved(x=x - alpha * h, y=y, v=v, x_before=x, h=h)
