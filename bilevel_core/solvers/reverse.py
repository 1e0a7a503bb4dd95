"""reverse: gradient descent on y, differentiated backwards through its last K steps.

Franceschi, Donini, Frasconi, Pontil (2017), "Forward and reverse gradient-based hyperparameter optimization";
truncated after K steps as in Shaban, Cheng, Hatch, Boots (2019), "Truncated back-propagation for bilevel
optimization".

    y_{i+1} = y_i - beta grad_y g(x, y_i; batch_i)                   i = 0..inner-1
    a = grad_y f(x, y_inner),  d = grad_x f(x, y_inner)
    for i = inner-1 down to inner-K:    d <- d - beta J(x, y_i; batch_i) a,     a <- a - beta H(x, y_i; batch_i) a
    x <- x - alpha d

At a solved lower level d is AID-FP's with eta = beta and the same K. Cost of a step: inner + 2 gradients, K - 1 H
v, K J v; nothing is stored but the last K iterates. v is reported as beta times the sum of the a's.
"""

from typing import Any

from torch import Generator, Tensor

from bilevel_core.directions import grad_x, grad_y, hessian_vector, jacobian_vector
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.solver import COUNT, POSITIVE, SWITCH, Solver, State, draw, lower_batches, method, option


@method
class Reverse(Solver[State]):
    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(0.3, POSITIVE, "step of y")
    inner: int = option(10, COUNT, "steps of y for one of x")
    K: int = option(10, COUNT, "how many of them are differentiated, at most all")
    full: bool = option(False, SWITCH, "whether every call sees the whole data")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner < self.K:
            raise ValueError(f"Reverse: K must be at most inner = {self.inner}, the number of steps, got {self.K}")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, y, (alpha, beta) = state.x, state.y, self.at(state.t, "alpha", "beta")
        # 1. Forwards, remembering where each of the last K steps started.
        tape: list[tuple[Tensor, Any]] = []
        for batch in lower_batches(problem, generator, self.inner, self.full):
            tape = [*tape, (y, batch)][-self.K :]
            y = y - beta * grad_y(problem.lower, x, y, batch)
        # 2. Backwards along them.
        samples = draw(problem, generator, self.full)
        a, d = grad_y(problem.upper, x, y, samples.upper), grad_x(problem.upper, x, y, samples.upper)
        v = beta * a
        for i, (start, batch) in enumerate(reversed(tape), 1):
            d = d - beta * jacobian_vector(problem, x, start, a, batch)
            if i < self.K:
                a = a - beta * hessian_vector(problem, x, start, a, batch)
                v = v + beta * a
        # 3. One step of x.
        return state.moved(x=x - alpha * d, y=y, v=v)
