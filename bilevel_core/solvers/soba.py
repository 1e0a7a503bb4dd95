"""SOBA: one plain stochastic step of each variable along its direction.

Dagréou, Ablin, Vaiter, Moreau (2022), "A framework for bilevel optimization that enables stochastic and
global variance reduction algorithms", Algorithm 1.

    y_{t+1} = y_t - beta_t d_y,   v_{t+1} = v_t - lam_t d_v,   x_{t+1} = x_t - alpha_t d_x

Cost of a step: 3 gradients, 1 H v, 1 J v. It is FMBO with eta = 1 and no projection.
Here v approximates H^-1 grad_y f; the paper of SOBA uses the opposite sign, and one step size for y and v.
"""

from torch import Generator

from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import STEP, SingleLoop, State, method, option


@method
class SOBA(SingleLoop[State]):
    alpha: Step = option(Power(0.2, p=1 / 2), STEP, "step of x")
    beta: Step = option(Power(0.5, p=1 / 2), STEP, "step of y")
    lam: Step = option(Power(0.5, p=1 / 2), STEP, "step of v")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        d = self.directions(problem, state.x, state.y, state.v, self.draw(problem, generator), state.t)
        return self.move(problem, state, y=d.y, v=d.v, x=d.x)
