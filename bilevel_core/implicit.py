"""Ground truth: the hypergradient by the implicit function theorem, solved to tolerance.

    grad Phi(x) = grad_x f(x, y*) - J(x, y*) v*,     H(x, y*) v* = grad_y f(x, y*)          paper: def:Phi

The lower level is solved by Newton's method, its steps and v* by conjugate gradients: only products H v are used.
"""

import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_core.checks import POSITIVE
from bilevel_core.counting import count
from bilevel_core.directions import derivatives, leaf
from bilevel_core.problem import BilevelProblem, Samples, check_problem, check_scalar, check_vector, full_samples


class Hypergradient(NamedTuple):
    """grad Phi(x), the lower-level minimiser y*(x), and v* = H^-1 grad_y f at y*."""

    gradient: Tensor
    y: Tensor
    v: Tensor


class NotConverged(ArithmeticError):
    """The lower level or its linear system could not be solved to tolerance."""


def hypergradient(
    problem: BilevelProblem,
    x: Tensor,
    samples: Samples | None = None,
    y: Tensor | None = None,
    tol: float | None = None,
    max_steps: int = 200,
    v: Tensor | None = None,
) -> Hypergradient:
    """grad Phi(x), y*(x) and v* of the problem on `samples` (default: `problem.full()`).

    Newton starts from `y` (default: the problem's own y_0) and stops once ||grad_y g|| <= tol max(1, its first value),
    by default with the machine epsilon to the power 2/3. Conjugate gradients start from `v` (default: 0).
    """
    POSITIVE.or_none().check(tol=tol)
    x0, y = check_problem(problem, seed=0) if y is None else (x, y)
    check_vector("x", x, like=x0)
    check_vector("y", y)
    tol = torch.finfo(x.dtype).eps ** (2 / 3) if tol is None else tol
    samples, x = full_samples(problem) if samples is None else samples, leaf(x)
    with torch.enable_grad():
        lower = solve_lower(problem.lower_at(x, samples.lower), y, tol, max_steps)  # what x alone decides, once
        f = check_scalar("upper", problem.upper_at(x, samples.upper)(lower.y), graph=True)
    f_x, f_y = derivatives(f, x, lower.y)
    v = conjugate_gradients(lower.hessian_vector, f_y, tol, start=v)
    count(gradients=2, Jv=1)
    (Jv,) = derivatives(lower.slope, x, grad_outputs=v)
    return Hypergradient(f_x - Jv, lower.y.detach(), v)


class LowerPoint:
    """g(x, .) at one y: its value, its gradient, and products with its second derivative, from one graph."""

    @torch.enable_grad()
    def __init__(self, g: Callable[[Tensor], Tensor], y: Tensor):
        count(gradients=1)
        self.y = leaf(y)
        self.value = g(self.y)
        (self.slope,) = derivatives(self.value, self.y, differentiable=True)
        self.norm = torch.linalg.vector_norm(self.slope).item()

    def hessian_vector(self, v: Tensor) -> Tensor:
        """H v at this y."""
        count(Hv=1)
        return derivatives(self.slope, self.y, grad_outputs=v, retain=True)[0]


def solve_lower(g: Callable[[Tensor], Tensor], y: Tensor, tol: float, max_steps: int) -> LowerPoint:
    """y*(x) by Newton's method with backtracking on g, the lower loss at x as a function of y."""
    at, steps = LowerPoint(g, y), 0
    if not math.isfinite(at.norm):
        raise NotConverged(f"the lower loss is {at.value.item():.3g} at the first y, and its gradient is not finite")
    goal = tol * max(1.0, at.norm)
    while at.norm > goal:
        if steps >= max_steps:
            raise NotConverged(f"after {steps} Newton steps the lower gradient's norm is {at.norm:.3g} > {goal:.3g}")
        # An inexact Newton direction is enough far away; near y* the forcing term makes convergence superlinear.
        newton = conjugate_gradients(at.hessian_vector, at.slope.detach(), max(tol, min(0.1, at.norm)))
        descent = (at.slope @ newton).item()
        for step in (0.5**k for k in range(34)):
            new = LowerPoint(g, at.y.detach() - step * newton)
            # Close to y* g is flat to rounding, so a smaller gradient is progress too.
            if new.value <= at.value - 1e-4 * step * descent or new.norm <= 0.5 * at.norm:
                break
        else:
            raise NotConverged(f"no descent on the lower level; its gradient norm is still {at.norm:.3g}")
        at, steps = new, steps + 1
    return at


def conjugate_gradients(
    product: Callable[..., Tensor], b: Tensor, tol: float, max_steps: int | None = None, start: Tensor | None = None
) -> Tensor:
    """Solve H u = b to ||H u - b|| <= tol ||b||, H symmetric and positive definite; with `max_steps` as far as that."""
    u, r = (torch.zeros_like(b), b) if start is None else (start, b - product(start))
    p, rr, goal = r, (r @ r).item(), tol * math.sqrt((b @ b).item())
    for _ in range(max_steps or 10 * b.numel() + 100):
        if math.sqrt(rr) <= goal:
            return u
        Hp = product(p)
        curvature = (p @ Hp).item()
        if not curvature > 0:
            if max_steps:
                return u
            along = curvature / (p @ p).item()
            raise NotConverged(f"the lower level is not strongly convex here: curvature {along:.3g}")
        step = rr / curvature
        u, r = torch.add(u, p, alpha=step), torch.add(r, Hp, alpha=-step)
        rr, old = (r @ r).item(), rr
        p = torch.add(r, p, alpha=rr / old)
    if max_steps or math.sqrt(rr) <= goal:
        return u
    raise NotConverged(f"conjugate gradients stopped at residual {math.sqrt(rr):.3g} > {goal:.3g}")


class Objective:
    """`objective(problem)` is Phi as a function for Adam, L-BFGS or any other optimiser of torch:

        Phi(x) = f(x, y*(x)),     Phi(x).backward() adds  grad_x f - J v*  to x.grad

    Each call solves the lower level and its linear system as `hypergradient` does, from the `y` and `v` of the last
    call. It can be differentiated once. Where they cannot be solved the first call raises NotConverged; later ones warn
    and return inf with an infinite slope, from which a line search steps back.
    """

    def __init__(
        self, problem: BilevelProblem, samples: Samples | None = None, tol: float | None = None, max_steps: int = 200
    ):
        self.problem, self.samples = problem, full_samples(problem) if samples is None else samples
        self.tol, self.max_steps = tol, max_steps
        self.y: Tensor | None = None
        self.v: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Phi(x)."""
        check_vector("x", x, start=True)
        last = self.y, self.tol, self.max_steps, self.v
        try:
            gradient, self.y, self.v = hypergradient(self.problem, x, self.samples, *last)
        except NotConverged as error:
            if self.y is None:
                raise
            warnings.warn(f"Phi(x) = inf: {error}; a line search steps back from here", stacklevel=2)
            return torch.exp(x - x.detach()).sum() * math.inf  # with a slope of inf
        value = self.problem.upper(x.detach(), self.y, self.samples.upper).detach()
        return value + (x - x.detach()) @ gradient  # adds nothing but the slope


objective = Objective
