"""AID-FP: gradient descent on y, then a fixed-point iteration for v, from zero.

Grazzi, Franceschi, Pontil, Salzo (2020), "On the iteration complexity of hypergradient computation".

    y <- y - beta grad_y g(x, y)                                     `inner` times
    v <- v - gamma (H(x, y) v - grad_y f(x, y))                      K times from v = 0
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Here gamma is `eta_series`. After K iterations v has the mean of the Neumann sum with Q = K - 1. Cost of a step: inner
+ 2 gradients, K - 1 H v (the first product is with v = 0), 1 J v. The method is deterministic: `full` gives it the
whole data, `problem.full()`, as the paper's experiment does. By default each gradient and product is on a fresh
draw, so that it can be run wherever the others can.
"""

from bilevel_book.methods.estimates import DoubleLoop, lower_batches
from bilevel_core.directions import hessian_vector
from bilevel_core.solvers.base import COUNT, POSITIVE, method, option


@method
class AIDFP(DoubleLoop):
    K: int = option(15, COUNT, "iterations for v")
    eta_series: float = option(0.3, POSITIVE, "gamma of the iteration, below 2 / L")

    def solve(self, problem, state, f_y, g, generator):
        v = self.eta_series * f_y
        for batch in lower_batches(problem, generator, self.K - 1, self.full):
            v = v - self.eta_series * (hessian_vector(problem, state.x, state.y, v, batch) - f_y)
        return state.replace(v=v)
