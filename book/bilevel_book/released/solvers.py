"""stocBiO and MRBO with what their released code does differently, one switch each; all off is the paper's method.

ReleasedStocBiO   series      v = eta r_Q + sum_{q=1}^{Q} r_q,  r_q = (I - eta H)^q grad_y f  on one batch:
                              r_0 is missing, and eta multiplies one term instead of all
                  strangers   the step of x is written to other entries of x, as a pointer walks on by itself
                  unstored    the step of x is computed and dropped
ReleasedMRBO      resets      every schedule is set back to its first value before each step
                  twice       x and y take the same step twice
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bilevel_core.directions import hessian_vector, losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.estimates import PairState, inner_loop, neumann
from bilevel_core.solvers.mrbo import MRBO
from bilevel_core.solvers.solver import SWITCH, State, draw, lower_batches, method, option
from bilevel_core.solvers.stocbio import StocBiO

STRIDE = 997  # of the pointer: has no common factor with 20000, so it comes back to the right entries late


@method
class ReleasedStocBiO(StocBiO):
    """stocBiO with switches for what its released code does differently."""

    series: bool = option(False, SWITCH, "the sum of the release instead of the paper's")
    strangers: bool = option(False, SWITCH, "the step of x is written to other entries of x")
    unstored: bool = option(False, SWITCH, "the step of x is computed and dropped")

    def update(self, problem: BilevelProblem, state: State, generator: torch.Generator) -> State:
        x, (alpha, beta) = state.x, self.at(state.t, "alpha", "beta")
        y = inner_loop(problem, x, state.y, lower_batches(problem, generator, self.inner), beta)
        samples = draw(problem, generator)
        f, g = losses(problem, x, samples)
        f_x, f_y = f.gradients(y)
        if self.series:
            v = release_sum(problem, x, y, f_y, [*lower_batches(problem, generator, 1)] * self.Q, self.eta_series)
        else:
            v = neumann(problem, x, y, f_y, lower_batches(problem, generator, self.Q), self.eta_series)
        new = x - alpha * (f_x - g.jacobian_vector(y, v))
        if self.strangers:
            new = x + (new - x).roll(STRIDE * (state.t + 1))
        return replace(state, x=x if self.unstored else new, y=y, v=v)


def release_sum(problem: BilevelProblem, x: Tensor, y: Tensor, r: Tensor, batches: Iterable[Any], eta: float) -> Tensor:
    """eta r_Q + sum_{q=1}^{Q} r_q, with r_q = (I - eta H) r_{q-1} and r_0 = r."""
    terms = [r]
    for batch in batches:
        terms.append(terms[-1] - eta * hessian_vector(problem, x, y, terms[-1], batch))
    return eta * terms[-1] + sum(terms[1:])


@method
class ReleasedMRBO(MRBO):
    """MRBO with switches for what its released code does differently."""

    resets: bool = option(False, SWITCH, "every schedule is set back to its first value before each step")
    twice: bool = option(False, SWITCH, "x and y take the same step twice")

    def at(self, t: int, *names: str) -> tuple[Any, ...]:
        return super().at(0 if self.resets else t, *names)

    def update(self, problem: BilevelProblem, state: PairState, generator: torch.Generator) -> PairState:
        new = super().update(problem, state, generator)
        if not self.twice:
            return new
        alpha, beta = self.at(state.t, "alpha", "beta")
        return replace(new, x=new.x - alpha * new.h.x, y=new.y - beta * new.h.y)
