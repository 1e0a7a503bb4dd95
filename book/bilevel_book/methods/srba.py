"""SRBA and SPABA: the three directions on all the data now and then, carried along by differences in between.

Dagréou, Moreau, Vaiter, Ablin (2024), "A lower bound and a near-optimal algorithm for bilevel empirical risk
minimization", AISTATS (SRBA); Chu, Xu, Yao, Zhang (2024), "SPABA: a single-loop and probabilistic stochastic bilevel
algorithm achieving optimal sample complexity", ICML.

    h_t = d(now) on all the data              SRBA: every `period` steps;   SPABA: with probability `chance`
    h_t = h_{t-1} + d_t(now) - d_t(before)    else, both on the same draw
    y_{t+1} = y_t - beta h^g_t,   v_{t+1} = v_t - lam h^R_t,   x_{t+1} = x_t - alpha h^f_t

It is FMBO with eta = 0 and no ball: what the draws add to h is forgotten all at once, at the next look at all the data.
Cost of a step: 3 gradients, 1 H v, 1 J v on all the data, or twice as many on a draw.
Read: public code, solvers/srba.py of benchopt/benchmark_bilevel and solvers/SPABA.py of SUSTech-Optimization/SPABA; the
coin of the second is tossed once, when its loop is compiled, and not at every step as here.
"""

from abc import abstractmethod

import torch
from torch import Tensor

from bilevel_core.directions import Point
from bilevel_core.problem import BilevelProblem, full_samples
from bilevel_core.schedules import Step
from bilevel_core.solvers.base import COUNT, STEP, UNIT, SingleLoop, draw, method, option, recursive_momentum
from bilevel_core.solvers.fmbo import MomentumState


@method
class _Refreshed(SingleLoop[MomentumState]):
    state_type = MomentumState

    alpha: Step = option(0.1, STEP, "step of x")
    beta: Step = option(0.2, STEP, "step of y")
    lam: Step = option(0.2, STEP, "step of v")

    @abstractmethod
    def fresh(self, t: int, generator: torch.Generator) -> bool:
        """Whether the step at time t > 0 looks at all the data."""

    def init(self, problem: BilevelProblem, seed: int = 0, **points: Tensor) -> MomentumState:
        state = super().init(problem, seed, **points)
        full_samples(problem)  # refuses one draw that would stand for all the data
        return state

    def init_memory(self, state):
        return MomentumState.first(state)

    def update(self, problem, state, generator):
        point, refresh = Point(state.x, state.y, state.v), state.t == 0 or self.fresh(state.t, generator)
        samples = draw(problem, generator, full=True) if refresh else self.draw(problem, generator)
        h = now = self.directions(problem, *point, samples, state.t)
        if not refresh:
            before = self.directions(problem, *state.before, samples, state.t)
            h = recursive_momentum(now, state.h, before, eta=0.0)
        return self.move(problem, state, y=h.y, v=h.v, x=h.x).replace(before=point, h=h)


@method
class SRBA(_Refreshed):
    period: int = option(20, COUNT, "steps from one look at all the data to the next")

    def fresh(self, t, generator):
        return t % self.period == 0


@method
class SPABA(_Refreshed):
    chance: float = option(0.05, UNIT, "probability of a look at all the data; at t = 0 there always is one")

    def fresh(self, t, generator):
        return torch.rand((), generator=generator).item() < self.chance
