"""The same numbers by other people's code: a hypergradient at a solved lower level, and twenty unrolled steps.

Every function returns the derivative in x. torchopt, higher and betty are installed by benchmarks/requirements.txt and
used nowhere else. hypertorch (Grazzi, Franceschi, Pontil, Salzo, 2020) is not the package of that name on PyPI: what
stands in for it is its algorithm in a few lines of ours.
"""

import importlib.util
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from bilevel_core.problem import BilevelProblem, Samples

warnings.filterwarnings("ignore", category=FutureWarning, module="torchopt")  # it still calls functorch by that name


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def hypertorch_cg(problem: BilevelProblem, x: Tensor, y: Tensor, samples: Samples, tol: float, products: int) -> Tensor:
    """Of the fixed point y = y - grad_y g: conjugate gradients on I - dmap/dy, the graph of the map kept."""
    x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
    f = problem.upper(x, y, samples.upper)
    f_y, f_x = (torch.autograd.grad(f, to, retain_graph=True, materialize_grads=True)[0] for to in (y, x))
    mapped = y - torch.autograd.grad(problem.lower(x, y, samples.lower), y, create_graph=True)[0]
    v, r = torch.zeros_like(y), f_y.clone()
    p, rr = r, r @ r
    goal = tol * f_y.norm()
    while rr.sqrt() > goal:
        Hp = p - torch.autograd.grad(mapped, y, p, retain_graph=True)[0]
        step = rr / (p @ Hp)
        v, r = v + step * p, r - step * Hp
        rr, old = r @ r, rr
        p = r + (rr / old) * p
    return f_x + torch.autograd.grad(mapped, x, v)[0]


def torchopt_root(problem: BilevelProblem, x: Tensor, y: Tensor, samples: Samples, tol: float, products: int) -> Tensor:
    """torchopt's custom_root around a solver that has y already, with its conjugate gradients."""
    from torchopt import linear_solve
    from torchopt.diff.implicit import custom_root

    def optimality(at: Tensor, x: Tensor) -> Tensor:
        return torch.func.grad(lambda w: problem.lower(x, w, samples.lower))(at)

    @custom_root(optimality, argnums=1, solve=linear_solve.solve_cg(rtol=tol))
    def solution(at: Tensor, x: Tensor) -> Tensor:
        return at

    x = x.detach().requires_grad_()
    f = problem.upper(x, solution(y.detach(), x), samples.upper)
    return torch.autograd.grad(f, x)[0]


def betty_cg(problem: BilevelProblem, x: Tensor, y: Tensor, samples: Samples, tol: float, products: int) -> Tensor:
    """betty's cg, for as many products as ours took; it has no tolerance, and its direction uses the old residual."""
    from betty.hypergradient.cg import cg

    x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
    inner = SimpleNamespace(
        paths=[],
        cur_batch=samples.lower,
        config=SimpleNamespace(cg_iterations=products, cg_alpha=1.0),
        training_step_exec=lambda batch: problem.lower(x, y, batch),
        parameters=lambda: [y],
        trainable_parameters=lambda: [y],
    )
    f_x, f_y = torch.autograd.grad(problem.upper(x, y, samples.upper), (x, y), materialize_grads=True)
    return f_x + cg([f_y], inner, SimpleNamespace(trainable_parameters=lambda: [x]))[0]


HYPERGRADIENTS: dict[str, tuple[str, Callable[..., Tensor]]] = {  # what to call it, the package it needs
    "hypertorch's CG (stand-in)": ("torch", hypertorch_cg),
    "torchopt's custom_root": ("torchopt", torchopt_root),
    "betty's cg": ("betty", betty_cg),
}


class _Lower(nn.Module):
    """The lower level as a module whose one parameter is y."""

    def __init__(self, problem: BilevelProblem, y: Tensor):
        super().__init__()
        self.problem, self.y = problem, nn.Parameter(y.detach().clone())

    def forward(self, x: Tensor, batch: Any) -> Tensor:
        return self.problem.lower(x, self.y, batch)


def higher_unrolled(problem: BilevelProblem, x: Tensor, y: Tensor, batches: list, upper: Any, beta: float) -> Tensor:
    """d/dx of f(x, y_K(x)), y_K after a step of gradient descent on each batch, through higher's unrolled loop."""
    import higher

    x, module = x.detach().requires_grad_(), _Lower(problem, y)
    with higher.innerloop_ctx(module, torch.optim.SGD(module.parameters(), lr=beta)) as (lower, steps):
        for batch in batches:
            steps.step(lower(x, batch))
        return torch.autograd.grad(problem.upper(x, lower.y, upper), x)[0]
