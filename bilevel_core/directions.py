"""The three directions at one point (x, y, v), and the products behind them.

    d_y = grad_y g(x, y)                   the lower level
    d_v = H(x, y) v - grad_y f(x, y)       the linear system, = grad_v R           paper: def:gradR
    d_x = grad_x f(x, y) - J(x, y) v       the hypergradient surrogate             paper: def:fffform

    H = second derivative of g in y,  J v = grad_x < grad_y g(x, y), v >

`exact` takes H v and J v by automatic differentiation; `finite_difference` takes them from first-order
gradients at y + delta v and y - delta v on the same batch (paper: def:H, def:J). Everything here is pure.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.counting import count
from bilevel_core.problem import BilevelProblem, Samples, check_scalar, check_vector

Loss = Callable[[Tensor, Tensor, Any], Tensor]  # problem.upper or problem.lower


class Directions(NamedTuple):
    """(d_y, d_v, d_x), or the momentum estimators h of the three."""

    y: Tensor
    v: Tensor
    x: Tensor


class ThreeSamples(NamedTuple):
    """Independent draws for the three directions: zeta for d_y, psi for d_v, xi for d_x."""

    y: Samples
    v: Samples
    x: Samples


def exact(problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples | ThreeSamples) -> Directions:
    """The directions with exact products: 3 gradients, one H v, one J v."""
    _check_point(x, y, v)
    if isinstance(samples, ThreeSamples):
        d_y = grad_y(problem.lower, x, y, samples.y.lower)
        d_v = hessian_vector(problem, x, y, v, samples.v.lower) - grad_y(problem.upper, x, y, samples.v.upper)
        d_x = grad_x(problem.upper, x, y, samples.x.upper) - jacobian_vector(problem, x, y, v, samples.x.lower)
        return Directions(d_y, d_v, d_x)
    x, y = _leaf(x), _leaf(y)
    with torch.enable_grad():
        f = check_scalar("upper", problem.upper(x, y, samples.upper))
        g = check_scalar("lower", problem.lower(x, y, samples.lower))
        f_x, f_y = _grad(f, x, y)
        (g_y,) = _grad(g, y, differentiable=True)
        Jv, Hv = _grad(g_y @ v, x, y)  # one double backward gives both products
    count(gradients=3, Hv=1, Jv=1)
    return Directions(g_y.detach(), Hv - f_y, f_x - Jv)


def finite_difference(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples | ThreeSamples, delta: float
) -> Directions:
    """The directions with central differences of first-order gradients: 7 gradients, no second derivative.

    One forward pass serves g at y, y + delta v and y - delta v: what depends on x alone is computed once.
    One backward pass of  f - (g(y + delta v) - g(y - delta v)) / (2 delta)  gives d_x and, in y, the rest.
    """
    _check_point(x, y, v)
    _check_delta(delta)
    if isinstance(samples, ThreeSamples):
        d_y = grad_y(problem.lower, x, y, samples.y.lower)
        d_v = hessian_vector(problem, x, y, v, samples.v.lower, delta) - grad_y(problem.upper, x, y, samples.v.upper)
        d_x = grad_x(problem.upper, x, y, samples.x.upper) - jacobian_vector(problem, x, y, v, samples.x.lower, delta)
        return Directions(d_y, d_v, d_x)
    x, y = _leaf(x), _leaf(y)
    rows = _leaf(torch.stack((y.detach(), y + delta * v, y - delta * v)))
    with torch.enable_grad():
        f = check_scalar("upper", problem.upper(x, y, samples.upper))
        g, g_plus, g_minus = _lower_at(problem, x, rows, samples.lower)
        (g_rows,) = _grad(g, rows, retain=True)  # stops at y: nothing that depends on x alone is visited
        d_x, f_y, minus_Hv = _grad(f - (g_plus - g_minus) / (2 * delta), x, y, rows)
    count(gradients=7)
    return Directions(g_rows[0], -minus_Hv.sum(0) - f_y, d_x)


def hessian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """H v: exact, or with delta: [grad_y g(x, y + delta v) - grad_y g(x, y - delta v)] / (2 delta)."""
    return _product(problem, x, y, v, batch, delta, of="y")


def jacobian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """J v: exact, or with delta: [grad_x g(x, y + delta v) - grad_x g(x, y - delta v)] / (2 delta)."""
    return _product(problem, x, y, v, batch, delta, of="x")


def surrogate(problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples) -> Tensor:
    """d_x = grad_x f - J v alone: 1 gradient, 1 J v."""
    return grad_x(problem.upper, x, y, samples.upper) - jacobian_vector(problem, x, y, v, samples.lower)


def project(v: Tensor, radius: float) -> Tensor:
    """The nearest point to v in the ball of the given radius (Algorithm 1, line 6)."""
    if not radius > 0:
        raise ValueError(f"the radius r_v must be positive, got {radius}")
    norm = torch.linalg.vector_norm(v)
    # The nudge keeps ||v|| <= radius true in floating point, where v * (radius / norm) may round upwards.
    return torch.where(norm > radius, v * ((1 - 4 * torch.finfo(v.dtype).eps) * radius / norm), v)


def grad_x(loss: Loss, x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_x of problem.upper or problem.lower on one batch."""
    return _first_order(loss, x, y, batch, of="x")


