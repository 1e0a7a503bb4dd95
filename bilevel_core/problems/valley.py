"""A problem with one x and one y, so that everything can be drawn.

    g(x, y) = cosh(y) - s(x) y,      s(x) = 2 sin(3x / 2)          H = cosh(y) >= 1,  J v = -s'(x) v
    f(x, y) = (y - a)^2 / 2 + c (x - b)^2 / 2

    y*(x) = arsinh s(x),   v*(x, y) = (y - a) / cosh(y),   Phi'(x) = c (x - b) + s'(x) v*(x, y*(x))

The lower level is a winding valley. g is not quadratic, so finite differences with a step delta have an error, and it
is known too: they see H v as cosh(y) sinh(delta v) / delta. A draw adds noise * n y to each loss, n standard normal.
With c = 0 the upper loss depends on y alone, as in data hyper-cleaning.
"""

import torch
from torch import Tensor

from bilevel_core.allowed import FINITE
from bilevel_core.problem import BilevelProblem, Samples


class Valley(BilevelProblem):
    __doc__ = __doc__
    shares_x = False

    def __init__(
        self,
        a: float = 1.0,
        b: float = -0.8,
        c: float = 0.3,
        noise: float = 0.0,
        start: tuple[float, float] = (-0.4, 1.5),
        dtype: torch.dtype = torch.float64,
    ):
        FINITE.check(a=a, b=b, c=c, noise=noise, x_0=start[0], y_0=start[1])
        if not (c >= 0 and noise >= 0):
            raise ValueError(f"c and noise must not be negative, got {c} and {noise}")
        self.a, self.b, self.c, self.noise, self.first, self.dtype = a, b, c, noise, start, dtype

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = (torch.tensor([value], dtype=self.dtype) for value in self.first)
        return x, y

    def sample(self, generator: torch.Generator) -> Samples:
        return Samples(*(self.noise * torch.randn(2, generator=generator, dtype=self.dtype)))

    def full(self) -> Samples:
        return Samples(*torch.zeros(2, dtype=self.dtype))

    def upper(self, x: Tensor, y: Tensor, batch: Tensor) -> Tensor:
        return (((y - self.a) ** 2 + self.c * (x - self.b) ** 2) / 2 + batch * y).sum()

    def lower(self, x: Tensor, y: Tensor, batch: Tensor) -> Tensor:
        return (torch.cosh(y) - (self.s(x) + batch) * y).sum()

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        return {
            "objective": self.objective(x).item(),
            "hypergradient_norm": self.hypergradient(x).abs().item(),
            "lower_error": (y - self.y_star(x)).abs().item(),
        }

    @staticmethod
    def s(x: Tensor) -> Tensor:
        return 2 * torch.sin(1.5 * x)

    def y_star(self, x: Tensor) -> Tensor:
        return torch.arcsinh(self.s(x))

    def v_star(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        y = self.y_star(x) if y is None else y
        return (y - self.a) / torch.cosh(y)

    def objective(self, x: Tensor) -> Tensor:
        """Phi, elementwise: x may hold many points at once."""
        return ((self.y_star(x) - self.a) ** 2 + self.c * (x - self.b) ** 2) / 2

    def hypergradient(self, x: Tensor) -> Tensor:
        """Phi', elementwise."""
        return self.c * (x - self.b) + 3 * torch.cos(1.5 * x) * self.v_star(x)
