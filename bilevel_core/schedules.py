"""Step sizes that change with t. Any callable t -> float is a schedule; a plain float stands for a constant."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

Rate = float | Callable[[int], float]


@dataclass(frozen=True)
class Power:
    """min(cap, c (w + t)^-p): p = 1/3 for the steps of the theorems, p = 2/3 for eta."""

    c: float = 1.0
    w: float = 8.0
    p: float = 1 / 3
    cap: float = float("inf")

    def __post_init__(self) -> None:
        if not (self.c > 0 and self.w > 0 and self.cap > 0):
            raise ValueError(f"a Power schedule needs c, w and cap positive, got {self}")

    def __call__(self, t: int) -> float:
        return min(self.cap, self.c * (self.w + t) ** -self.p)


@dataclass(frozen=True)
class Steps:
    """values[k] from time at[k - 1] on: a step size that is cut at given times."""

    values: tuple[float, ...]
    at: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.at) + 1 or list(self.at) != sorted(set(self.at)):
            raise ValueError(f"a Steps schedule needs increasing times and one more value than times, got {self}")

    def __call__(self, t: int) -> float:
        return self.values[bisect_right(self.at, t)]


def theorem(
    w: float = 8.0, c_alpha: float = 1.0, c_beta: float = 1.0, c_lam: float = 1.0, c_eta: float = 1.0
) -> dict[str, Power]:
    """The form of Theorems 1 and 2, as keyword arguments of FMBO and FdeHBO:

        alpha_t = c_alpha (w + t)^-1/3,  beta_t = c_beta (w + t)^-1/3,  lam_t = c_lam (w + t)^-1/3,
        eta_{t+1} = c_eta (w + t)^-2/3,  capped at 1 (eta_0 = 1 always).

    The paper has c_alpha = 1. The proof's own constants are far too large to run; these are practical ones.
    """
    if not w > 1:
        raise ValueError(f"the theorem's schedules need w > 1, got {w}")
    return {
        "alpha": Power(c_alpha, w),
        "beta": Power(c_beta, w),
        "lam": Power(c_lam, w),
        "eta": Power(c_eta, w - 1, 2 / 3, cap=1.0),
    }


def at(rate: Rate, t: int) -> float:
    """The value of a float or a schedule at time t."""
    return rate(t) if callable(rate) else rate
