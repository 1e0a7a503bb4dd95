"""The smallest problems on which a printed statement fails: one x, one y and, but for `coins`, one sample."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_book.theory.families import LogCoshFamily, Ridges
from bilevel_core.problem import BilevelProblem, Samples


class Ridge(NamedTuple):
    """The term weight lc(a y + r x + shift) of a problem with one x and one y: Ridge(weight, a, r, shift)."""

    weight: float
    along_y: float
    along_x: float
    shift: float = 0.0


def scalar(
    curvature: float = 1.0,
    coupling: float = 0.0,
    ridges_g: tuple[Ridge, ...] = (),
    ridges_f: tuple[Ridge, ...] = (),
    tilt: float = 0.0,
) -> LogCoshFamily:
    """g = curvature y^2/2 - coupling x y + ridges_g, f = ridges_f + tilt y; no noise."""

    def matrix(value: float) -> Tensor:
        return torch.full((1, 1, 1), value, dtype=torch.float64)

    def ridges(rows: tuple[Ridge, ...]) -> Ridges:
        weight, y, x, shift = torch.tensor(rows, dtype=torch.float64).view(-1, 4).T
        return Ridges(weight, y.unsqueeze(1), x.unsqueeze(1), shift.unsqueeze(0))

    return LogCoshFamily(
        matrix(curvature), matrix(coupling), ridges_g=ridges(ridges_g), ridges_f=ridges(ridges_f), l=matrix(tilt)[0]
    )


def spring(coupling: float = 1.0, curvature: float = 1.0) -> LogCoshFamily:
    """g = curvature y^2/2 - coupling x y, f = lc(y): y* = coupling x / curvature. Against lm:3ieq, lm:corefunction."""
    return scalar(curvature, coupling, ridges_f=(Ridge(1.0, 1.0, 0.0),))


def small_slope() -> LogCoshFamily:
    """g = y^2/2 - x y, f = lc(x - 3)/20 + lc(y + 3)/10: C_fy = 1/100. Against the radius r_v = C_fy / mu."""
    return scalar(coupling=1.0, ridges_f=(Ridge(0.05, 0.0, 1.0, -3.0), Ridge(0.1, 1.0, 0.0, 3.0)))


def gentle_tilt(bend: float = 0.5) -> LogCoshFamily:
    """g = y^2/2 + bend lc(y + x), f = y/10: C_fy = 1/100, L_fy = 0. Against C_fy^2 in lm:vv, prop:hessian_free_v."""
    return scalar(ridges_g=(Ridge(bend, 1.0, 1.0),), tilt=0.1)


def straight_coupling() -> LogCoshFamily:
    """g = y^2/2 + 2 lc(y) - x y, f = 2 lc(y - 2) + lc(x + 2)/2: J is constant, L_gxy = 0.

    Against the condition on delta, which then allows any.
    """
    ridges_f = Ridge(2.0, 1.0, 0.0, -2.0), Ridge(0.5, 0.0, 1.0, 2.0)
    return scalar(coupling=1.0, ridges_g=(Ridge(2.0, 1.0, 0.0),), ridges_f=ridges_f)


def coins(noise: float = 1.0, wobble: float = 0.3) -> LogCoshFamily:
    """g = (1 +- wobble) y^2/2 -+ noise y, f = lc(y): two coins, four samples. Noise whose every moment is known."""
    sign = torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.float64)
    return LogCoshFamily(
        (1 + wobble * sign[:, 0]).view(4, 1, 1),
        torch.zeros(4, 1, 1, dtype=torch.float64),
        b=noise * sign[:, 1:],
        ridges_f=Ridges(one[0], one, 0 * one, torch.zeros(4, 1, dtype=torch.float64)),
    )


class Kink(BilevelProblem):
    """g = y^2/2 + |y|^3/6 - x y, f = y: H = 1 + |y| has a kink at y*(0) = 0 and L_gyy = 1. For lm:boundofeJH.

    There v*_delta solves v + delta v |v| / 2 = 1, and the bounds on the effect of delta are attained, to first order.
    """

    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        return torch.zeros(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)

    def sample(self, generator: torch.Generator) -> Samples:
        return Samples(upper=None, lower=None)

    def upper(self, x: Tensor, y: Tensor, batch: None) -> Tensor:
        return y.sum()

    def lower(self, x: Tensor, y: Tensor, batch: None) -> Tensor:
        return (y**2 / 2 + y.abs() ** 3 / 6 - x * y).sum()

    @staticmethod
    def v_star_delta(delta: float) -> float:
        """The minimiser of R_delta at x = y = 0."""
        return 2 / (1 + math.sqrt(1 + 2 * delta))
