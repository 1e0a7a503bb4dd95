"""SGHA: the same three directions as FdeHBO, paired the other way, as a walk on the saddle of one Lagrangian.

Gu, Wu, Yang (2026), "Stoc-SGHA" (read in summary: the way it smooths is ours).

    L(x, y, v) = f(x, y) - <v, grad_y g(x, y)>:      d_x = dL/dx,   -d_v = dL/dy,   -d_y = dL/dv

    y_{t+1} = y_t - beta (p (y_t - z_t) - d_v)       down L, held near z
    v_{t+1} = project(v_t - lam d_y, r_v)            up L: v is the price of grad_y g = 0
    x_{t+1} = x_t - alpha d_x
    z_{t+1} = z_t + gamma (y_t - z_t)                z follows y, so that at rest nothing is held

with H v and J v by central differences. FdeHBO moves y along d_y and v along d_v. Without the hold, p = 0, y and v turn
around the saddle and come no nearer. Cost of a step: 7 gradients, no second derivative.
"""

from dataclasses import dataclass

from torch import Generator, Tensor

from bilevel_core.directions import finite_difference, project
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.solver import POSITIVE, RADIUS, SingleLoop, State, method, option


@dataclass(frozen=True)
class SGHAState(State):
    """Also z, which follows y."""

    z: Tensor


@method
class SGHA(SingleLoop[SGHAState]):
    alpha: Step = option(Power(0.05, p=1 / 2), POSITIVE, "step of x")
    beta: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of y")
    lam: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of v")
    gamma: Step = option(Power(0.2, p=1 / 2), POSITIVE, "step of z")
    p: float = option(1.0, POSITIVE, "how strongly y is held near z")
    delta: Rate = option(0.01, POSITIVE, "half the distance of the two gradients, in units of v")
    r_v: float = option(100.0, RADIUS, "radius of the ball that v is kept in")

    def remember(self, state: State) -> SGHAState:
        return SGHAState(**vars(state), z=state.y)

    def update(self, problem: BilevelProblem, state: SGHAState, generator: Generator) -> SGHAState:
        x, y, v, z = state.x, state.y, state.v, state.z
        d = finite_difference(problem, x, y, v, self.draw(problem, generator), self.value("delta", state.t))
        state = self.move(problem, state, y=self.p * (y - z) - d.v, v=d.y, x=d.x, z=z - y)
        return state.moved(v=project(state.v, self.r_v))
