"""Problems on which every constant of the paper is known by formula and every expectation is a finite sum.

`spd` makes the matrices of a linear system with a given spectrum. `LogCoshFamily` is a stochastic bilevel problem
with n equally likely samples: an average over all of them IS the expectation, so that an inequality "in expectation"
can be checked to rounding. Its smallest members, one for each misprint of the paper, are in examples.py.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_book.theory.constants import ProblemConstants
from bilevel_core.directions import Directions, Point
from bilevel_core.problem import BilevelProblem, Samples

MAX_TANH_2 = 4 / (3 * math.sqrt(3))  # the largest |tanh''|, at tanh^2 = 1/3
MAX_TANH_3 = 2.0  # the largest |tanh'''|, at 0


def log_cosh(z: Tensor) -> Tensor:
    return torch.logaddexp(z, -z) - math.log(2)


def normal(*shape: int, generator: torch.Generator) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def spd(mu: float, L: float, d: int, generator: torch.Generator) -> Tensor:
    """A random symmetric d x d matrix whose smallest and largest eigenvalues are mu and L."""
    if not 0 < mu <= L or (d == 1 and mu != L):
        raise ValueError(f"no symmetric {d} x {d} matrix has the extreme eigenvalues {mu} and {L} > 0")
    spectrum = mu * (L / mu) ** torch.rand(d, generator=generator, dtype=torch.float64)
    spectrum[0], spectrum[-1] = mu, L
    Q = torch.linalg.qr(normal(d, d, generator=generator)).Q
    H = (Q * spectrum) @ Q.T
    return (H + H.T) / 2


@dataclass(frozen=True, kw_only=True)
class Constants(ProblemConstants):
    """The constants of the assumptions, in the mean square over the samples, and two that the paper does not have.

    M4_H, M4_J bound the second derivatives of H = g_yy and J = g_xy in y: central differences like them.
    """

    M4_H: float
    M4_J: float


class Ridges(NamedTuple):
    """sum_k weight_k log cosh(y_k . y + x_k . x + shift_ik) for each sample i: smooth, curved, with bounded slope."""

    weight: Tensor  # (k,)
    y: Tensor  # (k, dim_y)
    x: Tensor  # (k, dim_x)
    shift: Tensor  # (n, k)

    def value(self, x: Tensor, y: Tensor) -> Tensor:
        return log_cosh(self._z(x, y)) @ self.weight

    def slope(self, x: Tensor, y: Tensor) -> Tensor:
        """First derivatives along the ridges' own directions, (n, k)."""
        return self.weight * torch.tanh(self._z(x, y))

    def bend(self, x: Tensor, y: Tensor) -> Tensor:
        """Second derivatives along the ridges' own directions, (n, k)."""
        return self.weight * (1 - torch.tanh(self._z(x, y)) ** 2)

    def sizes(self) -> list[tuple[float, float, float, float]]:
        """(|weight_k|, |y_k|, |x_k|, |(y_k, x_k)|) of every ridge, of which all constants are made."""
        along_y, along_x = self.y.norm(dim=1), self.x.norm(dim=1)
        return torch.stack((self.weight.abs(), along_y, along_x, torch.hypot(along_y, along_x)), dim=1).tolist()

    def _z(self, x: Tensor, y: Tensor) -> Tensor:
        return self.y @ y + self.x @ x + self.shift


class Variances(NamedTuple):
    """The squared sigmas of as:sf, exact at one point."""

    f_x: float
    f_y: float
    g: float
    g_xy: float
    g_yy: float