def grad_y(loss: Loss, x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_y of problem.upper or problem.lower on one batch."""
    return _first_order(loss, x, y, batch, of="y")


def _first_order(loss: Loss, x: Tensor, y: Tensor, batch: Any, of: str) -> Tensor:
    x, y = (_leaf(x), y.detach()) if of == "x" else (x.detach(), _leaf(y))
    with torch.enable_grad():
        (gradient,) = _grad(check_scalar(loss.__name__, loss(x, y, batch)), x if of == "x" else y)
    count(gradients=1)
    return gradient


def _product(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None, of: str
) -> Tensor:
    _check_point(x, y, v)
    x, y = _leaf(x) if of == "x" else x.detach(), _leaf(y)  # H v needs no graph of what depends on x alone
    with torch.enable_grad():
        if delta is None:
            (g_y,) = _grad(check_scalar("lower", problem.lower(x, y, batch)), y, differentiable=True)
            (product,) = _grad(g_y @ v, x if of == "x" else y)
            count(**{"Jv" if of == "x" else "Hv": 1})
            return product
        _check_delta(delta)
        rows = _leaf(torch.stack((y.detach() + delta * v, y.detach() - delta * v)))
        g_plus, g_minus = _lower_at(problem, x, rows, batch)
        (product,) = _grad((g_plus - g_minus) / (2 * delta), x if of == "x" else rows)
    count(gradients=2)
    return product if of == "x" else product.sum(0)


def _lower_at(problem: BilevelProblem, x: Tensor, rows: Tensor, batch: Any) -> Tensor:
    """g(x, y; batch) for each row y: vectorised, or one by one where that is faster or the only way."""

    def lower(y: Tensor) -> Tensor:
        return check_scalar("lower", problem.lower(x, y, batch))

    if problem.shares_x:
        try:
            return torch.func.vmap(lower)(rows)
        except RuntimeError:  # `.item()`, a branch on values
            pass
    return torch.stack([lower(y) for y in rows])


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def _grad(scalar: Tensor, *inputs: Tensor, differentiable: bool = False, retain: bool = False) -> tuple[Tensor, ...]:
    """Gradients of a scalar; zeros for an input that it does not depend on."""
    if not scalar.requires_grad:
        return tuple(torch.zeros_like(i) for i in inputs)
    return torch.autograd.grad(
        scalar, inputs, create_graph=differentiable, retain_graph=retain or differentiable, materialize_grads=True
    )


def _check_point(x: Tensor, y: Tensor, v: Tensor) -> None:
    check_vector("x", x)
    check_vector("y", y)
    check_vector("v", v, like=y)


def _check_delta(delta: float) -> None:
    if not (delta > 0 and math.isfinite(delta)):
        raise ValueError(f"delta must be a positive number, got {delta}")
