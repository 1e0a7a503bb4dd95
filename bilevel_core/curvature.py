"""How a problem curves, which decides what steps are stable. First-order gradients are enough for all of it."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from bilevel_core.counting import counting
from bilevel_core.directions import Directions, finite_difference, grad_y, hessian_vector
from bilevel_core.problem import BilevelProblem, Samples, seeded

POWER, TOWARDS, FOLLOW, DRAWS = 10, 30, 20, 5  # iterations for L, steps to y* and v*, steps after x, draws for a mean
INERTIA = 0.8


def top_eigenvalue(
    problem: BilevelProblem, x: Tensor, y: Tensor, batch: Any, steps: int = 15, delta: float | None = None
) -> float:
    """L, the largest eigenvalue of H on one batch, by power iteration; a plain step of y or v is stable below 2 / L."""
    u = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype).to(y.device)
    for _ in range(steps):
        u = hessian_vector(problem, x, y, normalize(u, dim=0), batch, delta)
    return _norm(u)


class Curvature(NamedTuple):
    """A problem at its start, as `measure` sees it, with means over a few draws."""

    L: float  # the largest curvature of g on a batch
    mu: float  # the curvature of g along the way that y goes when x moves
    ratio: float  # the curvature of f over that of g, along v
    norm_v: float  # ||v||
    delta: float  # for finite differences: moves y along v by the cube root of the machine epsilon, times its size
    dim_x: int
    size_x: float  # ||x||, or the root of its dimension where x = 0
    slope: float  # ||d_x||
    noise_x: float  # the standard deviation of d_x on a draw
    noise: float  # the largest of those of d_y, d_v and d_x, over the mean
    direct: float  # the curvature of Phi along d_x while y and v stand still
    implicit: float  # what it changes by when they have followed
    gradients: int  # what all this cost


class _Moving(NamedTuple):
    y: Tensor
    v: Tensor
    speed_y: Tensor
    speed_v: Tensor


def measure(problem: BilevelProblem, seed: int = 0) -> Curvature:
    """Follow y and v at the first x, then move x against d_x by a hundredth of its size and follow them again.

    y and v go towards y*(x) and v*(x) by steps 1 / L with inertia, so that 20 of them do the work of 100 without;
    power iterations on the same batches find L on the way.
    """
    generator = seeded(seed)
    x, y = (z.detach().clone() for z in problem.start(generator))
    v, u = torch.zeros_like(y), torch.randn(y.shape, generator=generator, dtype=y.dtype).to(y.device)

    def delta(y: Tensor, v: Tensor) -> float:
        h = torch.finfo(y.dtype).eps ** (1 / 3) * max(1.0, _norm(y)) / (_norm(v) or 1.0)
        return h if 0 < h < math.inf else 1.0  # y and v may blow up: then all that is measured is nan

    def directions(x: Tensor, y: Tensor, v: Tensor, samples: Samples) -> Directions:
        return finite_difference(problem, x, y, v, samples, delta(y, v))

    def on_draws(x: Tensor, y: Tensor, v: Tensor) -> Directions:
        return Directions(*map(torch.stack, zip(*(directions(x, y, v, each) for each in draws), strict=True)))

    def followed(x: Tensor, at: _Moving, samples: Samples) -> _Moving:
        d, step = directions(x, at.y, at.v, samples), 1 / (L or math.inf)
        speed_y, speed_v = INERTIA * at.speed_y - step * d.y, INERTIA * at.speed_v - step * d.v
        return _Moving(at.y + speed_y, at.v + speed_v, speed_y, speed_v)

    def product(z: Tensor, samples: Samples) -> Tensor:
        return hessian_vector(problem, x, here.y, z, samples.lower, delta(here.y, z))

    L, here = 0.0, _Moving(y, v, v, v)
    with counting() as calls:
        for t in range(POWER + TOWARDS):
            samples = problem.sample(generator)
            u = product(normalize(u, dim=0), samples)
            L = max(_norm(u), L if t > POWER / 2 else 0.0)
            here = followed(x, here, samples) if t >= POWER else here
        draws = [problem.sample(generator) for _ in range(DRAWS)]
        found = on_draws(x, here.y, here.v)
        mean, size_x = found.x.mean(0), _norm(x) or math.sqrt(len(x))
        down, far = -normalize(mean, dim=0), size_x / 100
        x_moved, there = x + far * down, here
        direct = on_draws(x_moved, here.y, here.v).x.mean(0) - mean
        for _ in range(FOLLOW):
            samples = problem.sample(generator)
            here, there = followed(x, here, samples), followed(x_moved, there, samples)
        y, v = here.y, here.v
        turn = (on_draws(x_moved, there.y, there.v).x - on_draws(x, y, v).x).mean(0)
        way, h = normalize(there.y - y, dim=0), delta(y, v)
        mu, curve_v = (sum((z @ product(z, each)).item() for each in draws) / DRAWS for z in (way, v))
        ahead, behind = (grad_y(problem.upper, x, y + step * v, draws[0].upper) for step in (h, -h))
    ratio = (v @ (ahead - behind)).item() / (2 * h * curve_v or 1.0)
    noise_y, noise_v, noise_x = (_norm(d - d.mean(0)) / math.sqrt(DRAWS - 1) for d in found)
    noise = max(n / (_norm(d.mean(0)) or 1.0) for n, d in zip((noise_y, noise_v, noise_x), found, strict=True))
    # A mean over draws is longer than what it estimates, by its share of the noise.
    slope = math.sqrt(max(_norm(mean) ** 2 - noise_x**2 / DRAWS, _norm(mean) ** 2 / 100))
    first, then = ((down @ z).item() / far for z in (direct, turn - direct))
    return Curvature(L, mu, ratio, _norm(v), h, len(x), size_x, slope, noise_x, noise, first, then, calls.gradients)


def _norm(z: Tensor) -> float:
    return torch.linalg.vector_norm(z).item()
