"""The pieces that methods are made of: estimates of v* = H^-1 r, the surrogate, a double loop, recursive momentum.

    neumann      gamma sum_{q=0}^{Q} prod_{j=1}^{q} (I - gamma H_j) r            one batch for each factor, Q of them
    truncated    K gamma prod_{j=1}^{k} (I - gamma H_j) r,  k uniform on 0..K-1  the same in expectation, with Q = K - 1

With independent batches both have the mean  gamma sum_{q=0}^{Q} (I - gamma H)^q r = (I - (I - gamma H)^{Q+1}) H^-1 r,
so that the error of the mean is the tail (I - gamma H)^{Q+1} H^-1 r. They need gamma < 2 / L.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from bilevel_book.methods.losses import Loss, losses
from bilevel_core.counting import count
from bilevel_core.directions import grad_y, hessian_vector
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Step
from bilevel_core.solvers.base import COUNT, STEP, SWITCH, Solver, State, draw, method, option


def lower_batches(problem: BilevelProblem, generator: torch.Generator, n: int, full: bool = False) -> Iterator[Any]:
    """The lower batches of n draws, made as they are asked for; their upper batches are not used, and not counted."""
    for _ in range(n):
        batch = (problem.full() if full else problem.sample(generator)).lower
        count(samples=problem.size(batch))
        yield batch


def neumann(problem: BilevelProblem, x: Tensor, y: Tensor, r: Tensor, batches: Iterable[Any], gamma: float) -> Tensor:
    """The Neumann sum for H^-1 r: a factor I - gamma H for each batch, or for each lower loss made at x before."""
    total = r
    for batch in batches:
        Hr = batch.hessian_vector(y, r) if isinstance(batch, Loss) else hessian_vector(problem, x, y, r, batch)
        r = r - gamma * Hr
        total = total + r
    return gamma * total


def truncated(
    problem: BilevelProblem, x: Tensor, y: Tensor, r: Tensor, batches: Iterable[Any], gamma: float, K: int
) -> Tensor:
    """One term of that sum, as many factors long as there are batches, times K."""
    for batch in batches:
        r = r - gamma * hessian_vector(problem, x, y, r, batch)
    return K * gamma * r


def surrogate(f: Loss, g: Loss, y: Tensor, solve: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """grad_x f - J v at y, and the v in it: what `solve` makes of grad_y f."""
    f_x, f_y = f.gradients(y)
    v = solve(f_y)
    return f_x - g.jacobian_vector(y, v), v


@method
class DoubleLoop(Solver[State]):
    """A method that takes several steps of y, then makes v in its own way, then takes one step of x."""

    alpha: Step = option(Power(0.2, p=1 / 2), STEP, "step of x")
    beta: Step = option(Power(0.5, p=1 / 2), STEP, "step of y")
    inner: int = option(5, COUNT, "steps of y for one of x")
    full: bool = option(False, SWITCH, "whether every call sees all the data")

    def update(self, problem, state, generator):
        for batch in lower_batches(problem, generator, self.inner, self.full):
            state = self.move(problem, state, y=grad_y(problem.lower, state.x, state.y, batch))
        f, g = losses(problem, state.x, draw(problem, generator, self.full))
        f_x, f_y = f.gradients(state.y)
        state = self.solve(problem, state, f_y, g, generator)
        return self.move(problem, state, x=f_x - g.jacobian_vector(state.y, state.v))

    @abstractmethod
    def solve(self, problem: BilevelProblem, state: State, f_y: Tensor, g: Loss, generator: Generator) -> State:
        """The state with a v near H^-1 f_y; g is the lower loss on the draw of J."""


class Pair(NamedTuple):
    """A point (x, y), or an estimate for each of the two."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class PairState(State):
    """Also the point where the estimates h were last taken, and h."""

    before: Pair
    h: Pair


@method
class PairSolver(Solver[PairState]):
    """A method that estimates for x and y; at first there is no past."""

    state_type = PairState

    def init_memory(self, state):
        zero = Pair(torch.zeros_like(state.x), torch.zeros_like(state.y))
        return PairState(**vars(state), before=Pair(state.x, state.y), h=zero)
