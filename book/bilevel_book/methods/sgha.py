"""SGHA: the three directions of FdeHBO, paired the other way: a walk to the saddle of one Lagrangian.

Gu, Wu, Yang (2026), "SGHA: a single-loop fully first-order algorithm for nonconvex-strongly-convex bilevel
optimization", Algorithm 2 (Stoc-SGHA).

    L(x, y, v) = f(x, y) - <v, grad_y g(x, y)>:      d_x = dL/dx,   -d_v = dL/dy,   -d_y = dL/dv

    x_{t+1} = x_t - alpha (d_x + hold (x_t - x'_t))                down L, held near x'
    y_{t+1} = y_t - beta (-d_v + hold (y_t - y'_t))                down L, held near y'
    v_{t+1} = project(v_t - lam (d_y + damp v_t), r_v)             up L: v is the price of grad_y g = 0
    x'_{t+1} = x'_t + follow (x_{t+1} - x'_t),   y' likewise       so that at rest nothing is held

with H v and J v by central differences. FdeHBO moves y along d_y and v along d_v instead. Without the hold y and v turn
around the saddle where f does not bend upwards in y. damp makes grad_y g = -damp v at rest, a small bias.
Cost of a step: 7 gradients, no second derivative. Its v, lambda there, has the other sign; hold, damp, follow and r_v
are its p_w, p_lambda, beta and C_lambda. Read: sections 1 to 5; no public code is known to us.
"""

from dataclasses import dataclass

import torch

from bilevel_book.methods.estimates import Pair
from bilevel_core.directions import project
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import POSITIVE, RADIUS, STEP, UNIT, SingleLoop, State, method, option


@dataclass(frozen=True)
class SGHAState(State):
    """Also x' and y', which follow x and y."""

    slow: Pair


@method
class SGHA(SingleLoop[SGHAState]):
    state_type = SGHAState

    alpha: Step = option(Power(0.07), STEP, "step of x")
    beta: Step = option(Power(1.0), STEP, "step of y")
    lam: Step = option(Power(0.3), STEP, "step of v")
    hold: float = option(1.0, POSITIVE, "how strongly x and y are held")
    damp: float = option(1e-3, POSITIVE, "how strongly v is drawn to 0")
    follow: float = option(0.5, UNIT, "the part of their way to x and y that x' and y' go in a step")
    delta: Rate | None = option(0.01, STEP.or_none(), "half the distance of the two gradients, in units of v")
    r_v: float = option(100.0, RADIUS, "radius of the ball that v is kept in")

    def init_memory(self, state):
        return SGHAState(**vars(state), slow=Pair(state.x, state.y)).replace(v=project(state.v, self.r_v))

    @classmethod
    def suggestions(cls, common, m):
        """The saddle is stable for lam L^2 < hold, and x for alpha hold < 2."""
        step = common["lam"][0]
        held = min(common["alpha"], (step, "1 / (2 hold)"))
        return common | {"hold": (m.L, "L"), "alpha": held, "lam": (step / 2, "1 / (4 L)")}

    def update(self, problem, state, generator):
        x, y, v, slow = state.x, state.y, state.v, state.slow
        d = self.directions(problem, x, y, v, self.draw(problem, generator), state.t)
        pull_x, pull_y = self.hold * (x - slow.x), self.hold * (y - slow.y)
        state = self.move(problem, state, x=d.x + pull_x, y=pull_y - d.v, v=d.y + self.damp * v)
        slow = Pair(torch.lerp(slow.x, state.x, self.follow), torch.lerp(slow.y, state.y, self.follow))
        return state.replace(v=project(state.v, self.r_v), slow=slow)
