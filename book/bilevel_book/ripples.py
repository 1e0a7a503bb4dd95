"""Many copies of one small problem side by side: nonconvex, and with everything in closed form.

In each copy x and y have `dim` entries, and with a = linspace(mu, L), one number for each entry,

    g(x, y) = sum of  a y^2 / 2 - x y                                                   H = a,   J v = -v
    f(x, y) = sum of  sqrt(1 + y^2) - r cos(y) + tilt x

    y*(x) = x / a,   v*(x, y) = [y / sqrt(1 + y^2) + r sin(y)] / a,   grad Phi(x) = tilt + v*(x, y*(x))

Phi is a valley with straight sides and ripples on them, so its second derivative changes sign again and again. Its
gradient and grad_y f are bounded. g is quadratic in y: finite differences in y are exact for every delta.

A draw scales g by 1 + min(noise, 1) z / 2 and adds the linear terms noise * n to f (in x and y) and to g (in y), each
entry on its own; z is uniform on [-1, 1], n is uniform with variance 1. So every sample is smooth, and strongly convex
in y. The variance of grad_y g grows with the distance of y from y*.

The losses of the stack are the sums over its copies. A method that treats all entries alike (no norm, no projection)
does on the stack, step by step, what it would do on each copy alone: many independent runs for the price of one.
`noise` and `start` may hold one number for each copy.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bilevel_core.checks import COUNT
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.problems import LowerNoise, UpperNoise


class Ripples(BilevelProblem):
    def __init__(
        self,
        copies: int = 8,
        dim: int = 4,
        noise: float | Sequence[float] = 0.5,
        start: float | Sequence[float] = 0.0,
        mu: float = 1.0,
        L: float = 1.5,
        r: float = 0.6,
        tilt: float = 0.25,
    ):
        COUNT.check(copies=copies, dim=dim)
        if not 0 < mu <= L:
            raise ValueError(f"need 0 < mu <= L, got mu = {mu}, L = {L}")
        # Otherwise Phi has no minimiser: its sides have the slopes tilt + 1/a and tilt - 1/a, give or take r/a.
        if not (r >= 0 and r + L * abs(tilt) < 1):
            raise ValueError(f"need r >= 0 and r + L |tilt| < 1, got r = {r}, L = {L}, tilt = {tilt}")
        self.copies, self.dim, self.r, self.tilt = copies, dim, r, tilt
        self.a = torch.linspace(mu, L, dim, dtype=torch.float64).repeat(copies)
        self.x0, self.noise = self._entries("start", start), self._entries("noise", noise)
        if not (self.noise >= 0).all():
            raise ValueError(f"noise must not be negative, got {noise}")
        self.one = torch.ones((), dtype=torch.float64)
        self.names = [f"copy {copy}" for copy in range(copies)]

    def _entries(self, name: str, value: float | Sequence[float]) -> Tensor:
        """One number for each entry of x, from one for all copies or one for each."""
        numbers = torch.as_tensor(value, dtype=torch.float64)
        if numbers.shape not in ((), (self.copies,)) or not numbers.isfinite().all():
            raise ValueError(f"{name} must be a finite number, or {self.copies} of them, one a copy; got {value}")
        return numbers.expand(self.copies).repeat_interleave(self.dim)

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """x_0 as given and y_0 = y*(x_0), so that only x has a way to go."""
        return self.x0.clone(), self.y_star(self.x0)

    def sample(self, generator: torch.Generator) -> Samples:
        z, *n = 2 * torch.rand(4, len(self.a), generator=generator, dtype=torch.float64) - 1
        f_x, f_y, g_y = (3**0.5 * self.noise * part for part in n)
        return Samples(UpperNoise(f_x, f_y), LowerNoise(1 + self.noise.clamp(max=1) * z / 2, g_y))

    def full(self) -> Samples:
        zero = torch.zeros_like(self.a)
        return Samples(UpperNoise(zero, zero), LowerNoise(1 + zero, zero))

    def upper(self, x: Tensor, y: Tensor, batch: UpperNoise) -> Tensor:
        return self._bowl(y).sum() + (self.tilt + batch.x) @ x + batch.y @ y

    def lower(self, x: Tensor, y: Tensor, batch: LowerNoise) -> Tensor:
        return (batch.scale * (self.a * y / 2 - x) - batch.y) @ y

    def _bowl(self, y: Tensor) -> Tensor:
        return torch.hypot(y, self.one) - self.r * torch.cos(y)

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Means over the copies."""
        return {
            "objective": self.objective(x).mean().item(),
            "squared_norm": self.squared_norm(x).mean().item(),
            "lower_error": self.each(y - self.y_star(x)).norm(dim=1).mean().item(),
        }

    def each(self, entries: Tensor) -> Tensor:
        """A flat vector as a table with one row for each copy."""
        return entries.view(self.copies, self.dim)

    def y_star(self, x: Tensor) -> Tensor:
        return x / self.a

    def v_star(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The solution of H v = grad_y f at (x, y), by default at (x, y*(x))."""
        y = self.y_star(x) if y is None else y
        return (y / torch.hypot(y, self.one) + self.r * torch.sin(y)) / self.a

    def objective(self, x: Tensor) -> Tensor:
        """Phi(x), one number for each copy."""
        return self.each(self._bowl(self.y_star(x)) + self.tilt * x).sum(1)

    def hypergradient(self, x: Tensor) -> Tensor:
        """grad Phi(x), flat."""
        return self.tilt + self.v_star(x)

    def squared_norm(self, x: Tensor) -> Tensor:
        """||grad Phi(x)||^2, one number for each copy."""
        return self.each(self.hypergradient(x)).square().sum(1)
