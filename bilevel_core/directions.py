"""The three directions at one point (x, y, v), and the products behind them.

    d_y = grad_y g(x, y)                   the lower level
    d_v = H(x, y) v - grad_y f(x, y)       grad_v R,  R(v) = < v, H v > / 2 - < grad_y f, v >      paper: def:gradR
    d_x = grad_x f(x, y) - J(x, y) v       the hypergradient, where y = y*(x) and v = v*           paper: def:fffform

    H = second derivative of g in y,  J v = grad_x < grad_y g(x, y), v >,  v approximates v* = H^-1 grad_y f

`exact` takes H v and J v by automatic differentiation, `finite_difference` from first-order gradients at y + delta v
and y - delta v on the same batch (paper: def:H, def:J). No function changes its arguments.
"""

import re
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.checks import POSITIVE, RADIUS
from bilevel_core.counting import count
from bilevel_core.problem import BilevelProblem, Loss, LossOfY, Samples, check_scalar, check_vector


class Directions(NamedTuple):
    """(d_y, d_v, d_x), or the momentum estimates h of the three (solvers/fmbo.py)."""

    y: Tensor
    v: Tensor
    x: Tensor


class Point(NamedTuple):
    """x, y and v at one time."""

    x: Tensor
    y: Tensor
    v: Tensor


class ThreeSamples(NamedTuple):
    """Independent draws: `y` for d_y, `v` for d_v, `x` for d_x (the paper's zeta, psi, xi), each with both batches."""

    y: Samples
    v: Samples
    x: Samples


@torch.enable_grad()
def exact(problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples) -> Directions:
    """The directions with exact products: 3 gradients, one H v, one J v."""
    count(gradients=3, Hv=1, Jv=1)
    x, y = variables(x, y, v)
    f = check_scalar("upper", problem.upper(x, y, samples.upper), graph=True)
    g = check_scalar("lower", problem.lower(x, y, samples.lower), graph=True)
    (d_y,) = derivatives(g, y, differentiable=True)
    # One backward pass: the gradient of  < d_y, v > - f  is J v - grad_x f in x, and d_v in y.
    minus_d_x, d_v = derivatives(d_y @ v - f, x, y)
    return Directions(d_y.detach(), d_v, -minus_d_x)


@torch.enable_grad()
def finite_difference(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples, delta: float
) -> Directions:
    """The directions with central differences of first-order gradients: 7 gradients, no second derivative."""
    count(gradients=7)
    x, y = variables(x, y, v)
    f = check_scalar("upper", problem.upper(x, y, samples.upper), graph=True)
    lower = problem.lower_at(x, samples.lower)  # the part that does not need y, once for three y
    g = check_scalar("lower", lower(y), graph=True)
    slope, (up, down) = slope_along(lower, y, v, delta)
    (d_y,) = derivatives(g, y)
    # One backward pass: the gradients of  f - slope  at the two ends add up to -H v.
    d_x, f_y, at_up, at_down = derivatives(f - slope, x, y, up, down)
    return Directions(d_y, -(at_up + at_down) - f_y, d_x)


@torch.enable_grad()
def one_graph_at_a_time(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples, delta: float
) -> Directions:
    """`finite_difference` with a backward pass after each of its four losses, so that one graph is in memory at a time;
    what depends on x alone is computed once and differentiated twice."""
    count(gradients=7)
    POSITIVE.check(delta=delta)
    x, y = variables(x, y, v)
    d_x, f_y = derivatives(check_scalar("upper", problem.upper(x, y, samples.upper), graph=True), x, y)
    lower, d_v = problem.lower_at(x, samples.lower), -f_y
    (d_y,) = derivatives(check_scalar("lower", lower(y), graph=True), y)
    for step in (delta, -delta):
        end = leaf(y + step * v)
        g_x, g_y = derivatives(lower(end) / (2 * step), x, end, retain=True)
        d_x, d_v = d_x - g_x, d_v + g_y
    return Directions(d_y, d_v, d_x)


