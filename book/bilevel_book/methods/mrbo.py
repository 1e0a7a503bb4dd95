"""MRBO: single loop in x and y with recursive momentum on both, and a Neumann sum at every point.

Yang, Ji, Liang (2021), "Provably faster algorithms for bilevel optimization", Algorithm 1.

    G = grad_x f - J v,   v = gamma sum_{q=0}^{Q} prod_{j=1}^{q} (I - gamma H_j) grad_y f
    h_t = d_t(now) + (1 - eta_t) (h_{t-1} - d_t(before)),   h_0 = d_0(now),   for d = grad_y g and d = G
    y_{t+1} = y_t - beta_t h_y,   x_{t+1} = x_t - alpha_t h_x

gamma is `eta_series`; d(now) and d(before) are on the same samples. Cost of a step: 6 gradients, 2 Q H v, 2 J v (half
at t = 0). The paper lets the momentum weights of x and y differ; here they are one. Its released code resets the decay
at every step and moves y twice; this follows the paper.
"""

from abc import abstractmethod
from typing import Any

from torch import Generator, Tensor

from bilevel_book.methods.estimates import Pair, PairSolver, lower_batches, neumann, surrogate
from bilevel_book.methods.losses import losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import COUNT, POSITIVE, STEP, UNIT, draw, method, option, recursive_momentum


@method
class PairMomentum(PairSolver):
    """Recursive momentum on d = (G, grad_y g), where G is the surrogate with a v of its own at every point."""

    alpha: Step = option(Power(0.2), STEP, "step of x")
    beta: Step = option(Power(0.5), STEP, "step of y")
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")
    eta_series: float = option(0.3, POSITIVE, "gamma of the factors I - gamma H, below 2 / L")

    def update(self, problem, state, generator):
        here, eta, factors = Pair(state.x, state.y), self.momentum_weight(state.t), self.factors(generator)
        samples, batches = draw(problem, generator), list(lower_batches(problem, generator, factors))

        def estimate(at: Pair) -> tuple[Pair, Tensor]:
            f, g = losses(problem, at.x, samples)
            G, v = surrogate(f, g, at.y, lambda r: self.solve(problem, at, r, batches))
            return Pair(G, g.grad_y(at.y)), v

        h, v = estimate(here)
        if eta < 1:
            h = recursive_momentum(h, state.h, estimate(state.before)[0], eta)
        return self.move(problem, state, x=h.x, y=h.y).replace(v=v, before=here, h=h)

    @abstractmethod
    def factors(self, generator: Generator) -> int:
        """How many factors I - gamma H this step takes."""

    @abstractmethod
    def solve(self, problem: BilevelProblem, at: Pair, r: Tensor, batches: list[Any]) -> Tensor:
        """The v near H^-1 r at a point, with a factor for each batch."""


@method
class MRBO(PairMomentum):
    Q: int = option(15, COUNT, "factors of the longest product in the sum")

    def factors(self, generator: Generator) -> int:
        return self.Q

    def solve(self, problem: BilevelProblem, at: Pair, r: Tensor, batches: list[Any]) -> Tensor:
        return neumann(problem, at.x, at.y, r, batches, self.eta_series)
