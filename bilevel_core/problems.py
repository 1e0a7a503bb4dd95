"""Two problems with closed forms: Quadratic, in any dimension, and Valley, in one, where everything can be drawn."""

from abc import abstractmethod
from collections import namedtuple

import torch
from torch import Tensor

from bilevel_core.problem import BilevelProblem, Samples, seeded

__all__ = ["Quadratic", "Valley"]


UpperNoise = namedtuple("UpperNoise", "x y")
LowerNoise = namedtuple("LowerNoise", "scale y")


class ClosedForm(BilevelProblem):
    """A problem whose Phi, grad Phi and y* are known."""

    @abstractmethod
    def objective(self, x: Tensor) -> Tensor:
        """Phi(x)."""

    @abstractmethod
    def hypergradient(self, x: Tensor) -> Tensor:
        """grad Phi(x)."""

    @abstractmethod
    def y_star(self, x: Tensor) -> Tensor:
        """The lower-level solution."""

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        objective, slope, error = self.objective(x), self.hypergradient(x).norm(), (y - self.y_star(x)).norm()
        return {"objective": objective.item(), "hypergradient_norm": slope.item(), "lower_error": error.item()}


class Quadratic(ClosedForm):
    """A quadratic problem: y*, v*, the hypergradient and the minimiser in closed form.

        g(x, y) = y'A y / 2 - y'(B x + b)                  A symmetric, eigenvalues evenly over [mu, L]; ||B|| = 1
        f(x, y) = ||y - c||^2 / 2 + rho ||x||^2 / 2

        y*(x) = A^-1 (B x + b),   v*(x, y) = A^-1 (y - c),   grad Phi(x) = rho x + B' A^-1 (y*(x) - c)

    A draw adds noise with mean zero to all of it: g is scaled by 1 + min(noise, 1) z / 2 with z uniform on [-1, 1], so
    that H and J are noisy and g stays strongly convex, and linear terms noise * n with n standard normal are added.
    """

    def __init__(
        self,
        dim_x: int = 5,
        dim_y: int = 10,
        mu: float = 1.0,
        L: float = 3.0,
        rho: float = 0.5,
        noise: float = 0.0,
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
    ):
        if not (0 < mu <= L and rho >= 0 and noise >= 0):
            raise ValueError(f"need 0 < mu <= L and rho, noise >= 0, got {mu}, {L} and {rho}, {noise}")
        self.mu, self.L, self.rho, self.noise, generator = mu, L, rho, noise, seeded(seed)

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64)

        rotation, _ = torch.linalg.qr(normal(dim_y, dim_y))
        A, B = (rotation * torch.linspace(mu, L, dim_y, dtype=torch.float64)) @ rotation.T, normal(dim_y, dim_x)
        self.A, self.B = A.to(dtype), (B / torch.linalg.matrix_norm(B, 2)).to(dtype)
        self.b, self.c, self.x0 = (normal(size).to(dtype) for size in (dim_y, dim_y, dim_x))

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return self.x0.clone(), torch.zeros_like(self.b)

    def sample(self, generator: torch.Generator) -> Samples:
        z = 2 * torch.rand((), generator=generator, dtype=self.b.dtype) - 1
        shapes = self.x0.shape, self.b.shape, self.b.shape
        f_x, f_y, g_y = (self.noise * torch.randn(n, generator=generator, dtype=z.dtype) for n in shapes)
        return Samples(UpperNoise(f_x, f_y), LowerNoise(1 + min(self.noise, 1.0) * z / 2, g_y))

    def full(self) -> Samples:
        zero, one = torch.zeros_like(self.b), torch.ones_like(self.b[0])
        return Samples(UpperNoise(torch.zeros_like(self.x0), zero), LowerNoise(one, zero))

    def upper(self, x: Tensor, y: Tensor, batch: UpperNoise) -> Tensor:
        r = y - self.c
        return (r @ r + self.rho * (x @ x)) / 2 + batch.x @ x + batch.y @ y

    def lower(self, x: Tensor, y: Tensor, batch: LowerNoise) -> Tensor:
        return batch.scale * (y @ (self.A @ y) / 2 - y @ (self.B @ x + self.b)) - batch.y @ y

    def objective(self, x: Tensor) -> Tensor:
        return self.upper(x, self.y_star(x), self.full().upper)

    def y_star(self, x: Tensor) -> Tensor:
        return torch.linalg.solve(self.A, self.B @ x + self.b)

    def v_star(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The solution of H v = grad_y f at (x, y), by default at (x, y*(x))."""
        return torch.linalg.solve(self.A, (self.y_star(x) if y is None else y) - self.c)

    def hypergradient(self, x: Tensor) -> Tensor:
        return self.rho * x + self.B.T @ self.v_star(x)

    @property
    def minimiser(self) -> Tensor:
        """The x where grad Phi = 0 (unique when rho > 0 or B has full column rank)."""
        M = torch.linalg.solve(self.A, self.B)
        curvature = self.rho * torch.eye(len(self.x0), dtype=self.A.dtype) + M.T @ M
        return torch.linalg.solve(curvature, M.T @ (self.c - torch.linalg.solve(self.A, self.b)))


class Valley(ClosedForm):
    """A problem with one x and one y, so that everything can be drawn.

        g(x, y) = cosh(y) - s(x) y,      s(x) = 2 sin(3x / 2)          H = cosh(y) >= 1,  J v = -s'(x) v
        f(x, y) = (y - a)^2 / 2 + c (x - b)^2 / 2

        y*(x) = arsinh s(x),   v*(x, y) = (y - a) / cosh(y),   Phi'(x) = c (x - b) + s'(x) v*(x, y*(x))

    Finite differences with a step delta see H v as cosh(y) sinh(delta v) / delta. A draw adds noise * n y to each loss,
    n standard normal.
    """

    def __init__(
        self,
        a: float = 1.0,
        b: float = -0.8,
        c: float = 0.3,
        noise: float = 0.0,
        start: tuple[float, float] = (-0.4, 1.5),
        dtype: torch.dtype = torch.float64,
    ):
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

    @staticmethod
    def s(x: Tensor) -> Tensor:
        return 2 * torch.sin(1.5 * x)

    def y_star(self, x: Tensor) -> Tensor:
        return torch.arcsinh(self.s(x))

    def v_star(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The solution of H v = grad_y f at (x, y), by default at (x, y*(x))."""
        y = self.y_star(x) if y is None else y
        return (y - self.a) / torch.cosh(y)

    def objective(self, x: Tensor) -> Tensor:
        """Phi, elementwise, as y*, v* and Phi' are: x may hold many points at once."""
        return ((self.y_star(x) - self.a) ** 2 + self.c * (x - self.b) ** 2) / 2

    def hypergradient(self, x: Tensor) -> Tensor:
        return self.c * (x - self.b) + 3 * torch.cos(1.5 * x) * self.v_star(x)
