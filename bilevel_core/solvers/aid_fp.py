"""AID-FP: gradient descent on y, then a fixed-point iteration for v, from zero.

Grazzi, Franceschi, Pontil, Salzo (2020), "On the iteration complexity of hypergradient computation".

    y <- y - beta grad_y g(x, y)                                     `inner` times
    v <- v - eta (H(x, y) v - grad_y f(x, y))                        K times from v = 0
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here eta is `eta_series`. After K iterations v is the Neumann sum with Q = K - 1. Cost of a step: inner + 2
gradients, K - 1 H v (the first product is with v = 0), 1 J v. The method is deterministic: `full=True` gives it the
whole data, `problem.full()`, as the paper's experiment does. By default each gradient and product is on a fresh
draw, so that it can be run wherever the others can.
"""

from dataclasses import dataclass

from bilevel_core.solvers.double_loop import DoubleLoop, InnerLoop
from bilevel_core.solvers.series import neumann
from bilevel_core.solvers.solver import COUNT, POSITIVE, count_full, option


@dataclass(frozen=True, kw_only=True)
class OnAllData(InnerLoop):
    """A loop that can be given the whole data at every call."""

    full: bool = False

    def samples(self, problem, generator):
        return count_full(problem) if self.full else super().samples(problem, generator)

    def lower_batch(self, problem, generator):
        return count_full(problem, upper=False).lower if self.full else super().lower_batch(problem, generator)


@dataclass(frozen=True, kw_only=True)
class AIDFP(OnAllData, DoubleLoop):
    K: int = option(15, COUNT)
    eta_series: float = option(0.3, POSITIVE)

    def solve(self, problem, x, y, f_y, state, generator):
        batches = tuple(self.lower_batch(problem, generator) for _ in range(self.K - 1))
        return neumann(problem, x, y, f_y, batches, self.eta_series)
