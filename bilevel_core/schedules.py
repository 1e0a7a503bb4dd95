"""Step sizes. A plain float is a constant, any callable t -> float is a schedule, and a rule remembers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Moments(NamedTuple):
    """What a step rule remembers, zero at first: an average of d; Adam also one of d^2, and how many steps it took."""

    m: Tensor
    s: Any = ()
    k: int = 0


class Rule:
    """How to move a variable z along d with a memory of earlier steps, where a plain rate would make it z - rate d."""

    def start(self, z: Tensor) -> Any:
        """The memory before the first step, here of an average of d; any NamedTuple of tensors and numbers will do."""
        return Moments(torch.zeros_like(z))

    def move(self, z: Tensor, d: Tensor, memory: Any, t: int) -> tuple[Tensor, Any]:
        """z after the step at time t, and the memory after it; nothing is changed in place."""
        raise NotImplementedError


Rate = float | Callable[[int], float]
Step = Rate | Rule


@dataclass(frozen=True)
class Power:
    """min(cap, c (w + t)^-p): p = 1/3 for the steps of the theorems, p = 2/3 for eta; 0.1 * Power(c) is a tenth."""

    c: float = 1.0
    w: float = 8.0
    p: float = 1 / 3
    cap: float = float("inf")

    def __post_init__(self) -> None:
        if not (self.c > 0 and self.w > 0 and self.cap > 0 and math.isfinite(self.p)):
            raise ValueError(f"a Power schedule needs c, w and cap positive and a finite p, got {self}")

    def __call__(self, t: int) -> float:
        return min(self.cap, self.c * (self.w + t) ** -self.p)

    def __rmul__(self, factor: float) -> "Power":
        return Power(self.c * factor, self.w, self.p, self.cap * factor)
