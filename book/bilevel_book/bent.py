"""`Ripples` with a lower level that is not quadratic: differences in y are no longer exact, and H depends on y.

    grad_y g = a y + bend sqrt(s^2 + y^2) - x,      H(y) = a + bend y / sqrt(s^2 + y^2)  in  (a - bend, a + bend)

    y*(x) = [a x - bend sqrt(x^2 + s^2 (a^2 - bend^2))] / (a^2 - bend^2),      v*(x, y) = grad_y f(x, y) / H(y)

with 0 <= bend < mu. Around 0 the curvature changes over a length of s, the `width`: a difference that reaches further
than that has a bias. f, the noise and the stacking are those of `Ripples`. All v* lie in the ball of the theorem, of
radius sqrt(C_fy) / mu_g, here sqrt(dim) (1 + r) / (mu - bend). A ball belongs to one copy: `InBall` shortens the v of
each on its own.
"""

from typing import Any

import torch
from torch import Tensor

from bilevel_book.ripples import Ripples
from bilevel_core.problem import BilevelProblem
from bilevel_core.problems import LowerNoise
from bilevel_core.solvers import FdeHBO
from bilevel_core.solvers.base import RADIUS, method, option
from bilevel_core.solvers.fmbo import MomentumState


class Bent(Ripples):
    def __init__(self, copies: int = 8, dim: int = 4, bend: float = 0.5, width: float = 0.6, **others: Any):
        super().__init__(copies, dim, **others)
        if not 0 <= bend < self.a.min():
            raise ValueError(f"need 0 <= bend < mu = {self.a.min():g}, or g is not strongly convex; got bend = {bend}")
        if not width > 0:
            raise ValueError(f"width must be positive, got {width}")
        self.bend, self.width = bend, torch.tensor(width, dtype=torch.float64)
        self.radius = dim**0.5 * (1 + self.r) / (self.a.min().item() - bend)

    def lower(self, x: Tensor, y: Tensor, batch: LowerNoise) -> Tensor:
        s, root = self.width, torch.hypot(y, self.width)
        return super().lower(x, y, batch) + self.bend / 2 * batch.scale @ (y * root + s**2 * torch.asinh(y / s))

    def y_star(self, x: Tensor) -> Tensor:
        gap = self.a**2 - self.bend**2
        return (self.a * x - self.bend * (x**2 + self.width**2 * gap).sqrt()) / gap

    def v_star(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        y = self.y_star(x) if y is None else y
        return super().v_star(x, y) * self.a / (self.a + self.bend * y / torch.hypot(y, self.width))


@method
class InBall(FdeHBO):
    """FdeHBO on a stack of copies, the v of each kept in a ball of its own."""

    r_v: float = option(float("inf"), RADIUS, "radius of a ball for the whole stack")
    radius: float = option(float("inf"), RADIUS, "radius of the ball of each copy")

    def update(self, problem: BilevelProblem, state: MomentumState, generator: torch.Generator) -> MomentumState:
        moved = super().update(problem, state, generator)
        each = problem.each(moved.v)
        return moved.replace(v=(each * (self.radius / each.norm(dim=1, keepdim=True)).clamp(max=1)).flatten())
