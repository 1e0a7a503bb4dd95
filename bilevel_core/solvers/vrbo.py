"""VRBO: SPIDER. Estimates start anew from many draws once a period, and are carried by differences in between.

Yang, Ji, Liang (2021), "Provably faster algorithms for bilevel optimization", Algorithm 2.

    if t is a multiple of `period`:   h = the mean of `large` draws of (G, grad_y g) at (x_t, y_t)
    x_{t+1} = x_t - alpha h_x
    carry h to (x_{t+1}, y_t);   then `inner` times:   y <- y - beta h_y, carry h to the new (x_{t+1}, y)

To carry h from one point to the next is  h <- h + d(next) - d(last),  on one draw for both, with d = (G, grad_y g) and
G as in MRBO. Cost of a step: 2 (inner + 1) times (3 gradients, Q H v, 1 J v), and `large` times more when a period
starts.

The paper has a large batch where we take the mean of `large` draws, which is the same. Its released code writes and
reads different blocks of the weights; this file follows the paper.
"""

from dataclasses import dataclass, replace

from torch import Tensor

from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.pair import NeumannPair, Pair, PairState
from bilevel_core.solvers.solver import COUNT, POSITIVE, generator_at, option


@dataclass(frozen=True, kw_only=True)
class VRBO(NeumannPair):
    alpha: Rate = option(Power(0.4, p=1 / 2), POSITIVE)
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE)
    inner: int = option(1, COUNT)
    period: int = option(3, COUNT)
    large: int = option(5, COUNT)
    Q: int = option(10, COUNT)

    def step(self, problem: BilevelProblem, state: PairState) -> PairState:
        generator, here, h = generator_at(state), Pair(state.x, state.y), state.h
        alpha, beta = self.at(state.t, "alpha", "beta")

        def carry(h: Pair, last: Pair, here: Pair) -> tuple[Pair, Tensor]:
            samples = self.draw(problem, generator)
            (now, v), (then, _) = self.estimates(problem, here, samples), self.estimates(problem, last, samples)
            return Pair(*(past + a - b for past, a, b in zip(h, now, then, strict=True))), v

        # 1. A fresh start of the estimates.
        if state.t % self.period == 0:
            draws = [self.estimates(problem, here, self.draw(problem, generator))[0] for _ in range(self.large)]
            h = Pair(*(sum(parts) / self.large for parts in zip(*draws, strict=True)))
        # 2. One step of x, then of y, the estimates carried along.
        last, here = here, Pair(here.x - alpha * h.x, here.y)
        h, v = carry(h, last, here)
        for _ in range(self.inner):
            last, here = here, Pair(here.x, here.y - beta * h.y)
            h, v = carry(h, last, here)
        return replace(state, x=here.x, y=here.y, v=v, t=state.t + 1, rng=generator.get_state(), before=here, h=h)
