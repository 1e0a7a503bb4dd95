"""Ground truth: the hypergradient by the implicit function theorem, solved to tolerance.

    grad Phi(x) = grad_x f(x, y*) - J(x, y*) v*,     H(x, y*) v* = grad_y f(x, y*)          paper: def:Phi

The lower level is solved by Newton's method, its steps and v* by conjugate gradients: only products H v are used.

`objective(problem)` is Phi as a function for torch: minimise it with Adam, L-BFGS or any other optimiser.

    Phi(x) = f(x, y*(x)),     Phi(x).backward() adds  grad_x f - J v*  to x.grad
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from bilevel_core.losses import Loss, losses
from bilevel_core.problem import BilevelProblem, Samples, check_problem, check_vector, full_samples


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
    if tol is not None and not tol > 0:
        raise ValueError(f"tol must be positive, got {tol}")
    if y is None:
        check_problem(problem, seed=0)
        x0, y = problem.start(torch.Generator().manual_seed(0))
        check_vector("x", x, like=x0)
    check_vector("x", x)
    check_vector("y", y)
    tol = torch.finfo(x.dtype).eps ** (2 / 3) if tol is None else tol
    samples = full_samples(problem) if samples is None else samples

    f, g = losses(problem, x, samples)
    y = solve_lower(g, y.detach(), tol, max_steps)
    f_x, f_y = f.gradients(y)
    v = conjugate_gradients(partial(g.hessian_vector, y), f_y, tol, start=v)
    return Hypergradient(f_x - g.jacobian_vector(y, v), y, v)


def solve_lower(g: Loss, y: Tensor, tol: float, max_steps: int = 200) -> Tensor:
    """y*(x) by Newton's method with backtracking on g, the lower loss at x."""
    norm = torch.linalg.vector_norm
    g_y = g.grad_y(y, keep=True)
    small = tol * max(1.0, norm(g_y).item())
    for _ in range(max_steps):
        if norm(g_y) <= small:
            return y
        # An inexact Newton direction is enough far away; near y* the forcing term makes convergence superlinear.
        accuracy = max(tol, min(0.1, norm(g_y).item()))
        step_to_solution = conjugate_gradients(partial(g.hessian_vector, y), g_y, accuracy)
        value, slope, step = g(y), (g_y @ step_to_solution).item(), 1.0
        while True:
            y_new = y - step * step_to_solution
            value_new, g_y_new = g(y_new), g.grad_y(y_new, keep=True)
            # Close to y* g is flat to rounding, so a smaller gradient is progress too.
            if value_new <= value - 1e-4 * step * slope or norm(g_y_new) <= 0.5 * norm(g_y):
                break
            step /= 2
            if step < 1e-10:
                raise NotConverged(f"no descent on the lower level; its gradient norm is still {norm(g_y):.3g}")
        y, g_y = y_new, g_y_new
    if norm(g_y) <= small:
        return y
    raise NotConverged(
        f"after {max_steps} Newton steps the lower level's gradient norm is {norm(g_y):.3g} > {small:.3g}"
    )


def conjugate_gradients(
    product: Callable[[Tensor], Tensor],
    b: Tensor,
    tol: float,
    max_steps: int | None = None,
    truncate: bool = False,
    start: Tensor | None = None,
) -> Tensor:
    """Solve H u = b to ||H u - b|| <= tol ||b||, H symmetric and positive definite; or `truncate` at the last u."""
    u, r = (torch.zeros_like(b), b) if start is None else (start, b - product(start))
    p, rr, goal = r, (r @ r).item(), tol * math.sqrt((b @ b).item())
    for _ in range(max_steps or 10 * b.numel() + 100):
        if math.sqrt(rr) <= goal:
            return u
        Hp = product(p)
        curvature = (p @ Hp).item()
        if not curvature > 0 and truncate:
            return u
        if not curvature > 0:
            shown = curvature / (p @ p).item()
            raise NotConverged(f"the lower level is not strongly convex here: curvature {shown:.3g}")
        step = rr / curvature
        u, r = torch.add(u, p, alpha=step), torch.add(r, Hp, alpha=-step)
        rr, old = (r @ r).item(), rr
        p = torch.add(r, p, alpha=rr / old)
    if truncate or math.sqrt(rr) <= goal:
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
