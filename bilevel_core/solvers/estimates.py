"""The pieces that methods are made of: loops on y, estimates of v* = H^-1 r, and recursive momentum.

    inner_loop     y <- y - beta grad_y g(x, y)                               one batch for each step
    neumann        eta sum_{q=0}^{Q} prod_{j=1}^{q} (I - eta H_j) r           one batch for each factor, Q of them
    truncated      K eta prod_{j=1}^{k} (I - eta H_j) r,   k uniform on 0..K-1   the same in expectation, with Q = K - 1

With independent batches the last two have the mean  eta sum_{q=0}^{Q} (I - eta H)^q r = (I - (I - eta H)^{Q+1}) H^-1 r,
so that the error of the mean is the tail (I - eta H)^{Q+1} H^-1 r. They need eta < 2 / L.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from bilevel_core.directions import Loss, grad_y, hessian_vector
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.solver import State


def inner_loop(problem: BilevelProblem, x: Tensor, y: Tensor, batches: Iterable[Any], beta: float) -> Tensor:
    """Stochastic gradient descent on g(x, .), from y."""
    for batch in batches:
        y = y - beta * grad_y(problem.lower, x, y, batch)
    return y


def neumann(problem: BilevelProblem, x: Tensor, y: Tensor, r: Tensor, batches: Iterable[Any], eta: float) -> Tensor:
    """The Neumann sum for H^-1 r, with one factor I - eta H for each batch, or for each lower loss made at x before."""
    total = r
    for batch in batches:
        Hr = batch.hessian_vector(y, r) if isinstance(batch, Loss) else hessian_vector(problem, x, y, r, batch)
        r = r - eta * Hr
        total = total + r
    return eta * total


def truncated(
    problem: BilevelProblem, x: Tensor, y: Tensor, r: Tensor, batches: Iterable[Any], eta: float, K: int
) -> Tensor:
    """One term of that sum, as many factors long as there are batches, times K."""
    for batch in batches:
        r = r - eta * hessian_vector(problem, x, y, r, batch)
    return K * eta * r


def uniform(generator: torch.Generator, K: int) -> int:
    """k uniform on 0..K-1."""
    return int(torch.randint(K, (), generator=generator))


class Pair(NamedTuple):
    """A point (x, y), or an estimate for each of the two."""

    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class PairState(State):
    """Also the point where the estimates h were last taken, and h."""

    before: Pair
    h: Pair


def remember_pair(state: State) -> PairState:
    """A first state of the methods that estimate for x and y: no past yet."""
    zero = Pair(torch.zeros_like(state.x), torch.zeros_like(state.y))
    return PairState(**vars(state), before=Pair(state.x, state.y), h=zero)


Estimate = TypeVar("Estimate")


def recursive_momentum(now: Estimate, past: Estimate, before: Estimate, eta: float) -> Estimate:
    """h_t = d_t(now) + (1 - eta) (h_{t-1} - d_t(before)), for a tensor d or each of a named tuple of them.

    d_t(now) and d_t(before) are on the same samples. With eta = 1 nothing of the past is left.
    """

    def blend(d: Any, h: Any, b: Any) -> Any:
        return torch.add(d, h - b, alpha=1 - eta)

    parts: Any = now, past, before
    return blend(*parts) if isinstance(now, Tensor) else type(parts[0])(*map(blend, *parts))
