"""Ground truth: the hypergradient by the implicit function theorem, solved to tolerance.

    grad Phi(x) = grad_x f(x, y*) - J(x, y*) v*,     H(x, y*) v* = grad_y f(x, y*)          paper: def:Phi

The lower level is solved by Newton's method, its steps and v* by conjugate gradients: only products H v are used.

`objective(problem)` is Phi as a function for torch: minimise it with Adam, L-BFGS or any other optimiser.

    Phi(x) = f(x, y*(x)),     Phi(x).backward() adds  grad_x f - J v*  to x.grad
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_core.checks import POSITIVE
from bilevel_core.counting import count
from bilevel_core.directions import derivatives, leaf
from bilevel_core.problem import (
    BilevelProblem,
    Samples,
    check_problem,
    check_scalar,
    check_vector,
    full_samples,
    seeded,
)


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

    Newton starts from `y` (default: the problem's own y_0) and stops once ||grad_y g|| is below `tol` times
    its first value or 1, whichever is larger. The default `tol` is the machine epsilon to the power 2/3. Conjugate
    gradients start from `v` (default: 0).
    """
    POSITIVE.or_none().check(tol=tol)
    if y is None:
        check_problem(problem, seed=0)
        x0, y = problem.start(seeded(0))
        check_vector("x", x, like=x0)
    check_vector("x", x)
    check_vector("y", y)
    tol = torch.finfo(x.dtype).eps ** (2 / 3) if tol is None else tol
    samples, x = full_samples(problem) if samples is None else samples, leaf(x)
    with torch.enable_grad():
        lower = solve_lower(problem.lower_at(x, samples.lower), y, tol, max_steps)  # what depends on x alone, once
        f = check_scalar("upper", problem.upper_at(x, samples.upper)(lower.y), graph=True)
    f_x, f_y = derivatives(f, x, lower.y)
    v = conjugate_gradients(lower.hessian_vector, f_y, tol, start=v)
    count(gradients=2, Jv=1)
    (Jv,) = derivatives(lower.slope, x, grad_outputs=v)
    return Hypergradient(f_x - Jv, lower.y.detach(), v)


class LowerPoint:
    """g(x, .) at one y: its value, its gradient, and products with its second derivative, from one graph."""

    def __init__(self, g: Callable[[Tensor], Tensor], y: Tensor):
        count(gradients=1)
        self.y = leaf(y)
        with torch.enable_grad():
            self.value = check_scalar("lower", g(self.y))
        (self.slope,) = derivatives(self.value, self.y, differentiable=True)
        self.gradient = self.slope.detach()
        self.norm = torch.linalg.vector_norm(self.gradient).item()

    def hessian_vector(self, v: Tensor) -> Tensor:
        count(Hv=1)
        return derivatives(self.slope, self.y, grad_outputs=v, retain=True)[0]


def solve_lower(g: Callable[[Tensor], Tensor], y: Tensor, tol: float, max_steps: int = 200) -> LowerPoint:
    """y*(x) by Newton's method with backtracking on g, the lower loss at x as a function of y."""
    at = LowerPoint(g, y)
    small = tol * max(1.0, at.norm)
    for _ in range(max_steps):
        if at.norm <= small:
            return at
        # An inexact Newton direction is enough far away; near y* the forcing term makes convergence superlinear.
        newton = conjugate_gradients(at.hessian_vector, at.gradient, max(tol, min(0.1, at.norm)))
        slope, step = (at.gradient @ newton).item(), 1.0
        while True:
            new = LowerPoint(g, at.y.detach() - step * newton)
            # Close to y* g is flat to rounding, so a smaller gradient is progress too.
            if new.value <= at.value - 1e-4 * step * slope or new.norm <= 0.5 * at.norm:
                break
            step /= 2
            if step < 1e-10:
                raise NotConverged(f"no descent on the lower level; its gradient norm is still {at.norm:.3g}")
        at = new
    if at.norm <= small:
        return at
    raise NotConverged(f"after {max_steps} Newton steps the lower level's gradient norm is {at.norm:.3g} > {small:.3g}")


def conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    b: Tensor,
    tol: float,
    max_steps: int | None = None,
    start: Tensor | None = None,
) -> Tensor:
    """Solve H u = b to ||H u - b|| <= tol ||b||, H symmetric and positive definite; with `max_steps` as far as that."""
    u, r = (torch.zeros_like(b), b) if start is None else (start, b - product(start))
    p, rr, goal = r, (r @ r).item(), tol * math.sqrt((b @ b).item())
    for _ in range(max_steps or 10 * b.numel() + 100):
        if math.sqrt(rr) <= goal:
            return u
        Hp = product(p)
        curvature = (p @ Hp).item()
        if not curvature > 0 and max_steps:
            return u
        if not curvature > 0:
            shown = curvature / (p @ p).item()
            raise NotConverged(f"the lower level is not strongly convex here: curvature {shown:.3g}")
        step = rr / curvature
        u, r = torch.add(u, p, alpha=step), torch.add(r, Hp, alpha=-step)
        rr, old = (r @ r).item(), rr
        p = torch.add(r, p, alpha=rr / old)
    if max_steps or math.sqrt(rr) <= goal:
        return u
    raise NotConverged(f"conjugate gradients stopped at residual {math.sqrt(rr):.3g} > {goal:.3g}")


class Objective:
    """`objective(problem)` is the function x -> Phi(x), a scalar that can be differentiated once.

    Each call solves the lower level and its linear system as `hypergradient` does, on `samples` (default:
    `problem.full()`), to `tol` in at most `max_steps` Newton steps, from the solutions `y` and `v` of the last call.
    """

    def __init__(
        self, problem: BilevelProblem, samples: Samples | None = None, tol: float | None = None, max_steps: int = 200
    ):
        check_problem(problem, seed=0)
        self.problem, self.samples = problem, full_samples(problem) if samples is None else samples
        self.tol, self.max_steps = tol, max_steps
        self.y: Tensor | None = None
        self.v: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Phi(x)."""
        known = self.y, self.tol, self.max_steps, self.v
        gradient, self.y, self.v = hypergradient(self.problem, x, self.samples, *known)
        with torch.no_grad():
            value = self.problem.upper(x, self.y, self.samples.upper)
        return value + (x - x.detach()) @ gradient  # adds nothing but the slope


objective = Objective
