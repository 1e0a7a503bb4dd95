"""SRBA and SPABA: the three directions on the whole data now and then, and carried along by differences in between.

Dagréou, Moreau, Vaiter, Ablin (2024), "A lower bound and a near-optimal algorithm for bilevel empirical risk
minimization", Algorithm 1 (SRBA); Chu, Xu, Yao, Zhang (2024), "SPABA: a single-loop and probabilistic stochastic
bilevel algorithm achieving optimal sample complexity", Algorithm 1.

    h_t = d(now) on the whole data            SRBA: every `period` steps;  SPABA: with probability `chance`
    h_t = h_{t-1} + d_t(now) - d_t(before)    else, both on the same draw
    y_{t+1} = y_t - beta h^g_t,   v_{t+1} = v_t - lam h^R_t,   x_{t+1} = x_t - alpha h^f_t

It is FMBO without the ball and with eta = 0, and a fresh start instead of forgetting. Cost of a step: 3 gradients,
1 H v, 1 J v on the whole data, or twice as many calls on a draw.
"""

import torch

from bilevel_core.directions import Directions, Point, exact_at
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Step
from bilevel_core.solvers.estimates import recursive_momentum
from bilevel_core.solvers.fmbo import MomentumState
from bilevel_core.solvers.solver import COUNT, POSITIVE, UNIT, Solver, State, draw, method, option


@method
class SRBA(Solver[MomentumState]):
    alpha: Step = option(0.05, POSITIVE, "step of x")
    beta: Step = option(0.2, POSITIVE, "step of y")
    lam: Step = option(0.2, POSITIVE, "step of v")
    period: int = option(20, COUNT, "steps from one look at the whole data to the next")

    def remember(self, state: State) -> MomentumState:
        zero = Directions(torch.zeros_like(state.y), torch.zeros_like(state.v), torch.zeros_like(state.x))
        return MomentumState(**vars(state), before=Point(state.x, state.y, state.v), h=zero)

    def fresh(self, t: int, generator: torch.Generator) -> bool:
        """Whether this step looks at the whole data."""
        return t % self.period == 0

    def update(self, problem: BilevelProblem, state: MomentumState, generator: torch.Generator) -> MomentumState:
        point, fresh = Point(state.x, state.y, state.v), self.fresh(state.t, generator)
        points = [point] if fresh else [point, state.before]
        d, *then = exact_at(problem, points, draw(problem, generator, full=fresh))
        h = d if fresh else recursive_momentum(d, state.h, then[0], eta=0.0)
        return self.move(problem, state, y=h.y, v=h.v, x=h.x).moved(before=point, h=h)


@method
class SPABA(SRBA):
    """SRBA with a coin in the place of the period (Chu, Xu, Yao, Zhang, 2024); `period` is not used."""

    chance: float = option(0.05, UNIT, "probability of a look at the whole data; at t = 0 there always is one")

    def fresh(self, t: int, generator: torch.Generator) -> bool:
        return bool(torch.rand((), generator=generator) < self.chance) or t == 0
