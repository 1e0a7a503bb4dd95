"""F3SA: F2SA in a single loop, each of its six gradients averaged by recursive momentum.

Kwon, Kwon, Wright, Nowak (2023), "A fully first-order method for stochastic bilevel optimization", Algorithm 2.

    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for each gradient d below
    z_{t+1} = z_t - gamma h[grad_y g(x_t, z_t)]
    y_{t+1} = y_t - beta (h[grad_y f(x_t, y_t)] + lambda_t h[grad_y g(x_t, y_t)])
    x_{t+1} = x_t - alpha (h[grad_x f(x_t, y_{t+1})] + lambda_t (h[grad_x g(x_t, y_{t+1})] - h[grad_x g(x_t, z_{t+1})]))

d(now) and d(before) are on the same samples. lambda is `multiplier`; it stays outside the estimators, so that a
growing lambda does not disturb their memory. Cost of a step: 12 gradients (6 at t = 0). v is reported as lambda (z
- y). No public code of F3SA is known to us.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_core.directions import grad_x, grad_y
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.solver import POSITIVE, UNIT, Solver, State, draw, generator_at, option


class Lower(NamedTuple):
    """Estimators of the gradients in y: of g at z, of f at y, of g at y."""

    g_z: Tensor
    f_y: Tensor
    g_y: Tensor


class Upper(NamedTuple):
    """Estimators of the gradients in x: of f at y, of g at y, of g at z."""

    f: Tensor
    g_y: Tensor
    g_z: Tensor


class Triple(NamedTuple):
    x: Tensor
    y: Tensor
    z: Tensor


@dataclass(frozen=True)
class F3SAState(State):
    z: Tensor
    before: Triple
    lower: Lower
    upper: Upper


@dataclass(frozen=True, kw_only=True)
class F3SA(Solver):
    alpha: Rate = option(Power(0.1), POSITIVE)
    beta: Rate = option(Power(0.2, p=1 / 2), POSITIVE)
    gamma: Rate = option(Power(0.5), POSITIVE)
    multiplier: Rate = option(Power(1.0, p=-1 / 4), POSITIVE)
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT)

    def _first(self, problem: BilevelProblem, state: State) -> F3SAState:
        zero_y, zero_x = torch.zeros_like(state.y), torch.zeros_like(state.x)
        return F3SAState(
            **vars(state),
            z=state.y,
            before=Triple(state.x, state.y, state.y),
            lower=Lower(zero_y, zero_y, zero_y),
            upper=Upper(zero_x, zero_x, zero_x),
        )

    def step(self, problem: BilevelProblem, state: F3SAState) -> F3SAState:
        generator, here = generator_at(state), Triple(state.x, state.y, state.z)
        alpha, beta, gamma, lam, eta = self.at(state.t, "alpha", "beta", "gamma", "multiplier", "eta")
        eta = 1.0 if state.t == 0 else eta

        def recursive(gradients, past, now: Triple, before: Triple):
            samples = draw(problem, generator)
            h = gradients(problem, now, samples)
            if eta == 1:
                return h
            old = gradients(problem, before, samples)
            return type(h)(*(d + (1 - eta) * (p - o) for d, p, o in zip(h, past, old, strict=True)))

        lower = recursive(gradients_in_y, state.lower, here, state.before)
        z = state.z - gamma * lower.g_z
        y = state.y - beta * (lower.f_y + lam * lower.g_y)
        # The x-estimators follow (x_t, y_{t+1}, z_{t+1}); their last point was (x_{t-1}, y_t, z_t).
        upper = recursive(gradients_in_x, state.upper, Triple(here.x, y, z), Triple(state.before.x, here.y, here.z))
        x = state.x - alpha * (upper.f + lam * (upper.g_y - upper.g_z))
        return replace(
            state,
            x=x,
            y=y,
            v=lam * (z - y),
            z=z,
            t=state.t + 1,
            rng=generator.get_state(),
            before=here,
            lower=lower,
            upper=upper,
        )


def gradients_in_y(problem: BilevelProblem, at: Triple, samples: Samples) -> Lower:
    return Lower(
        grad_y(problem.lower, at.x, at.z, samples.lower),
        grad_y(problem.upper, at.x, at.y, samples.upper),
        grad_y(problem.lower, at.x, at.y, samples.lower),
    )


def gradients_in_x(problem: BilevelProblem, at: Triple, samples: Samples) -> Upper:
    return Upper(
        grad_x(problem.upper, at.x, at.y, samples.upper),
        grad_x(problem.lower, at.x, at.y, samples.lower),
        grad_x(problem.lower, at.x, at.z, samples.lower),
    )
