"""The pieces that methods are made of: estimates of v* = H^-1 r, the surrogate, a double loop, recursive momentum.

    neumann      gamma sum_{q=0}^{Q} prod_{j=1}^{q} (I - gamma H_j) r            one batch for each factor, Q of them
    truncated    K gamma prod_{j=1}^{k} (I - gamma H_j) r,  k uniform on 0..K-1  the same in expectation, with Q = K - 1

With independent batches both have the mean  gamma sum_{q=0}^{Q} (I - gamma H)^q r = (I - (I - gamma H)^{Q+1}) H^-1 r,
so that the error of the mean is the tail (I - gamma H)^{Q+1} H^-1 r. They need gamma < 2 / L.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from bilevel_core.directions import hessian_vector
from bilevel_core.losses import Loss, losses
from bilevel_core.problem import BilevelProblem
from bilevel_core.schedules import Power, Rate, Step
from bilevel_core.solvers.base import (
    COUNT,
    POSITIVE,
    STEP,
    SWITCH,
    UNIT,
    Solver,
    State,
    draw,
    lower_batches,
    method,
    option,
    recursive_momentum,
)  # fmt: skip


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

    def update(self, problem: BilevelProblem, state: State, generator: Generator) -> State:
        state = self.inner_loop(problem, state, lower_batches(problem, generator, self.inner, self.full))
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

    def init_memory(self, state: State) -> PairState:
        zero = Pair(torch.zeros_like(state.x), torch.zeros_like(state.y))
        return PairState(**vars(state), before=Pair(state.x, state.y), h=zero)


@method
class PairMomentum(PairSolver):
    """Recursive momentum on d = (G, grad_y g), where G is the surrogate with a v of its own at every point."""

    alpha: Step = option(Power(0.2), STEP, "step of x")
    beta: Step = option(Power(0.5), STEP, "step of y")
    eta: Rate = option(Power(1.0, 7.0, 2 / 3, cap=1.0), UNIT, "weight of the newest estimate, 1 is no momentum")
    eta_series: float = option(0.3, POSITIVE, "gamma of the factors I - gamma H, below 2 / L")

    def update(self, problem: BilevelProblem, state: PairState, generator: Generator) -> PairState:
        here, eta, factors = Pair(state.x, state.y), self.momentum_weight(state.t), self.factors(generator)
        samples, batches = draw(problem, generator), list(lower_batches(problem, generator, factors))

        def estimate(at: Pair) -> tuple[Pair, Tensor]:
            f, g = losses(problem, at.x, samples)
            G, v = surrogate(f, g, at.y, lambda r: self.solve(problem, at, r, batches))
            return Pair(G, g.grad_y(at.y)), v

        h, v = estimate(here)
        if eta < 1:
            h = recursive_momentum(h, state.h, estimate(state.before)[0], eta)
        return self.move(problem, state, x=h.x, y=h.y).replace(v=v, before=here, h=h)

    @abstractmethod
    def factors(self, generator: Generator) -> int:
        """How many factors I - gamma H this step takes."""

    @abstractmethod
    def solve(self, problem: BilevelProblem, at: Pair, r: Tensor, batches: list[Any]) -> Tensor:
        """The v near H^-1 r at a point, with a factor for each batch."""
