"""F3SA: F2SA in a single loop, each of its six gradients averaged by recursive momentum.

Kwon, Kwon, Wright, Nowak (2023), "A fully first-order method for stochastic bilevel optimization", Algorithm 2.

    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for each gradient d below
    z_{t+1} = z_t - gamma h[grad_y g(x_t, z_t)]
    y_{t+1} = y_t - beta (h[grad_y f(x_t, y_t)] + lambda_t h[grad_y g(x_t, y_t)])
    x_{t+1} = x_t - alpha (h[grad_x f(x_t, y')] + lambda_t (h[grad_x g(x_t, y')] - h[grad_x g(x_t, z')]))

with y' = y_{t+1}, z' = z_{t+1}. d(now) and d(before) are on the same samples. lambda is `multiplier`; it stays
outside the estimators, so that a growing lambda does not disturb their memory. Cost of a step: 12 gradients (6 at
t = 0). v is reported as lambda (z - y). No public code of F3SA is known to us.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.directions import Loss, grad_x, grad_y
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.estimates import recursive_momentum
from bilevel_core.solvers.solver import POSITIVE, UNIT, Solver, State, draw, method, option

Gradient = Callable[[Loss, Tensor, Tensor, Any], Tensor]  # grad_x or grad_y


class Triple(NamedTuple):
    """x, y and z at one time."""

    x: Tensor
    y: Tensor
    z: Tensor


class Gradients(NamedTuple):
    """The gradients, in x or in y, of f at y, of g at y and of g at z."""

    f: Tensor
    g: Tensor
    g_at_z: Tensor


@dataclass(frozen=True)
class F3SAState(State):
    """Also z, the previous point, and the six estimators."""

    z: Tensor
    before: Triple
    h_y: Gradients
    h_x: Gradients


@method
class F3SA(Solver[F3SAState]):
    alpha: Rate = option(Power(0.1), POSITIVE, "step of x")
    beta: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of y")
    gamma: Rate = option(Power(0.5), POSITIVE, "step of z")
    multiplier: Rate = option(Power(1.0, p=-1 / 4), POSITIVE, "lambda, the price of the lower level")
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")

    def remember(self, state: State) -> F3SAState:
        h_y, h_x = (Gradients(*(torch.zeros_like(point),) * 3) for point in (state.y, state.x))
        return F3SAState(**vars(state), z=state.y, before=Triple(state.x, state.y, state.y), h_y=h_y, h_x=h_x)

    def update(self, problem: BilevelProblem, state: F3SAState, generator: torch.Generator) -> F3SAState:
        alpha, beta, gamma, lam = self.at(state.t, "alpha", "beta", "gamma", "multiplier")

        def averaged(grad: Gradient, past: Gradients, now: Triple, before: Triple) -> Gradients:
            samples = draw(problem, generator)
            d = gradients(grad, problem, now, samples)
            then = partial(gradients, grad, problem, before, samples)
            return recursive_momentum(d, past, then, self.momentum_weight(state.t))

        here, before = Triple(state.x, state.y, state.z), state.before
        h_y = averaged(grad_y, state.h_y, here, before)
        z = state.z - gamma * h_y.g_at_z
        y = state.y - beta * (h_y.f + lam * h_y.g)
        # The x-estimators follow (x_t, y_{t+1}, z_{t+1}); their last point was (x_{t-1}, y_t, z_t).
        h_x = averaged(grad_x, state.h_x, Triple(here.x, y, z), Triple(before.x, here.y, here.z))
        x = state.x - alpha * (h_x.f + lam * (h_x.g - h_x.g_at_z))
        return state.moved(x=x, y=y, v=lam * (z - y), z=z, before=here, h_y=h_y, h_x=h_x)


def gradients(grad: Gradient, problem: BilevelProblem, at: Triple, samples: Samples) -> Gradients:
    """The three gradients at one point, in y with `grad_y`, in x with `grad_x`."""
    f = grad(problem.upper, at.x, at.y, samples.upper)
    g, g_at_z = (grad(problem.lower, at.x, y, samples.lower) for y in (at.y, at.z))
    return Gradients(f, g, g_at_z)
