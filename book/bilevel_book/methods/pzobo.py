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

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bilevel_book.methods.estimates import lower_batches
from bilevel_book.methods.losses import losses
from bilevel_core.directions import grad_y
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Rule, Step
from bilevel_core.solvers.base import COUNT, STEP, SWITCH, Adam, Solver, State, draw, method, option


@method
class PZOBO(Solver[State]):
    is_random = True

    alpha: Step = option(Power(0.1, p=1 / 2), STEP, "step of x")
    beta: Step = option(0.3, STEP, "step of y")
    inner: int = option(8, COUNT, "steps of y for one of x")
    Q: int = option(5, COUNT, "directions in which x is perturbed")
    mu: Rate = option(0.01, STEP, "how far x is perturbed")
    released: bool = option(False, SWITCH, "the variant of the released code")
    coasting: bool = option(False, SWITCH, "the released code with PyTorch 1")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.coasting and not self.released:
            raise ValueError("PZOBO: coasting = True is a property of the released code, give released = True too")

    def step_of(self, name: str) -> Step | None:
        step = super().step_of(name)
        return step if step is None or isinstance(step, Rule) or not self.released else Adam(step)

    @classmethod
    def suggestions(cls, common, m):
        """Q is a number of directions here, and the variance grows with the dimension of x."""
        Q, (alpha, why) = cls.Q, common["alpha"]
        return common | {
            "alpha": (alpha * Q / (Q + m.dim_x), f"{why}; times Q / (Q + dim_x)"),
            "Q": (Q, "its default"),
            "mu": (m.size_x / 100 / math.sqrt(m.dim_x), "moves x by 1 %"),
        }

    def update(self, problem, state, generator):
        x, mu = state.x, self.value("mu", state.t)
        # 1. The lower level at x and at Q perturbed points, on the same batches.
        batches = list(lower_batches(problem, generator, self.inner))
        solved = self.solve(problem, state, batches)
        directions = [self.direction(problem, x, generator) for _ in range(self.Q)]
        perturbed = [self.solve(problem, state.replace(x=x + mu * u), batches, perturbed=True) for u in directions]
        responses = [(each.y - solved.y) / mu for each in perturbed]
        # 2. The hypergradient: the direct term, and the change of f through the response to each direction.
        f, _ = losses(problem, x, draw(problem, generator))
        d, f_y = f.gradients(solved.y)
        for u, response in zip(directions, responses, strict=True):
            d = d + (response @ f_y) * u / self.Q
        # 3. One step of x.
        return self.move(problem, solved, x=d)

    def solve(self, problem: BilevelProblem, state: State, batches: Sequence[Any], perturbed: bool = False) -> State:
        """The state after the inner loop; the released variant starts its Adam anew."""
        if self.released and isinstance(adam := self.step_of("y"), Rule):
            state = state.replace(memory=state.memory | {"y": adam.start(state.y)})
        for i, batch in enumerate(batches):
            if self.coasting and perturbed and i > 0:
                state = self.move(problem, state, y=torch.zeros_like(state.y))
            state = self.move(problem, state, y=grad_y(problem.lower, state.x, state.y, batch))
            if self.coasting and not perturbed:
                state = self.move(problem, state, y=torch.zeros_like(state.y))
        return state

    def direction(self, problem: BilevelProblem, x: Tensor, generator: torch.Generator) -> Tensor:
        """u: normal, or of unit norm in each block of x."""
        u = torch.randn(x.shape, generator=generator, dtype=x.dtype).to(x.device)
        if not self.released:
            return u
        blocks = u.split(problem.x_blocks or [len(x)])
        return torch.cat([block / torch.linalg.vector_norm(block) for block in blocks])
