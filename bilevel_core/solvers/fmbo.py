"""FMBO: single loop, exact products, recursive momentum on all three variables, v kept in a ball.

Yang, Xiao, Ji (2023), "Achieving O(eps^-1.5) complexity in Hessian/Jacobian-free stochastic bilevel
optimization", Algorithm 2, equations def:htg, def:htR, def:htf.

    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),      h_0 = d_0(now)
    y_{t+1} = y_t - beta_t h^g_t
    v_{t+1} = project(v_t - lam_t h^R_t, r_v)
    x_{t+1} = x_t - alpha_t h^f_t

d_t(now) and d_t(before) are the directions at (x_t, y_t, v_t) and (x_{t-1}, y_{t-1}, v_{t-1}) on the SAME samples.
Cost of a step: 6 gradients, 2 H v, 2 J v (half of it at t = 0, or wherever eta_t = 1).

Departures from the print: h^R is built from its own past (def:htR prints h^g); eta_0 = 1; ||v_0|| <= r_v.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_core.directions import Directions, ThreeSamples, exact, project
from bilevel_core.problem import BilevelProblem, Samples, check_vector
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.solver import POSITIVE, RADIUS, UNIT, SingleLoop, State, generator_at, option


class Point(NamedTuple):
    x: Tensor
    y: Tensor
    v: Tensor


@dataclass(frozen=True)
class MomentumState(State):
    """Also the previous point and the estimators h."""

    before: Point
    h: Directions


@dataclass(frozen=True, kw_only=True)
class FMBO(SingleLoop):
    alpha: Rate = option(Power(0.2), POSITIVE)
    beta: Rate = option(Power(0.5), POSITIVE)
    lam: Rate = option(Power(0.5), POSITIVE)
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT)
    r_v: float = option(100.0, RADIUS)

    def _first(self, problem: BilevelProblem, state: State) -> MomentumState:
        norm = torch.linalg.vector_norm(state.v).item()
        if norm > self.r_v:
            raise ValueError(f"the first v must lie in the ball of radius r_v = {self.r_v}, its norm is {norm:.4g}")
        zero = Directions(torch.zeros_like(state.y), torch.zeros_like(state.v), torch.zeros_like(state.x))
        return MomentumState(**vars(state), before=Point(state.x, state.y, state.v), h=zero)

    def directions(self, problem: BilevelProblem, point: Point, samples: Samples | ThreeSamples, t: int) -> Directions:
        return exact(problem, *point, samples)

    def step(self, problem: BilevelProblem, state: MomentumState) -> MomentumState:
        t, point, generator = state.t, Point(state.x, state.y, state.v), generator_at(state)
        for name, now, before in zip("xyv", point, state.before, strict=True):
            check_vector(name, now, like=before)
        alpha, beta, lam, eta, r_v = self.at(t, "alpha", "beta", "lam", "eta", "r_v")
        if t == 0:
            eta = 1.0

        # 1. The three directions here and at the previous point, on the same samples.
        samples = self.draw(problem, generator)
        h = self.directions(problem, point, samples, t)
        # 2. Recursive momentum (nothing of the past is left when eta = 1).
        if eta < 1:
            before = self.directions(problem, state.before, samples, t)
            h = Directions(*(d + (1 - eta) * (past - b) for d, past, b in zip(h, state.h, before, strict=True)))
        # 3. One step of each variable, all from the time-t point.
        x, y, v = point
        return replace(
            state,
            y=y - beta * h.y,
            v=project(v - lam * h.v, r_v),
            x=x - alpha * h.x,
            t=t + 1,
            rng=generator.get_state(),
            before=point,
            h=h,
        )
