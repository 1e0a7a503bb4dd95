"""Estimates of v* = H^-1 r by short sums and products of I - eta H, and the hypergradient that they give.

    neumann        eta sum_{q=0}^{Q} prod_{j=1}^{q} (I - eta H_j) r            one H_j for each factor, Q of them
    truncated      K eta prod_{j=1}^{k} (I - eta H_j) r,   k uniform on 0..K-1   the same in expectation, with Q = K - 1

With independent batches both have the mean  eta sum_{q=0}^{Q} (I - eta H)^q r = (I - (I - eta H)^{Q+1}) H^-1 r,  so
the error of the mean is the tail (I - eta H)^{Q+1} H^-1 r. They need eta < 2 / L.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.directions import grad_x, hessian_vector, jacobian_vector
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.solvers.solver import draw, draw_lower


class SeriesSamples(NamedTuple):
    """What one estimate is made of: a draw for f, g and J, and a lower batch for each factor I - eta H."""

    first: Samples
    hessians: tuple[Any, ...]


def draw_series(problem: BilevelProblem, generator: torch.Generator, factors: int) -> SeriesSamples:
    first = draw(problem, generator)
    return SeriesSamples(first, tuple(draw_lower(problem, generator) for _ in range(factors)))


def neumann(problem: BilevelProblem, x: Tensor, y: Tensor, r: Tensor, batches: tuple[Any, ...], eta: float) -> Tensor:
    total = r
    for batch in batches:
        r = r - eta * hessian_vector(problem, x, y, r, batch)
        total = total + r
    return eta * total


def truncated(
    problem: BilevelProblem, x: Tensor, y: Tensor, r: Tensor, batches: tuple[Any, ...], eta: float, K: int
) -> Tensor:
    for batch in batches:
        r = r - eta * hessian_vector(problem, x, y, r, batch)
    return K * eta * r


def uniform(generator: torch.Generator, K: int) -> int:
    """k uniform on 0..K-1."""
    return int(torch.randint(K, (), generator=generator))


def surrogate(problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples) -> Tensor:
    """grad_x f - J v."""
    return grad_x(problem.upper, x, y, samples.upper) - jacobian_vector(problem, x, y, v, samples.lower)
