"""The smallest problems on which a printed statement fails: one x, one y and, but for `coins`, one sample.

`Coin` and `extremes` are for the inequalities of the proof.
"""

import dataclasses
import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_book.theory.check import take_step
from bilevel_book.theory.constants import ProblemConstants, Sizes
from bilevel_book.theory.families import Constants, LogCoshFamily, Ridges
from bilevel_book.theory.trials import Trial, trial
from bilevel_core.directions import Directions, Point


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


# g = y^2/2 - 20 x y, f = lc(y), no noise. Bounds that could be 0 are small positive numbers, as the assumptions ask.
SLOPE = 20.0
STEEP = ProblemConstants(
    mu=1, L=math.hypot(1, SLOPE), L_gyy=1e-3, L_gxy=1e-3, C_gxy=SLOPE**2, L_fx=1e-3, L_fy=1, C_fy=1
)


def change_of_potential(
    a_y: float, a_v: float, c_beta: float, c_lam: float, w: float, y_star: float = -0.2, y: float = 0.2
) -> tuple[float, float]:
    """(V_1 - V_0) / alpha_0 and -|grad Phi|^2 / 2 for STEEP, from y* = 20 x, y and v = v*(x, y). Against lm:mergeV."""
    alpha, x, v = w ** (-1 / 3), y_star / SLOPE, math.tanh(y)
    new_x = x - alpha * SLOPE * v
    new_y = y - c_beta * alpha * (y - SLOPE * x)
    new_v = v - c_lam * alpha * (v - math.tanh(y))
    change = math.log(math.cosh(SLOPE * new_x)) - math.log(math.cosh(SLOPE * x))
    change += a_y * ((new_y - SLOPE * new_x) ** 2 - (y - SLOPE * x) ** 2)
    change += a_v * ((new_v - math.tanh(new_y)) ** 2 - (v - math.tanh(y)) ** 2)
    return change / alpha, -((SLOPE * math.tanh(y_star)) ** 2) / 2


class Coin(LogCoshFamily):
    """One x, one y, two samples with factors w_i = 1 + wobble, 1 - wobble, so that much of what happens is noise:

        g_i = w_i [curvature y^2/2 - coupling x y + phi(y) + mixed x phi'(y)],    phi''(y) = min(|y|, reach)
        f_i = w_i [tilt y + slope x + ridges_f]

    H has a kink at 0, where central differences err most: L_gyy = 1. With `mixed`, J has one too (mixed must
    be used at x = 0 only).
    """

    def __init__(
        self,
        coupling: float = 0.0,
        ridges_f: tuple[Ridge, ...] = (),
        tilt: float = 1.0,
        slope: float = 0.0,
        reach: float = 0.0,
        wobble: float = 0.0,
        mixed: float = 0.0,
        curvature: float = 1.0,
    ):
        self.curvature, self.coupling, self.reach, self.mixed = curvature, coupling, reach, mixed
        self.factors = torch.tensor([[1 + wobble], [1 - wobble]], dtype=torch.float64)
        one = scalar(curvature, coupling, ridges_f=ridges_f, tilt=tilt)
        super().__init__(
            one.A.repeat(2, 1, 1),
            one.B.repeat(2, 1, 1),
            ridges_f=one.ridges_f._replace(shift=one.ridges_f.shift.repeat(2, 1)),
            l=one.l.repeat(2, 1),
            m=torch.full((2, 1), slope, dtype=torch.float64),
        )

    def _phi(self, y: Tensor) -> tuple[Tensor, Tensor]:
        """phi' and phi''."""
        near = y.abs().clamp(max=self.reach)
        return y.sign() * (near * y.abs() - near**2 / 2), near

    def g_y(self, x: Tensor, y: Tensor) -> Tensor:
        first, second = self._phi(y)
        return self.factors * (super().g_y(x, y) + first + self.mixed * x * second)

    def g_x(self, x: Tensor, y: Tensor) -> Tensor:
        return self.factors * (super().g_x(x, y) + self.mixed * self._phi(y)[0])

    def g_yy(self, x: Tensor, y: Tensor) -> Tensor:
        return self.factors.unsqueeze(2) * (super().g_yy(x, y) + self._phi(y)[1])

    def g_xy(self, x: Tensor, y: Tensor) -> Tensor:
        return self.factors.unsqueeze(2) * (super().g_xy(x, y) + self.mixed * self._phi(y)[1])

    def f_x(self, x: Tensor, y: Tensor) -> Tensor:
        return self.factors * super().f_x(x, y)

    def f_y(self, x: Tensor, y: Tensor) -> Tensor:
        return self.factors * super().f_y(x, y)

    def _constants(self) -> Constants:
        k, size = super()._constants(), self.factors.square().mean().sqrt().item()
        return dataclasses.replace(
            k,
            L=size * math.hypot(self.curvature + self.reach, self.coupling),
            C_gxy=(size * (self.coupling + self.mixed * self.reach)) ** 2,
            L_gyy=size * (self.reach > 0),
            L_gxy=size * self.mixed,
            L_fx=size * k.L_fx,
            L_fy=size * k.L_fy,
        )


