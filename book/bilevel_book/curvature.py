"""FMBO that also measures, on the way, what decides whether v needs a ball. The runs of Chapter 5.

    top_min, top_max   every 500 steps: the range, over 20 batches, of the largest eigenvalue of H, the Hessian of g
    norm_v_star        at step 3000: ||v*(x, y)||, the solution of H v = grad_y f on all the data

A step of v on a batch is (I - lam H) v + lam grad_y f: it lengthens v where lam times an eigenvalue of H exceeds 2.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from bilevel_core.directions import grad_y, hessian_vector
from bilevel_core.implicit import conjugate_gradients
from bilevel_core.problem import BilevelProblem
from bilevel_core.solvers.base import COUNT, State, method, option
from bilevel_core.solvers.fmbo import FMBO

BATCHES, ITERATIONS, RESIDUAL = 20, 15, 1e-3  # enough for two digits of the eigenvalue and of the norm


@method
class CurvatureOfFMBO(FMBO):
    top_every: int = option(500, COUNT, "steps from one measurement of the eigenvalues to the next")
    v_star_at: int = option(3000, COUNT, "the step at which v* is solved for")

    def measure(self, problem: BilevelProblem, state: State) -> dict[str, float]:
        columns = super().measure(problem, state)
        if state.t % self.top_every == 0:
            generator = torch.Generator().manual_seed(state.t)  # its own: the run draws what it would draw without
            batches = [problem.sample(generator).lower for _ in range(BATCHES)]
            tops = [top_eigenvalue(problem, state.x, state.y, batch) for batch in batches]
            columns |= {"top_min": min(tops), "top_max": max(tops)}
        if state.t == self.v_star_at:
            columns["norm_v_star"] = v_star(problem, state.x, state.y).norm().item()
        return columns


def top_eigenvalue(problem: BilevelProblem, x: Tensor, y: Tensor, batch: Any) -> float:
    """L, the largest eigenvalue of H on one batch, by power iteration; a plain step of y or v is stable below 2 / L."""
    u = torch.randn(y.shape, generator=torch.Generator().manual_seed(1), dtype=y.dtype).to(y.device)
    for _ in range(ITERATIONS):
        u = hessian_vector(problem, x, y, normalize(u, dim=0), batch)
    return torch.linalg.vector_norm(u).item()


def v_star(problem: BilevelProblem, x: Tensor, y: Tensor) -> Tensor:
    """The solution of H v = grad_y f at (x, y), on all the data."""
    data = problem.full()
    f_y = grad_y(problem.upper, x, y, data.upper)
    return conjugate_gradients(lambda u: hessian_vector(problem, x, y, u, data.lower), f_y, RESIDUAL)
