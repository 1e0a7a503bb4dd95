"""Step sizes. A plain float is a constant, any callable t -> float is a schedule, and a rule remembers."""

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any

from torch import Tensor

from bilevel_core.checks import is_number


class Rule:
    """How to move a variable z along d with a memory of earlier steps, where a plain rate would make it z - rate d."""

    def start(self, z: Tensor) -> Any:
        """The memory before the first step: a NamedTuple of tensors and numbers, which a checkpoint can hold."""
        raise NotImplementedError

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
        numbers = all(map(is_number, astuple(self)))
        if not (numbers and self.c > 0 and self.w > 0 and self.cap > 0 and math.isfinite(self.p)):
            raise ValueError(f"a Power schedule needs numbers, c, w and cap positive, got {self}")

    def __call__(self, t: int) -> float:
        return min(self.cap, self.c * (self.w + t) ** -self.p)

    def __mul__(self, factor: float) -> "Power":
        return Power(self.c * factor, self.w, self.p, self.cap * factor)

    __rmul__ = __mul__


def theorem(
    w: float = 8.0, c_alpha: float = 1.0, c_beta: float = 1.0, c_lam: float = 1.0, c_eta: float = 1.0
) -> dict[str, Power]:
    """The form of Theorems 1 and 2, as keyword arguments of FMBO and FdeHBO:

        alpha_t = c_alpha (w + t)^-1/3,  beta_t = c_beta (w + t)^-1/3,  lam_t = c_lam (w + t)^-1/3,
        eta_{t+1} = c_eta (w + t)^-2/3,  capped at 1 (eta_0 = 1 always).

    The paper has c_alpha = 1. The proof's own constants are far too large to run; these are practical ones.
    """
    if not (is_number(w) and w > 1):
        raise ValueError(f"the theorem's schedules need w > 1, got {w!r}")
    eta = Power(c_eta, w - 1, 2 / 3, cap=1.0)
    return {"alpha": Power(c_alpha, w), "beta": Power(c_beta, w), "lam": Power(c_lam, w), "eta": eta}


def value_at(rate: Rate, t: int) -> float:
    """The value of a float or a schedule at time t."""
    return rate(t) if callable(rate) else rate