def extremes() -> Iterator[tuple[str, LogCoshFamily, Trial]]:
    """Steps on which the lemmas of proof.py are attained, or nearly so: (part of the potential, problem, step).

    Each begins at (x, y, v), with estimates that are off by (e_x, e_y, e_v); `steps` are alpha, beta and lam.
    """
    far, tiny = 1e6, 1e-9  # a step far with an estimate next to 0: a move of 1e-3, and hardly an error

    def tried(part, problem, start, off, steps=(1e-12,) * 3, eta=0.5, delta=0.0, after=None):
        at = Point(*(torch.tensor([z], dtype=torch.float64) for z in start))
        true = problem.directions(*at, delta)
        h = Directions(*(d.mean(0) + e for d, e in zip(true, (off[1], off[2], off[0]), strict=True)))
        sizes = Sizes(*steps, eta, eta, eta, 0.0)
        return part, problem, trial(problem, take_step(problem, at, h, *steps), sizes, delta, after)

    # The error cancels the slope, so that the variable stays, and the target moves away.
    weak = Coin(coupling=0.01)
    yield tried("y", weak, (0, 1, 0), (50, -1, 0), (1, 0.5 / weak.constants.L, 0.1))
    for ridge, off in ((Ridge(1e-8, 1e5, 0), (0, 5e-6, -2e-4)), (Ridge(1e-3, 1, 1e5), (5e-6, 0, -2e-4))):
        steep = Coin(ridges_f=(ridge,), reach=1e-3, curvature=2)
        yield tried("v", steep, (0, 0, 0.5 + 1e-4), off, (0.1, 0.1, 0.5 / steep.constants.L), after=4e-4)
    # Half of the new error is new noise, half the noise of the move, and both are the same.
    for coupling, off in ((0.01, (0, tiny, 0)), (100, (tiny, 0, 0))):
        yield tried("y error", Coin(coupling, wobble=10), (0, 0, 0), off, (far, far, 1))
    for ridge, off in ((Ridge(0.01, 10, 0), (0, tiny, -tiny)), (Ridge(1, 0.1, 10), (tiny, 0, -tiny))):
        yield tried("v error", Coin(0, (ridge,), 0.5, wobble=10), (0, 0, 0.5), off, (far, far, far))
    for ridge, off in ((Ridge(0.01, 0, 10), (-tiny, 0, 0)), (Ridge(1, 10, 0.1), (0, -tiny, 0))):
        yield tried("x error", Coin(1, (ridge,), 0.5, wobble=10), (0, 0, 0), off, (far, far, 2e-3))
    # Nothing moves: the old error and the drift of delta are alike; or eta = 1, and nothing is kept.
    yield tried("v error", Coin(reach=1), (0, 0, 1), (0, 0, -0.05), delta=0.1, after=0.2)
    yield tried("x error", Coin(reach=1, mixed=1), (0, 0, 1), (0.05, 0, 0), delta=0.1, after=0.2)
    for part in ("x error", "y error", "v error"):
        yield tried(part, Coin(), (0, 0, 1), (1, 1, 1), eta=1.0)
    # The four errors of d_x are alike, and their sum is what keeps x where it is.
    coupling, delta = 1e-5, 1e-3
    each = coupling * delta / 2
    bent = Coin(coupling, (Ridge(1e-6, 1e4, 10),), slope=4 * each - coupling, reach=1)
    y = -each / bent.constants.Lam
    at = Point(*torch.tensor([[0.0], [y], [0.0]], dtype=torch.float64))
    v = bent.v_star(at.x, at.y, delta) - delta / 2
    e_x = -bent.directions(at.x, at.y, v, delta).x.mean().item()
    yield tried("Phi", bent, (0, y, v.item()), (e_x, 0, 0), (1e-3,) * 3, delta=delta)
    yield tried("Phi", spring(), (1, 1, math.tanh(1)), (0, 0, 0), (1e-3,) * 3)
