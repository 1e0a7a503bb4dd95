"""reverse: gradient descent on y, differentiated backwards through its last K steps.

Franceschi, Donini, Frasconi, Pontil (2017), "Forward and reverse gradient-based hyperparameter optimization";
truncated after K steps as in Shaban, Cheng, Hatch, Boots (2019), "Truncated back-propagation for bilevel
optimization".

    y_{i+1} = y_i - beta grad_y g(x, y_i; batch_i)                   i = 0..inner-1
    a = grad_y f(x, y_inner),  d = grad_x f(x, y_inner)
    for i = inner-1 down to inner-K:    d <- d - beta J(x, y_i; batch_i) a,     a <- a - beta H(x, y_i; batch_i) a
    x <- x - alpha d

At a solved lower level d is AID-FP's with gamma = beta and the same K. Cost of a step: inner + 2 gradients, K - 1 H
v, K J v. The graphs of the last K steps are kept, or with `recompute` only their iterates. v is reported as beta times
the sum of the a's: minus the derivative of f in the inner gradients, so too for a rule, whose memory is differentiated.
"""

from itertools import islice

import torch

from bilevel_book.methods.estimates import lower_batches
from bilevel_book.methods.losses import Loss, losses
from bilevel_core.counting import count
from bilevel_core.directions import derivatives, grad_y
from bilevel_core.problem import check_scalar
from bilevel_core.schedules import Power, Rule, Step
from bilevel_core.solvers.base import COUNT, STEP, SWITCH, Solver, State, draw, method, option


@method
class Reverse(Solver[State]):
    alpha: Step = option(Power(0.2, p=1 / 2), STEP, "step of x")
    beta: Step = option(0.3, STEP, "step of y")
    inner: int = option(10, COUNT, "steps of y for one of x")
    K: int = option(10, COUNT, "how many of them are differentiated, at most all")
    full: bool = option(False, SWITCH, "whether every call sees all the data")
    recompute: bool = option(False, SWITCH, "build each graph anew on the way back: less memory, more time")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inner < self.K:
            raise ValueError(f"Reverse: K must be at most inner = {self.inner}, the number of steps, got {self.K}")
        if self.recompute and isinstance(self.beta, Rule):
            raise ValueError(f"Reverse: recompute = True needs a number or a schedule for beta, got {self.beta}")

    @classmethod
    def suggestions(cls, common, m):
        return common | {"inner": common["K"]}  # a step that is not differentiated is lost

    def update(self, problem, state, generator):
        batches = lower_batches(problem, generator, self.inner, self.full)
        for batch in islice(batches, self.inner - self.K):
            state = self.move(problem, state, y=grad_y(problem.lower, state.x, state.y, batch))
        last_steps = self.step_by_step if self.recompute else self.in_one_graph
        d, state = last_steps(problem, state, batches, generator)
        return self.move(problem, state, x=d)

    def in_one_graph(self, problem, state, batches, generator):
        """d, and the state with the last y and v: K steps as one graph, differentiated as a whole."""
        x, now = state.x.detach().requires_grad_(), state.replace(y=state.y.detach().requires_grad_())
        rule, seen = isinstance(self.beta, Rule), []
        with torch.enable_grad():
            for batch in batches:
                g = check_scalar("lower", problem.lower_at(x, batch)(now.y))
                (g_y,) = derivatives(g, now.y, differentiable=True)
                # The same step twice: in the graph, with what a rule remembers, and without.
                now, state = self.move(problem, now, y=g_y), self.move(problem, state, y=g_y.detach())
                seen.append(g_y if rule else now.y)
            samples = draw(problem, generator, self.full)
            f = check_scalar("upper", problem.upper_at(x, samples.upper)(now.y))
            d, *a = derivatives(f, x, *seen)
        count(gradients=self.K + 2, Hv=self.K - 1, Jv=self.K)
        return d, state.replace(v=(-1 if rule else self.value("beta", state.t)) * torch.stack(a).sum(0))

    def step_by_step(self, problem, state, batches, generator):
        """The same, with one graph at a time: forwards, remembering where each step started, then backwards."""
        x, y, beta = state.x, state.y, self.value("beta", state.t)
        tape = []
        for batch in batches:
            tape.append((y, batch))
            y = y - beta * grad_y(problem.lower, x, y, batch)
        f, _ = losses(problem, x, draw(problem, generator, self.full))
        d, a = f.gradients(y)
        v = beta * a
        (first, its_batch), *others = tape
        for start, batch in reversed(others):
            Hv, Jv = Loss(problem, "lower", x, batch).products(start, a)
            d, a = d - beta * Jv, a - beta * Hv
            v = v + beta * a
        Jv = Loss(problem, "lower", x, its_batch).jacobian_vector(first, a)
        return d - beta * Jv, state.replace(y=y, v=v)
