"""AmIGO: inner stochastic gradient descent on y, then on v, both from where they stopped last time.

Arbel, Mairal (2022), "Amortized implicit differentiation for stochastic bilevel optimization", Algorithm 1.

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v <- v - lam (H(x, y) v - grad_y f(x, y))                        Q times, fresh batches for H
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Cost of a step: inner + 2 gradients, Q H v, 1 J v. Warm-starting v removes the bias of the Neumann sum of stocBiO.
The opposite sign of v, as in the paper, changes nothing.
"""

from dataclasses import dataclass

from bilevel_core.directions import hessian_vector
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.double_loop import DoubleLoop
from bilevel_core.solvers.solver import COUNT, POSITIVE, option


@dataclass(frozen=True, kw_only=True)
class AmIGO(DoubleLoop):
    lam: Rate = option(Power(0.5, p=1 / 2), POSITIVE)
    Q: int = option(10, COUNT)

    def solve(self, problem, x, y, f_y, state, generator):
        (lam,) = self.at(state.t, "lam")
        v = state.v
        for _ in range(self.Q):
            v = v - lam * (hessian_vector(problem, x, y, v, self.lower_batch(problem, generator)) - f_y)
        return v
