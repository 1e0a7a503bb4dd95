"""AmIGO: inner stochastic gradient descent on y, then on v, both from where they stopped last time.

Arbel, Mairal (2022), "Amortized implicit differentiation for stochastic bilevel optimization", Algorithm 1.

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v <- v - lam (H(x, y) v - grad_y f(x, y))                        Q times, fresh batches for H
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Cost of a step: inner + 2 gradients, Q H v, 1 J v. Warm-starting v removes the bias of the Neumann sum of stocBiO.
The opposite sign of v, as in the paper, changes nothing.
"""

from bilevel_book.methods.estimates import DoubleLoop, lower_batches
from bilevel_core.directions import hessian_vector
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import COUNT, STEP, method, option


@method
class AmIGO(DoubleLoop):
    lam: Step = option(Power(0.5, p=1 / 2), STEP, "step of v")
    Q: int = option(10, COUNT, "steps of v for one of x")

    def solve(self, problem, state, f_y, g, generator):
        for batch in lower_batches(problem, generator, self.Q, self.full):
            d = hessian_vector(problem, state.x, state.y, state.v, batch) - f_y
            state = self.move(problem, state, v=d)
        return state
