"""reverse: gradient descent on y, differentiated backwards through its last K steps.

Franceschi, Donini, Frasconi, Pontil (2017), "Forward and reverse gradient-based hyperparameter optimization";
truncated after K steps as in Shaban, Cheng, Hatch, Boots (2019), "Truncated back-propagation for bilevel
optimization".

    y_{i+1} = y_i - beta grad_y g(x, y_i; batch_i)                   i = 0..inner-1
    a = grad_y f(x, y_inner),  d = grad_x f(x, y_inner)
    for i = inner-1 down to inner-K:    d <- d - beta J(x, y_i; batch_i) a,     a <- a - beta H(x, y_i; batch_i) a
    x <- x - alpha d

At a solved lower level d is AID-FP's with eta = beta and the same K. Cost of a step: inner + 2 gradients, K - 1 H
v, K J v. The graphs of the last K steps are kept, or with `recompute` only their iterates. v is reported as beta times
the sum of the a's.
"""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch import Generator, Tensor

from bilevel_core.counting import count
from bilevel_core.directions import grad_y, losses, lower_loss
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.estimates import inner_loop
from bilevel_core.solvers.solver import COUNT, POSITIVE, SWITCH, Solver, State, draw, lower_batches, method, option


@method
class Reverse(Solver[State]):
    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(0.3, POSITIVE, "step of y")
    inner: int = option(10, COUNT, "steps of y for one of x")
    K: int = option(10, COUNT, "how many of them are differentiated, at most all")
    full: bool = option(False, SWITCH, "whether every call sees the whole data")
    recompute: bool = option(False, SWITCH, "build each graph anew on the way back: a K-th of the memory, more time")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner < self.K:
            raise ValueError(f"Reverse: K must be at most inner = {self.inner}, the number of steps, got {self.K}")

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        x, y, (alpha, beta) = state.x, state.y, self.at(state.t, "alpha", "beta")
        batches = lower_batches(problem, generator, self.inner, self.full)
        y = inner_loop(problem, x, y, islice(batches, self.inner - self.K), beta)
        if self.recompute:
            d, y, v = self.step_by_step(problem, x, y, batches, generator, beta)
        else:
            d, y, v = self.in_one_graph(problem, x, y, batches, generator, beta)
        return state.moved(x=x - alpha * d, y=y, v=v)

    def in_one_graph(
        self, problem: BilevelProblem, x: Tensor, y: Tensor, batches: Iterator[Any], generator: Generator, beta: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """d, the last y and v: K steps as one graph, differentiated as a whole."""
        x, path = x.detach().requires_grad_(), [y.detach().requires_grad_()]
        with torch.enable_grad():
            for batch in batches:
                g = problem.lower_at(x, batch)(path[-1])
                (g_y,) = torch.autograd.grad(g, path[-1], create_graph=True)
                path.append(path[-1] - beta * g_y)
            samples = draw(problem, generator, self.full)
            f = problem.upper_at(x, samples.upper)(path[-1])
            d, *a = torch.autograd.grad(f, [x, *path[1:]], materialize_grads=True)
        count(gradients=self.K + 2, Hv=self.K - 1, Jv=self.K)
        return d, path[-1].detach(), beta * torch.stack(a).sum(0)

    def step_by_step(
        self, problem: BilevelProblem, x: Tensor, y: Tensor, batches: Iterator[Any], generator: Generator, beta: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same, with one graph at a time: forwards, remembering where each step started, then backwards."""
        tape: list[tuple[Tensor, Any]] = []
        for batch in batches:
            tape.append((y, batch))
            y = y - beta * grad_y(problem.lower, x, y, batch)
        f, _ = losses(problem, x, draw(problem, generator, self.full))
        d, a = f.gradients(y)
        v = beta * a
        for i, (start, batch) in enumerate(reversed(tape), 1):
            g = lower_loss(problem, x, batch)
            if i == self.K:
                return d - beta * g.jacobian_vector(start, a), y, v
            Hv, Jv = g.products(start, a)
            d, a = d - beta * Jv, a - beta * Hv
            v = v + beta * a
        raise AssertionError("K is at least 1")
