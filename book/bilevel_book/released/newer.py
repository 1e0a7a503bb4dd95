"""F2SA and SPABA with what newer released code does differently, one switch each; all off is the library's method.

ReleasedF2SA    elsewhere   the step of y takes the gradient of g at z, where its own step takes it, not at y; and z
                            starts at y in every step of x. After K inner steps  ell (z - y) = gamma (sum of grad_y f),
                            about gamma K grad_y f, in the place of H^-1 grad_y f, if beta = gamma / ell as there
ReleasedSPABA   once        the coin is tossed a single time, when the loop is compiled, and `shows` is what it showed.
                            With no look ever, h_t = sum of d(now) - d(before), and the memory starts at zero: on
                            average h_t is d(now) - d(0, 0, 0), which vanishes at the origin. The state starts at
                            t = 1, since the library's first step is always a look
"""

import torch
from torch import Generator

from bilevel_book.methods.f2sa import F2SA, F2SAState
from bilevel_book.methods.srba import SPABA
from bilevel_core.directions import Point, grad_y
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.base import SWITCH, draw, method, option


@method
class ReleasedF2SA(F2SA):
    """F2SA with a switch for where y's step takes the gradient of g."""

    elsewhere: bool = option(False, SWITCH, "the step of y takes the gradient of g at z")

    def follow(self, problem: BilevelProblem, state: F2SAState, generator: Generator) -> F2SAState:
        if not self.elsewhere:
            return super().follow(problem, state, generator)
        x, ell, state = state.x, self.value("multiplier", state.t), state.replace(z=state.y)
        for _ in range(self.inner):
            upper, lower = draw(problem, generator)
            at_z = grad_y(problem.lower, x, state.z, lower)
            state = self.move(problem, state, z=at_z, y=grad_y(problem.upper, x, state.y, upper) + ell * at_z)
        return state


@method
class ReleasedSPABA(SPABA):
    """SPABA with a switch for how often the coin is tossed."""

    once: bool = option(False, SWITCH, "the coin is tossed a single time for the whole run")
    shows: bool = option(False, SWITCH, "what that toss showed: a look at the whole data in every step, or in none")

    def init_memory(self, state):
        kept = super().init_memory(state)
        return kept.replace(t=1, before=Point(*map(torch.zeros_like, kept.before))) if self.once else kept

    def fresh(self, t, generator):
        return self.shows if self.once else super().fresh(t, generator)
