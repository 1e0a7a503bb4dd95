"""S-TFBO: SOBA with steps that nobody tunes, from the sums of the squared directions so far.

Yang, Ban, Huang, Ma, Ji (2025), "Tuning-free bilevel optimization: new algorithms and convergence analysis", ICLR.

    b_t^2 = b_{t-1}^2 + ||d_y||^2,   c_t and a_t likewise from d_v and d_x,   p_t = max(b_t, c_t)
    y_{t+1} = y_t - beta d_y / b_t,   v_{t+1} = v_t - lam d_v / p_t,   x_{t+1} = x_t - alpha d_x / (a_t p_t)

All three sums begin at first^2, and alpha = beta = lam = 1 in the paper. x is the slowest: it waits for y and v.
Cost of a step: 3 gradients, 1 H v, 1 J v, as SOBA. Its theory has no noise; under noise the sums grow for ever, so
that the steps of y and v fall like t^{-1/2} and that of x like 1 / t. It is slow there.
Read: abstract and public code (OptMN-Lab/tfbo 999815f, benchopt/solvers/stfbo.py, coreset/bcsr_training.py).
"""

from dataclasses import dataclass

import torch

from bilevel_core.directions import Directions
from bilevel_core.schedules import Rate
from bilevel_core.solvers.base import POSITIVE, STEP, STEPS, SingleLoop, State, method, option


@dataclass(frozen=True)
class STFBOState(State):
    """Also the sums of the squared directions."""

    sums: Directions


@method
class STFBO(SingleLoop[STFBOState]):
    state_type = STFBOState

    alpha: Rate = option(1.0, STEP, "factor of the step of x")
    beta: Rate = option(1.0, STEP, "factor of the step of y")
    lam: Rate = option(1.0, STEP, "factor of the step of v")
    first: float = option(1.0, POSITIVE, "the root of each sum at the start")

    def init_memory(self, state):
        first = state.y.new_tensor(self.first**2)
        return STFBOState(**vars(state), sums=Directions(first, first, first))

    @classmethod
    def suggestions(cls, common, m):
        """No steps: the method finds its own."""
        return {name: value for name, value in common.items() if name not in STEPS.values()}

    def update(self, problem, state, generator):
        d = self.directions(problem, state.x, state.y, state.v, self.draw(problem, generator), state.t)
        sums = Directions(*(total + part @ part for total, part in zip(state.sums, d, strict=True)))
        b, c, a = (total.sqrt() for total in sums)
        p = torch.maximum(b, c)
        return self.move(problem, state, y=d.y / b, v=d.v / p, x=d.x / (a * p)).replace(sums=sums)
