"""PZOBO-S: how y* moves with x, by perturbing x at random and solving the lower level again.

Sow, Ji, Liang (2022), "On the convergence theory for Hessian-free bilevel algorithms", Algorithm 2.

    y_T(x): `inner` stochastic gradient steps on g(x, .) from the last y
    for each of Q directions u:   y_T(x + mu u) by the same number of steps, from the same y, on the same batches
    d = grad_x f + (1/Q) sum over u of  < (y_T(x + mu u) - y_T(x)) / mu, grad_y f >  u,          u normal
    x <- x - alpha d

Cost of a step: (1 + Q) inner + 2 gradients, no second derivative. The mean of d is the gradient of x -> f(x,
y_T(x)) as mu tends to 0, up to the part of the past that `inner` steps forget; its variance grows with the
dimension of x. v is unused.

`released` is the variant of the released MNIST code: Adam in both loops (fresh in the inner one), and u of unit
norm in each of the problem's `x_blocks`, which shrinks the second term by the size of a block. There, one Adam
serves both copies of y and is stepped for each in turn. Since PyTorch 2.0 `zero_grad` removes gradients, so that
each copy gets exactly `inner` steps; before, it set them to zero, and with every step of one copy the other, once it
had a gradient, took a step on momentum alone: `coasting`. The perturbed copy goes last, so it has one such step less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bilevel_core.directions import grad_y, losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.adam import Adam
from bilevel_core.solvers.solver import COUNT, POSITIVE, SWITCH, Solver, State, draw, lower_batches, method, option


@dataclass(frozen=True)
class PZOBOState(State):
    """Also the moments of Adam on x."""

    adam: Adam


@method
class PZOBO(Solver[PZOBOState]):
    alpha: Rate = option(Power(0.1, p=1 / 2), POSITIVE, "step of x")
    beta: Rate = option(0.3, POSITIVE, "step of y")
    inner: int = option(8, COUNT, "steps of y for one of x")
    Q: int = option(5, COUNT, "directions in which x is perturbed")
    mu: Rate = option(0.01, POSITIVE, "how far x is perturbed")
    released: bool = option(False, SWITCH, "the variant of the released code")
    coasting: bool = option(False, SWITCH, "the released code with PyTorch 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coasting and not self.released:
            raise ValueError("PZOBO: coasting = True is a property of the released code, give released = True too")

    def remember(self, state: State) -> PZOBOState:
        return PZOBOState(**vars(state), adam=Adam.zeros(state.x if self.released else state.x[:0]))

    def update(self, problem: BilevelProblem, state: PZOBOState, generator: torch.Generator) -> PZOBOState:
        x, (alpha, beta, mu) = state.x, self.at(state.t, "alpha", "beta", "mu")
        # 1. The lower level at x and at Q perturbed points, on the same batches.
        batches = list(lower_batches(problem, generator, self.inner))
        y = self.solve(problem, x, state.y, batches, beta)
        directions = [self.direction(problem, x, generator) for _ in range(self.Q)]
        moved = [self.solve(problem, x + mu * u, state.y, batches, beta, perturbed=True) for u in directions]
        responses = [(y_moved - y) / mu for y_moved in moved]
        # 2. The hypergradient: the direct term, and the change of f through the response to each direction.
        f, _ = losses(problem, x, draw(problem, generator))
        d, f_y = f.gradients(y)
        for u, response in zip(directions, responses, strict=True):
            d = d + (response @ f_y) * u / self.Q
        # 3. One step of x.
        step, adam = state.adam.update(d) if self.released else (d, state.adam)
        return state.moved(x=x - alpha * step, y=y, adam=adam)

    def solve(
        self,
        problem: BilevelProblem,
        x: Tensor,
        y: Tensor,
        batches: Sequence[Any],
        beta: float,
        perturbed: bool = False,
    ) -> Tensor:
        """The inner loop, with Adam in the released variant."""
        adam = Adam.zeros(y)
        for i, batch in enumerate(batches):
            if self.coasting and perturbed and i > 0:
                coast, adam = adam.update(torch.zeros_like(y))
                y = y - beta * coast
            step = grad_y(problem.lower, x, y, batch)
            if self.released:
                step, adam = adam.update(step)
            if self.coasting and not perturbed:
                coast, adam = adam.update(torch.zeros_like(y))
                step = step + coast
            y = y - beta * step
        return y

    def direction(self, problem: BilevelProblem, x: Tensor, generator: torch.Generator) -> Tensor:
        """u: normal, or of unit norm in each block of x."""
        u = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
        if not self.released:
            return u
        blocks = u.split(problem.x_blocks or [len(x)])
        return torch.cat([block / torch.linalg.vector_norm(block) for block in blocks])
