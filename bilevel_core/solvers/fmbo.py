"""FMBO: single loop, exact products by default, recursive momentum on all three variables, v kept in a ball.

Yang, Xiao, Ji (2023), "Achieving O(eps^-1.5) complexity in Hessian/Jacobian-free stochastic bilevel
optimization", Algorithm 2, equations def:htg, def:htR, def:htf.

    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),      h_0 = d_0(now)
    y_{t+1} = y_t - beta_t h^g_t
    v_{t+1} = project(v_t - lam_t h^R_t, r_v)
    x_{t+1} = x_t - alpha_t h^f_t

h^g, h^R and h^f estimate d_y, d_v and d_x (in the code h.y, h.v and h.x). d_t(now) and d_t(before) are the
directions at (x_t, y_t, v_t) and (x_{t-1}, y_{t-1}, v_{t-1}) on the SAME samples.
Cost of a step: 6 gradients, 2 H v, 2 J v (half of it at t = 0, or wherever eta_t = 1).

Departures from the print: h^R is built from its own past (def:htR prints h^g); eta_0 = 1; v_0 is projected too.
With r_v = inf it is SRMBA, whose public code (solvers/srmba.py of SUSTech-Optimization/SPABA) has three eta.
"""

from dataclasses import dataclass
from typing import Self

import torch

from bilevel_core.directions import Directions, Point, project
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import RADIUS, STEP, UNIT, SingleLoop, State, method, option, recursive_momentum


@dataclass(frozen=True)
class MomentumState(State):
    """Also the previous point and the estimators h."""

    before: Point
    h: Directions

    @classmethod
    def first(cls, state: State) -> Self:
        """There is no past at t = 0. As eta_0 = 1, no step reads the zeros."""
        h = Directions(y=torch.zeros_like(state.y), v=torch.zeros_like(state.v), x=torch.zeros_like(state.x))
        return cls(**vars(state), before=Point(state.x, state.y, state.v), h=h)


@method
class FMBO(SingleLoop[MomentumState]):
    state_type = MomentumState

    alpha: Step = option(Power(0.2), STEP, "step of x")
    beta: Step = option(Power(0.5), STEP, "step of y")
    lam: Step = option(Power(0.5), STEP, "step of v")
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT, "1 - eta is the weight of the past; 1 is no momentum")
    r_v: float = option(100.0, RADIUS, "radius of the ball that v is kept in")

    def init_memory(self, state: State) -> MomentumState:
        return MomentumState.first(state.replace(v=project(state.v, self.r_v)))

    def update(self, problem: BilevelProblem, state: MomentumState, generator: torch.Generator) -> MomentumState:
        point, eta = Point(state.x, state.y, state.v), self.momentum_weight(state.t)
        # 1. The three directions at the present point.
        samples = self.draw(problem, generator)
        h = now = self.directions(problem, *point, samples, state.t)
        # 2. Recursive momentum, with the directions at the previous point on the same samples. At eta = 1 it is idle.
        if eta < 1:
            before = self.directions(problem, *state.before, samples, state.t)
            h = recursive_momentum(now, state.h, before, eta)
        # 3. One step of each variable, all from the time-t point.
        state = self.move(problem, state, y=h.y, v=h.v, x=h.x)
        return state.replace(v=project(state.v, self.r_v), before=point, h=h)