class LogCoshFamily(BilevelProblem):
    """n samples, all derivatives and all constants by formula.

        g_i(x, y) = y' A_i y / 2 - y' B_i x - b_i' y + sum_k c_k lc(a_k' y + r_k' x + s_ik),    c_k >= 0
        f_i(x, y) = sum_k c'_k lc(p_k' x + q_k' y + u_ik) + l_i' y + m_i' x,                          lc = log cosh

    A batch is an index, or a tensor of indices, of samples. Derivatives are returned for all samples at once, with
    the sample as the first axis: `g_y(x, y).mean(0)` is the expectation.
    """

    def __init__(
        self,
        A: Tensor,
        B: Tensor,
        *,
        b: Tensor | None = None,
        ridges_g: Ridges | None = None,
        ridges_f: Ridges | None = None,
        l: Tensor | None = None,
        m: Tensor | None = None,
        start: tuple[Tensor, Tensor] | None = None,
    ):
        self.n, dim_y, dim_x = B.shape
        zero_x, zero_y = B.new_zeros(self.n, dim_x), B.new_zeros(self.n, dim_y)
        none = Ridges(B.new_zeros(0), zero_y[:0], zero_x[:0], B.new_zeros(self.n, 0))
        self.A, self.B, self.b = A, B, zero_y if b is None else b
        self.ridges_g, self.ridges_f = none if ridges_g is None else ridges_g, none if ridges_f is None else ridges_f
        self.l, self.m = zero_y if l is None else l, zero_x if m is None else m
        self.first = (zero_x[0], zero_y[0]) if start is None else start
        if (self.ridges_g.weight < 0).any():
            raise ValueError("the weights of the ridges of g must not be negative: g would not be convex")
        self.constants = self._constants()

    @classmethod
    def random(
        cls,
        generator: torch.Generator,
        dim_x: int = 2,
        dim_y: int = 2,
        n: int = 4,
        mu: float = 0.5,
        coupling: float = 1.0,
        bending: float = 1.0,
        scale_f: float = 1.0,
        scale_f_x: float = 1.0,
    ) -> "LogCoshFamily":
        """A random member. Scales: mu of A, coupling of B, bending of its ridges, scale_f of f, scale_f_x of x in f."""

        def normals(*shape: int) -> Tensor:
            return normal(*shape, generator=generator)

        def uniform(*shape: int) -> Tensor:
            return torch.rand(*shape, generator=generator, dtype=torch.float64)

        def ridges(weight: Tensor, scale_x: float) -> Ridges:
            return Ridges(weight, normals(2, dim_y), scale_x * normals(2, dim_x), normals(n, 2))

        A = torch.stack([spd(mu, 6 * mu if dim_y > 1 else mu, dim_y, generator) for _ in range(n)])
        return cls(
            A * (1 + uniform(n, 1, 1)),  # samples differ in their convexity too
            coupling * normals(n, dim_y, dim_x),
            b=normals(n, dim_y),
            ridges_g=ridges(bending * uniform(2), 1.0),
            ridges_f=ridges(scale_f * (2 * uniform(2) - 1), scale_f_x),
            l=0.3 * scale_f * normals(n, dim_y),
            m=0.3 * scale_f * scale_f_x * normals(n, dim_x),
            start=(normals(dim_x), normals(dim_y)),
        )

    # The problem, as the solvers see it.

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = self.first
        return x.clone(), y.clone()

    def sample(self, generator: torch.Generator) -> Samples:
        upper, lower = torch.randint(self.n, (2,), generator=generator)
        return Samples(upper, lower)

    def full(self) -> Samples:
        return Samples(torch.arange(self.n), torch.arange(self.n))

    def upper(self, x: Tensor, y: Tensor, batch: Tensor | int) -> Tensor:
        return (self.ridges_f.value(x, y) + self.l @ y + self.m @ x)[batch].mean()

    def lower(self, x: Tensor, y: Tensor, batch: Tensor | int) -> Tensor:
        return ((self.A @ y / 2 - self.B @ x - self.b) @ y + self.ridges_g.value(x, y))[batch].mean()

    # Derivatives, for all samples at once.

    def g_y(self, x: Tensor, y: Tensor) -> Tensor:
        return self.A @ y - self.B @ x - self.b + self.ridges_g.slope(x, y) @ self.ridges_g.y

    def g_x(self, x: Tensor, y: Tensor) -> Tensor:
        return self.ridges_g.slope(x, y) @ self.ridges_g.x - self.B.mT @ y

    def g_yy(self, x: Tensor, y: Tensor) -> Tensor:
        return self.A + (self.ridges_g.y.T * self.ridges_g.bend(x, y).unsqueeze(1)) @ self.ridges_g.y

    def g_xy(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.ridges_g.x.T * self.ridges_g.bend(x, y).unsqueeze(1)) @ self.ridges_g.y - self.B.mT

    def f_x(self, x: Tensor, y: Tensor) -> Tensor:
        return self.ridges_f.slope(x, y) @ self.ridges_f.x + self.m

    def f_y(self, x: Tensor, y: Tensor) -> Tensor:
        return self.ridges_f.slope(x, y) @ self.ridges_f.y + self.l

    def products(self, x: Tensor, y: Tensor, v: Tensor, delta: float | None = None) -> tuple[Tensor, Tensor]:
        """H v and J v; with delta: by central differences (def:H, def:J)."""
        if not delta:
            return self.g_yy(x, y) @ v, self.g_xy(x, y) @ v
        plus, minus = y + delta * v, y - delta * v
        Hv = self.g_y(x, plus) - self.g_y(x, minus)
        Jv = self.g_x(x, plus) - self.g_x(x, minus)
        return Hv / (2 * delta), Jv / (2 * delta)

    def directions(self, x: Tensor, y: Tensor, v: Tensor, delta: float | None = None) -> Directions:
        """(d_y, d_v, d_x) of every sample: `bilevel_core.directions` without automatic differentiation."""
        Hv, Jv = self.products(x, y, v, delta)
        return Directions(self.g_y(x, y), Hv - self.f_y(x, y), self.f_x(x, y) - Jv)

    def variances(self, x: Tensor, y: Tensor) -> Variances:
        """The squared sigmas of as:sf at (x, y)."""
        vectors = (self.f_x(x, y), self.f_y(x, y), self.g_y(x, y))
        matrices = (self.g_xy(x, y), self.g_yy(x, y))
        spectral = [torch.linalg.matrix_norm(M - M.mean(0), ord=2).square().mean().item() for M in matrices]
        return Variances(*(variance(d) for d in vectors), *spectral)

    def variances_along(self, at: Point, delta: float) -> Variances:
        """The largest of each on 21 points of the segment y +- delta v, over which differences average."""
        points = (at.y + delta * share * at.v for share in torch.linspace(-1, 1, 21).tolist())
        return Variances(*map(max, zip(*(self.variances(at.x, y) for y in points), strict=True)))

    # The truth, to machine precision.

    def y_star(self, x: Tensor) -> Tensor:
        """The minimiser of the lower level."""
        return newton(lambda y: self.g_y(x, y).mean(0), lambda y: self.g_yy(x, y).mean(0), self.first[1])

    def v_star(self, x: Tensor, y: Tensor, delta: float | None = None) -> Tensor:
        """v*(x, y) = H^-1 grad_y f, at any y; with delta the minimiser of R_delta in v."""
        solution = torch.linalg.solve(self.g_yy(x, y).mean(0), self.f_y(x, y).mean(0))
        if not delta:
            return solution

        def curvature(v: Tensor) -> Tensor:
            return (self.g_yy(x, y + delta * v) + self.g_yy(x, y - delta * v)).mean(0) / 2

        return newton(lambda v: self.directions(x, y, v, delta).v.mean(0), curvature, solution)

    def objective(self, x: Tensor) -> Tensor:
        """Phi(x)."""
        return self.upper(x, self.y_star(x), self.full().upper)

    def hypergradient(self, x: Tensor) -> Tensor:
        """grad Phi(x)."""
        y = self.y_star(x)
        return self.directions(x, y, self.v_star(x, y)).x.mean(0)

    # What finite differences solve instead.

    def R_delta(self, x: Tensor, y: Tensor, v: Tensor, delta: float) -> Tensor:
        """[g(y + delta v) + g(y - delta v) - 2 g(y)] / (2 delta^2) - v' grad_y f, whose gradient d_v becomes."""
        plus, minus, here = (self.lower(x, y + step * v, self.full().lower) for step in (delta, -delta, 0))
        return (plus + minus - 2 * here) / (2 * delta**2) - v @ self.f_y(x, y).mean(0)

    def _constants(self) -> Constants:
        """Of the means over the samples, and, where samples enter, root mean squares."""
        L_of_A_B, norm_B = (
            torch.linalg.matrix_norm(M, ord=2).square().mean().sqrt().item()
            for M in (torch.cat((self.A, self.B), dim=2), self.B)
        )
        in_g, in_f = self.ridges_g.sizes(), self.ridges_f.sizes()
        return Constants(
            mu=torch.linalg.eigvalsh(self.A.mean(0)).min().item(),
            L=L_of_A_B + sum(weight * a * ar for weight, a, _, ar in in_g),
            L_gyy=MAX_TANH_2 * sum(weight * a**2 * ar for weight, a, _, ar in in_g),
            L_gxy=MAX_TANH_2 * sum(weight * a * r * ar for weight, a, r, ar in in_g),
            C_gxy=(norm_B + sum(weight * a * r for weight, a, r, _ in in_g)) ** 2,
            L_fx=sum(c * p * qp for c, _, p, qp in in_f),
            L_fy=sum(c * q * qp for c, q, _, qp in in_f),
            C_fy=(sum(c * q for c, q, _, _ in in_f) + self.l.mean(0).norm().item()) ** 2,
            M4_H=MAX_TANH_3 * sum(weight * a**4 for weight, a, _, _ in in_g),
            M4_J=MAX_TANH_3 * sum(weight * a**3 * r for weight, a, r, _ in in_g),
        )


def variance(d: Tensor) -> float:
    """E ||d - E d||^2 over the samples, the first axis."""
    return (d - d.mean(0)).square().sum(1).mean().item()


def newton(field: Callable[[Tensor], Tensor], jacobian: Callable[[Tensor], Tensor], z: Tensor) -> Tensor:
    """The zero of a strongly monotone field, to rounding: Newton's method, halving steps that do not help."""
    F = field(z)
    for _ in range(200):
        towards, step = torch.linalg.solve(jacobian(z), F), 1.0
        if towards.norm() <= 1e-15 * (1 + z.norm()):
            break
        while (F_new := field(z - step * towards)).norm() > (1 - 0.1 * step) * F.norm():
            step /= 2
            if step < 1e-4:  # only rounding is left
                return z
        z, F = z - step * towards, F_new
    return z