def on_three_draws(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: ThreeSamples, delta: float | None
) -> Directions:
    """The directions with a draw of its own for each, by exact products or with a delta by central differences."""
    d_y = grad_y(problem.lower, x, y, samples.y.lower)
    d_v = hessian_vector(problem, x, y, v, samples.v.lower, delta) - grad_y(problem.upper, x, y, samples.v.upper)
    d_x = grad_x(problem.upper, x, y, samples.x.upper) - jacobian_vector(problem, x, y, v, samples.x.lower, delta)
    return Directions(d_y, d_v, d_x)


@torch.enable_grad()
def hessian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """H v: exact, or with delta: [grad_y g(x, y + delta v) - grad_y g(x, y - delta v)] / (2 delta)."""
    count(Hv=1) if delta is None else count(gradients=2)
    _, y = variables(x, y, v)
    slope, ends = slope_along(problem.lower_at(x.detach(), batch), y, v, delta)
    return torch.stack(derivatives(slope, *ends)).sum(0)


@torch.enable_grad()
def jacobian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """J v: exact, or with delta: [grad_x g(x, y + delta v) - grad_x g(x, y - delta v)] / (2 delta)."""
    count(Jv=1) if delta is None else count(gradients=2)
    x, y = variables(x, y, v)
    slope, _ = slope_along(problem.lower_at(x, batch), y, v, delta)
    return derivatives(slope, x)[0]


def slope_along(lower: LossOfY, y: Tensor, v: Tensor, delta: float | None) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The slope of g along v, as a scalar to differentiate, and the points at which it evaluates g:

        < grad_y g(y), v >                                y
        [g(y + delta v) - g(y - delta v)] / (2 delta)     y + delta v and y - delta v

    Its derivative in x is J v. Its derivatives in the points add up to H v. With delta, both are approximate.
    """
    if delta is None:
        (g_y,) = derivatives(lower(y), y, differentiable=True)
        return g_y @ v, (y,)
    POSITIVE.check(delta=delta)
    up, down = leaf(y + delta * v), leaf(y - delta * v)
    return (lower(up) - lower(down)) / (2 * delta), (up, down)


@torch.enable_grad()
def grad_x(loss: Loss, x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_x of problem.upper or problem.lower on one batch."""
    count(gradients=1)
    x = leaf(x)
    return derivatives(loss(x, y.detach(), batch), x)[0]


@torch.enable_grad()
def grad_y(loss: Loss, x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_y of problem.upper or problem.lower on one batch."""
    count(gradients=1)
    y = leaf(y)
    return derivatives(loss(x.detach(), y, batch), y)[0]


def project(v: Tensor, radius: float) -> Tensor:
    """The nearest point to v in the ball of the given radius (Algorithm 1 of the paper, line 6)."""
    RADIUS.check(r_v=radius)
    norm = torch.linalg.vector_norm(v)
    # The factor keeps ||v|| <= radius in floating point: v * (radius / norm) may round upwards, by less than 4 eps.
    return v * ((1 - 4 * torch.finfo(v.dtype).eps) * radius / norm) if norm > radius else v


def leaf(tensor: Tensor) -> Tensor:
    """The same numbers as a new leaf of the graph, to differentiate with respect to."""
    return tensor.detach().requires_grad_()


def variables(x: Tensor, y: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """x and y as leaves; ValueError unless x is 1-D and v has the shape and dtype of y."""
    check_vector("x", x)
    check_vector("v", v, like=y)
    return leaf(x), leaf(y)


def derivatives(
    of: Tensor, *inputs: Tensor, grad_outputs: Tensor | None = None, differentiable: bool = False, retain: bool = False
) -> tuple[Tensor, ...]:
    """Gradients of the scalar `of`, or of < of, grad_outputs >; zeros in an input that it does not depend on."""
    if not of.requires_grad:
        return tuple(torch.zeros_like(z) for z in inputs)
    keep = retain or differentiable
    try:
        return torch.autograd.grad(of, inputs, grad_outputs, keep, differentiable, materialize_grads=True)
    except RuntimeError as error:
        if not (missing := re.search(r"derivative for (\S+) is not implemented", str(error))):
            raise
        what = f"torch has no second derivative of {missing[1]}, which exact products H v and J v need"
        raise NotImplementedError(f"{what}: use FdeHBO, or a single-loop method with delta=0.01") from error
