"""Phi as an objective for torch: minimise it with Adam, L-BFGS or any other optimiser, without a bilevel method.

Phi(x) = f(x, y*(x)),     Phi(x).backward() adds  grad_x f - J v*  to x.grad                  paper: def:Phi
"""

import torch
from torch import Tensor

from bilevel_core.hypergradient import hypergradient
from bilevel_core.problem import BilevelProblem, Samples, check_problem, whole


class Objective:
    """`objective(problem)` is the function x -> Phi(x), a scalar that can be differentiated once.

    Each call solves the lower level and its linear system as `hypergradient` does, on `samples` (default:
    `problem.full()`), to `tol` in at most `max_steps` Newton steps, from the solutions `y` and `v` of the last call.
    """

    def __init__(
        self, problem: BilevelProblem, samples: Samples | None = None, tol: float | None = None, max_steps: int = 200
    ):
        check_problem(problem, seed=0)
        self.problem, self.samples = problem, whole(problem) if samples is None else samples
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
