"""The frame of the methods that solve, roughly, before they step.

1. y: `inner` stochastic gradient steps on g(x, .), from the last y
2. v: an estimate of H^-1 grad_y f at the new y, which is what these methods differ in
3. x: one step along grad_x f - J v
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from bilevel_core.directions import grad_y
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.schedules import Power, Rate
from bilevel_core.solvers.series import surrogate
from bilevel_core.solvers.solver import COUNT, POSITIVE, Solver, State, draw, draw_lower, generator_at, option


@dataclass(frozen=True, kw_only=True)
class InnerLoop(Solver):
    """The options of the first loop, and where batches come from."""

    alpha: Rate = option(Power(0.2, p=1 / 2), POSITIVE)
    beta: Rate = option(Power(0.5, p=1 / 2), POSITIVE)
    inner: int = option(5, COUNT)

    def samples(self, problem: BilevelProblem, generator: torch.Generator) -> Samples:
        """The draw for f and for J."""
        return draw(problem, generator)

    def lower_batch(self, problem: BilevelProblem, generator: torch.Generator) -> Any:
        """The batch for one gradient or Hessian of g."""
        return draw_lower(problem, generator)


@dataclass(frozen=True, kw_only=True)
class DoubleLoop(InnerLoop):
    def step(self, problem: BilevelProblem, state: State) -> State:
        generator, x = generator_at(state), state.x
        alpha, beta = self.at(state.t, "alpha", "beta")
        y = state.y
        for _ in range(self.inner):
            y = y - beta * grad_y(problem.lower, x, y, self.lower_batch(problem, generator))
        samples = self.samples(problem, generator)
        f_y = grad_y(problem.upper, x, y, samples.upper)
        v = self.solve(problem, x, y, f_y, state, generator)
        x_new = x - alpha * surrogate(problem, x, y, v, samples)
        return replace(state, x=x_new, y=y, v=v, t=state.t + 1, rng=generator.get_state())

    @abstractmethod
    def solve(
        self, problem: BilevelProblem, x: Tensor, y: Tensor, f_y: Tensor, state: State, generator: torch.Generator
    ) -> Tensor:
        """An estimate of H(x, y)^-1 f_y."""
