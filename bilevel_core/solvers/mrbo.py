"""MRBO: single loop in x and y with recursive momentum on both, and a Neumann sum at every point.

Yang, Ji, Liang (2021), "Provably faster algorithms for bilevel optimization", Algorithm 1.

    G = grad_x f - J v,   v = eta_series sum_{q=0}^{Q} prod_{j=1}^{q} (I - eta_series H_j) grad_y f
    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for d = grad_y g and d = G
    y_{t+1} = y_t - beta_t h_y,   x_{t+1} = x_t - alpha_t h_x

d(now) and d(before) are on the same samples. Cost of a step: 6 gradients, 2 Q H v, 2 J v (half at t = 0). The paper
lets the momentum weights of x and y differ; here they are one. Its released code resets the decay at every step and
moves y twice; this file follows the paper.
"""

from dataclasses import dataclass, replace

from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.pair import NeumannPair, Pair, PairMethod, PairState
from bilevel_core.solvers.solver import UNIT, generator_at, option


@dataclass(frozen=True, kw_only=True)
class RecursiveMomentum(PairMethod):
    """The update above, whatever makes v."""

    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT)

    def step(self, problem: BilevelProblem, state: PairState) -> PairState:
        generator, here = generator_at(state), Pair(state.x, state.y)
        alpha, beta, eta = self.at(state.t, "alpha", "beta", "eta")
        samples = self.draw(problem, generator)
        h, v = self.estimates(problem, here, samples)
        if state.t > 0 and eta < 1:
            before, _ = self.estimates(problem, state.before, samples)
            h = Pair(*(d + (1 - eta) * (past - b) for d, past, b in zip(h, state.h, before, strict=True)))
        return replace(
            state,
            x=state.x - alpha * h.x,
            y=state.y - beta * h.y,
            v=v,
            t=state.t + 1,
            rng=generator.get_state(),
            before=here,
            h=h,
        )


@dataclass(frozen=True, kw_only=True)
class MRBO(RecursiveMomentum, NeumannPair):
    pass
