"""AmIGO: inner stochastic gradient descent on y, then on v, both from where they stopped last time.

Arbel, Mairal (2022), "Amortized implicit differentiation for stochastic bilevel optimization", Algorithm 1.

    y <- y - beta grad_y g(x, y)                                     `inner` times, fresh batches
    v <- v - lam (H(x, y) v - grad_y f(x, y))                        Q times, fresh batches for H
    x <- x - alpha (grad_x f(x, y) - J(x, y) v)

Cost of a step: inner + 2 gradients, Q H v, 1 J v. Warm-starting v removes the bias of the Neumann sum of stocBiO.
The opposite sign of v, as in the paper, changes nothing.
"""

from torch import Generator

from bilevel_core.directions import hessian_vector, losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.estimates import inner_loop
from bilevel_core.solvers.solver import COUNT, POSITIVE, Solver, State, draw, lower_batches, method, option


@method
class AmIGO(Solver[State]):
    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of y")
    lam: Rate = option(Power(0.5, p=1 / 2), POSITIVE, "step of v")
    inner: int = option(5, COUNT, "steps of y for one of x")
    Q: int = option(10, COUNT, "steps of v for one of x")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, v, (alpha, beta, lam) = state.x, state.v, self.at(state.t, "alpha", "beta", "lam")
        y = inner_loop(problem, x, state.y, lower_batches(problem, generator, self.inner), beta)
        samples = draw(problem, generator)
        f, g = losses(problem, x, samples)
        f_x, f_y = f.gradients(y)
        for batch in lower_batches(problem, generator, self.Q):
            v = v - lam * (hessian_vector(problem, x, y, v, batch) - f_y)
        return state.moved(x=x - alpha * (f_x - g.jacobian_vector(y, v)), y=y, v=v)
