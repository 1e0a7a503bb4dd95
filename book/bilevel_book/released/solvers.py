"""stocBiO and MRBO with what their released code does differently, one switch each; all off is the paper's method.

ReleasedStocBiO   series      v = eta r_Q + sum_{q=1}^{Q} r_q,  r_q = (I - eta H)^q grad_y f  on one batch:
                              r_0 is missing, and eta multiplies one term instead of all
                  strangers   the step of x is written to other entries of x, as a pointer walks on by itself
                  unstored    the step of x is computed and dropped
ReleasedMRBO      resets      every schedule is set back to its first value before each step
                  twice       x and y take the same step twice
"""

from dataclasses import dataclass, replace

from bilevel_core.directions import hessian_vector
from bilevel_core.solvers.mrbo import MRBO
from bilevel_core.solvers.stocbio import StocBiO

STRIDE = 997  # of the pointer: has no common factor with 20000, so it comes back to the right entries late


@dataclass(frozen=True, kw_only=True)
class ReleasedStocBiO(StocBiO):
    series: bool = False
    strangers: bool = False
    unstored: bool = False

    def solve(self, problem, x, y, f_y, state, generator):
        if not self.series:
            return super().solve(problem, x, y, f_y, state, generator)
        batch, terms = self.lower_batch(problem, generator), [f_y]
        for _ in range(self.Q):
            terms.append(terms[-1] - self.eta_series * hessian_vector(problem, x, y, terms[-1], batch))
        return self.eta_series * terms[-1] + sum(terms[1:])

    def step(self, problem, state):
        new = super().step(problem, state)
        if self.strangers:
            new = replace(new, x=state.x + (new.x - state.x).roll(STRIDE * new.t))
        return replace(new, x=state.x) if self.unstored else new


@dataclass(frozen=True, kw_only=True)
class ReleasedMRBO(MRBO):
    resets: bool = False
    twice: bool = False

    def at(self, t, *names):
        return super().at(0 if self.resets else t, *names)

    def step(self, problem, state):
        new = super().step(problem, state)
        if not self.twice:
            return new
        alpha, beta = self.at(state.t, "alpha", "beta")
        return replace(new, x=new.x - alpha * new.h.x, y=new.y - beta * new.h.y)
