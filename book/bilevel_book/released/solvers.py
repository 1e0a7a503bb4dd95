"""stocBiO and MRBO with what their released code does differently, one switch each; all off is the paper's method.

ReleasedStocBiO   series      v = eta r_Q + sum_{q=1}^{Q} r_q,  r_q = (I - eta H)^q grad_y f  on one batch:
                              r_0 is missing, and eta multiplies one term instead of all
                  misplaced   the step of x is written to other entries of x, as a pointer walks on by itself
                  dropped    the step of x is computed and dropped
ReleasedMRBO      resets      every schedule is set back to its first value before each step
                  twice       x and y take the same step twice
                  midway      the second half-step of y (see `twice`) comes after G: G is taken at y after its first,
                              the earlier G at y_t, the earlier grad_y g at the last such midpoint, all at the new x,
                              since what is kept as the old x is a view of the new one
"""

from typing import Any

import torch
from torch import Tensor

from bilevel_book.methods.estimates import Pair, PairState, lower_batches, neumann, surrogate
from bilevel_book.methods.losses import losses
from bilevel_book.methods.mrbo import MRBO
from bilevel_book.methods.stocbio import StocBiO
from bilevel_core.directions import hessian_vector
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.base import SWITCH, draw, method, option

STRIDE = 997  # of the pointer: has no common factor with 20000, so it comes back to the right entries late


@method
class ReleasedStocBiO(StocBiO):
    """stocBiO with switches for what its released code does differently."""

    series: bool = option(False, SWITCH, "the sum of the release instead of the paper's")
    misplaced: bool = option(False, SWITCH, "the step of x is written to other entries of x")
    dropped: bool = option(False, SWITCH, "the step of x is computed and dropped")

    def update(self, problem, state, generator):
        x, new = state.x, super().update(problem, state, generator)
        if self.misplaced:
            new = new.replace(x=x + (new.x - x).roll(STRIDE * (state.t + 1)))
        return new.replace(x=x) if self.dropped else new

    def solve(self, problem, state, f_y, g, generator):
        if not self.series:
            return super().solve(problem, state, f_y, g, generator)
        (batch,), terms = lower_batches(problem, generator, 1), [f_y]
        for _ in range(self.Q):
            terms.append(terms[-1] - self.eta_series * hessian_vector(problem, state.x, state.y, terms[-1], batch))
        return state.replace(v=self.eta_series * terms[-1] + sum(terms[1:]))


@method
class ReleasedMRBO(MRBO):
    """MRBO with switches for what its released code does differently."""

    resets: bool = option(False, SWITCH, "every schedule is set back to its first value before each step")
    twice: bool = option(False, SWITCH, "x and y take the same step twice")
    midway: bool = option(False, SWITCH, "G is taken between the two half-steps of y, differences are taken there too")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.midway and not self.twice:
            raise ValueError("ReleasedMRBO: midway = True needs two half-steps, give twice = True too")

    def value(self, name: str, t: int) -> Any:
        return super().value(name, 0 if self.resets else t)

    def update(self, problem, state, generator):
        if self.midway:
            return self.between(problem, state, generator)
        new = super().update(problem, state, generator)
        if not self.twice:
            return new
        alpha, beta = self.value("alpha", state.t), self.value("beta", state.t)
        return new.replace(x=new.x - alpha * new.h.x, y=new.y - beta * new.h.y)

    def between(self, problem: BilevelProblem, state: PairState, generator: torch.Generator) -> PairState:
        """A step in which y takes half of its way before G is formed; `before.y` remembers that midpoint."""
        x, y, eta = state.x, state.y, self.momentum_weight(state.t)
        alpha, beta = self.value("alpha", state.t), self.value("beta", state.t)
        samples, batches = draw(problem, generator), list(lower_batches(problem, generator, self.Q))
        f, g = losses(problem, x, samples)

        def G(y: Tensor) -> tuple[Tensor, Tensor]:
            return surrogate(f, g, y, lambda r: neumann(problem, x, y, r, batches, self.eta_series))

        h_y = g.grad_y(y)
        if eta < 1:
            h_y = torch.add(h_y, state.h.y - g.grad_y(state.before.y), alpha=1 - eta)
        midpoint = y - beta * h_y
        h_x, v = G(midpoint)
        if eta < 1:
            h_x = torch.add(h_x, state.h.x - G(y)[0], alpha=1 - eta)
        return state.replace(
            x=x - 2 * alpha * h_x, y=midpoint - beta * h_y, v=v, before=Pair(x, midpoint), h=Pair(h_x, h_y)
        )
