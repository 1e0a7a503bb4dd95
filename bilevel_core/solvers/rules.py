"""Step rules: what may stand where a rate stands. A plain rate moves z along d to z - rate d; these remember.

    Momentum     m <- momentum m + d,                    z <- z - rate m,    with nesterov  z - rate (d + momentum m)
    Normalised   m <- momentum m + (1 - momentum) d,     z <- z - rate m / ||m||,    no step where m = 0
    Adam         m <- beta1 m + (1 - beta1) d,           s <- beta2 s + (1 - beta2) d^2,         at its k-th step
                 z <- z - rate (m / (1 - beta1^k)) / (sqrt(s / (1 - beta2^k)) + eps)

All memory starts at zero and lies in the state. `rate` is a number or a schedule in the t of the method. An inner loop
goes on with the memory that the last one left, as it would with one optimiser of torch, whose numbers Momentum and Adam
give bit for bit.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.schedules import Rate, Rule
from bilevel_core.solvers.base import POSITIVE, SHARE, STEP, SWITCH, Options, option


class Moments(NamedTuple):
    """What a rule remembers: an average of d; Adam also one of d^2, and how many steps it took."""

    m: Tensor
    s: Any = ()
    k: int = 0


@dataclass(frozen=True)
class Momentum(Options, Rule):
    """Heavy ball, or Nesterov's: torch.optim.SGD with momentum."""

    rate: Rate = option(1e-2, STEP)
    momentum: float = option(0.9, SHARE)
    nesterov: bool = option(False, SWITCH)

    def start(self, z: Tensor) -> Moments:
        return Moments(torch.zeros_like(z))

    def move(self, z: Tensor, d: Tensor, memory: Moments, t: int) -> tuple[Tensor, Moments]:
        m = memory.m * self.momentum + d
        along = torch.add(d, m, alpha=self.momentum) if self.nesterov else m
        return torch.add(z, along, alpha=-self.value("rate", t)), Moments(m)


@dataclass(frozen=True)
class Normalised(Options, Rule):
    """A step of length `rate`: Cutkosky, Mehta (2020), "Momentum improves normalized SGD", as in SLIP for x."""

    rate: Rate = option(1e-2, STEP)
    momentum: float = option(0.0, SHARE)

    def start(self, z: Tensor) -> Moments:
        return Moments(torch.zeros_like(z))

    def move(self, z: Tensor, d: Tensor, memory: Moments, t: int) -> tuple[Tensor, Moments]:
        m = torch.lerp(memory.m, d, 1 - self.momentum)
        norm = torch.linalg.vector_norm(m).clamp_min(torch.finfo(m.dtype).tiny)
        return z - self.value("rate", t) * (m / norm), Moments(m)


@dataclass(frozen=True)
class Adam(Options, Rule):
    """Kingma, Ba (2015), "Adam: a method for stochastic optimization", Algorithm 1; in AdamBO for x."""

    rate: Rate = option(1e-3, STEP)
    beta1: float = option(0.9, SHARE)
    beta2: float = option(0.999, SHARE)
    eps: float = option(1e-8, POSITIVE)

    def start(self, z: Tensor) -> Moments:
        return Moments(torch.zeros_like(z), torch.zeros_like(z))

    def move(self, z: Tensor, d: Tensor, memory: Moments, t: int) -> tuple[Tensor, Moments]:
        k, m = memory.k + 1, torch.lerp(memory.m, d, 1 - self.beta1)
        s = torch.addcmul(memory.s * self.beta2, d, d, value=1 - self.beta2)
        # The clamp is for `reverse`, which differentiates this: the root has no derivative at 0.
        root = s.clamp_min(torch.finfo(s.dtype).tiny).sqrt() / (1 - self.beta2**k) ** 0.5
        size = self.value("rate", t) / (1 - self.beta1**k)
        return torch.addcdiv(z, m, root + self.eps, value=-size), Moments(m, s, k)
