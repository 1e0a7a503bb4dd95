"""F2SA: first-order only, by a penalty: y minimises f + ell g, z minimises g, and ell grows.

Kwon, Kwon, Wright, Nowak (2023), "A fully first-order method for stochastic bilevel optimization", Algorithm 1.

    z <- z - gamma grad_y g(x, z)                                                    `inner` times
    y <- y - beta (grad_y f(x, y) + ell grad_y g(x, y))                              `inner` times
    x <- x - alpha (grad_x f(x, y) + ell (grad_x g(x, y) - grad_x g(x, z)))          at the new y and z

ell, lambda in that paper, is `multiplier`, a schedule that grows. Its bias in the hypergradient is O(1 / ell); beta
ell L must stay below 2. Cost of a step: 3 inner + 3 gradients, fresh draws for every one. v is reported as
ell (z - y), which tends to v*.
"""

import math
from dataclasses import dataclass

from torch import Generator, Tensor

from bilevel_book.methods.estimates import lower_batches
from bilevel_core.directions import grad_x, grad_y
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import COUNT, STEP, Solver, State, Suggestions, draw, method, option
from bilevel_core.stepsizes import Curvature


@dataclass(frozen=True)
class F2SAState(State):
    """Also z, which follows y*."""

    z: Tensor


@method
class Penalty(Solver[F2SAState]):
    """A method that minimises f + ell g over y, and whose z follows y*."""

    state_type = F2SAState

    alpha: Step = option(Power(0.2, p=1 / 2), STEP, "step of x")
    beta: Step = option(Power(0.2, p=1 / 2), STEP, "step of y")
    gamma: Step = option(Power(0.5, p=1 / 3), STEP, "step of z")
    multiplier: Rate = option(Power(1.0, p=-1 / 4), STEP, "ell, the weight of the lower level")

    def init_memory(self, state):
        return F2SAState(**vars(state), z=state.y)

    @classmethod
    def suggestions(cls, common: Suggestions, m: Curvature) -> Suggestions:
        """The multiplier, and the step of y that it allows."""
        multiplier = min(10.0, max(1.0, 5 * m.ratio))
        curvature = 2 * m.L * (multiplier + m.ratio)
        beta = 1 / curvature if curvature else math.inf, "1 / (2 L (multiplier + ratio))"
        return common | {"multiplier": (multiplier, "5 ratio, from 1 to 10"), "beta": beta}


@method
class F2SA(Penalty):
    inner: int = option(5, COUNT, "steps of z and of y for one of x")

    def update(self, problem, state, generator):
        x, ell, state = state.x, self.value("multiplier", state.t), self.follow(problem, state, generator)
        y, z, (upper, lower) = state.y, state.z, draw(problem, generator)
        (batch,) = lower_batches(problem, generator, 1)
        pull = grad_x(problem.lower, x, y, lower) - grad_x(problem.lower, x, z, batch)
        return self.move(problem, state, x=grad_x(problem.upper, x, y, upper) + ell * pull).replace(v=ell * (z - y))

    def follow(self, problem: BilevelProblem, state: F2SAState, generator: Generator) -> F2SAState:
        """The inner steps of z and y."""
        x, ell = state.x, self.value("multiplier", state.t)
        for batch in lower_batches(problem, generator, self.inner):
            d_z = grad_y(problem.lower, x, state.z, batch)
            upper, lower = draw(problem, generator)
            d_y = grad_y(problem.upper, x, state.y, upper) + ell * grad_y(problem.lower, x, state.y, lower)
            state = self.move(problem, state, z=d_z, y=d_y)
        return state
