"""F3SA: F2SA in a single loop, each of its six gradients averaged by recursive momentum.

Kwon, Kwon, Wright, Nowak (2023), "A fully first-order method for stochastic bilevel optimization", Algorithm 2.

    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for each gradient d below
    z_{t+1} = z_t - gamma h[grad_y g(x_t, z_t)]
    y_{t+1} = y_t - beta (h[grad_y f(x_t, y_t)] + ell_t h[grad_y g(x_t, y_t)])
    x_{t+1} = x_t - alpha (h[grad_x f(x_t, y')] + ell_t (h[grad_x g(x_t, y')] - h[grad_x g(x_t, z')]))

with y' = y_{t+1}, z' = z_{t+1}. d(now) and d(before) are on the same samples. ell is `multiplier`; it stays
outside the estimators, so that a growing ell does not disturb their memory. h is linear, so the last two in x are
kept as one, for the difference. Cost of a step: 12 gradients (6 at t = 0). v is reported as ell (z - y). No public
code of F3SA is known to us.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_book.methods.f2sa import F2SAState, Penalty
from bilevel_book.methods.losses import losses
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import STEP, UNIT, draw, method, option, recursive_momentum


class Triple(NamedTuple):
    """x, y and z at one time."""

    x: Tensor
    y: Tensor
    z: Tensor


class InY(NamedTuple):
    """grad_y f(x, y), grad_y g(x, y) and grad_y g(x, z)."""

    f: Tensor
    g: Tensor
    g_at_z: Tensor


class InX(NamedTuple):
    """grad_x f(x, y) and grad_x g(x, y) - grad_x g(x, z)."""

    f: Tensor
    g: Tensor


@dataclass(frozen=True)
class F3SAState(F2SAState):
    """Also the previous point, and the estimators."""

    before: Triple
    h_y: InY
    h_x: InX


@method
class F3SA(Penalty):
    state_type = F3SAState

    alpha: Step = option(Power(0.1), STEP, "step of x")
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")

    def init_memory(self, state):
        h_y, h_x = InY(*[torch.zeros_like(state.y)] * 3), InX(*[torch.zeros_like(state.x)] * 2)
        return F3SAState(**vars(state), z=state.y, before=Triple(state.x, state.y, state.y), h_y=h_y, h_x=h_x)

    def update(self, problem, state, generator):
        here, before = Triple(state.x, state.y, state.z), state.before
        eta, ell = self.momentum_weight(state.t), self.value("multiplier", state.t)

        samples = draw(problem, generator)
        h_y = in_y(problem, here, samples)
        if eta < 1:
            h_y = recursive_momentum(h_y, state.h_y, in_y(problem, before, samples), eta)
        state = self.move(problem, state, z=h_y.g_at_z, y=h_y.f + ell * h_y.g)
        # The x-estimators follow (x_t, y_{t+1}, z_{t+1}); their last point was (x_{t-1}, y_t, z_t).
        samples = draw(problem, generator)
        h_x = in_x(problem, Triple(here.x, state.y, state.z), samples)
        if eta < 1:
            h_x = recursive_momentum(h_x, state.h_x, in_x(problem, Triple(before.x, here.y, here.z), samples), eta)
        state = self.move(problem, state, x=h_x.f + ell * h_x.g)
        return state.replace(v=ell * (state.z - state.y), before=here, h_y=h_y, h_x=h_x)


def in_y(problem: BilevelProblem, at: Triple, samples: Samples) -> InY:
    """The gradients in y at one point."""
    f, g = losses(problem, at.x, samples)
    return InY(f.grad_y(at.y), g.grad_y(at.y), g.grad_y(at.z))


def in_x(problem: BilevelProblem, at: Triple, samples: Samples) -> InX:
    """The gradients in x at one point."""
    f, g = losses(problem, at.x, samples)
    return InX(f.grad_x(at.y), g.grad_x(at.y, minus=at.z))
