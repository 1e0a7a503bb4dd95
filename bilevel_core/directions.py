"""The three directions at one point (x, y, v), and the products behind them.

    d_y = grad_y g(x, y)                   the lower level
    d_v = H(x, y) v - grad_y f(x, y)       the linear system, = grad_v R           paper: def:gradR
    d_x = grad_x f(x, y) - J(x, y) v       the hypergradient surrogate             paper: def:fffform

    H = second derivative of g in y,  J v = grad_x < grad_y g(x, y), v >

`exact` takes H v and J v by automatic differentiation, `finite_difference` from first-order gradients at y + delta v
and y - delta v on the same batch (paper: def:H, def:J). Everything here is pure.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.checks import POSITIVE
from bilevel_core.counting import count
from bilevel_core.problem import BilevelProblem, Samples, check_scalar, check_vector


class Directions(NamedTuple):
    """(d_y, d_v, d_x), or the momentum estimators h of the three."""

    y: Tensor
    v: Tensor
    x: Tensor


class Point(NamedTuple):
    """x, y and v at one time."""

    x: Tensor
    y: Tensor
    v: Tensor


class ThreeSamples(NamedTuple):
    """Independent draws for the three directions: zeta for d_y, psi for d_v, xi for d_x."""

    y: Samples
    v: Samples
    x: Samples


def exact(problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples) -> Directions:
    """The directions with exact products: 3 gradients, one H v, one J v."""
    _check_point(x, y, v)
    x, y = leaf(x), leaf(y)
    with torch.enable_grad():
        f = check_scalar("upper", problem.upper(x, y, samples.upper), graph=True)
        g = check_scalar("lower", problem.lower(x, y, samples.lower), graph=True)
        (d_y,) = derivatives(g, y, differentiable=True)
        # One backward pass of  < grad_y g, v > - f  gives d_v in y and, with a minus, d_x in x.
        minus_d_x, d_v = derivatives([d_y, f], x, y, grad_outputs=[v, -torch.ones_like(f)])
    count(gradients=3, Hv=1, Jv=1)
    return Directions(d_y.detach(), d_v, -minus_d_x)


def finite_difference(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples, delta: float
) -> Directions:
    """The directions with central differences of first-order gradients: 7 gradients, no second derivative.

    One backward pass of  f - [g(x, y + delta v) - g(x, y - delta v)] / (2 delta)  gives d_x and, in y, the rest.
    """
    _check_point(x, y, v)
    x, y = leaf(x), leaf(y)
    with torch.enable_grad():
        f = check_scalar("upper", problem.upper(x, y, samples.upper), graph=True)
        lower = problem.lower_at(x, samples.lower)  # what depends on x alone is computed once for the three y
        g = check_scalar("lower", lower(y), graph=True)
        slope, (up, down) = slope_along(lower, y, v, delta)
        (d_y,) = derivatives(g, y, retain=True)  # this pass stops at y: what depends on x alone is not visited
        d_x, f_y, minus_up, minus_down = derivatives(f - slope, x, y, up, down)
    count(gradients=7)
    return Directions(d_y, -(minus_up + minus_down) - f_y, d_x)


def on_three_draws(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: ThreeSamples, delta: float | None
) -> Directions:
    """The directions with a draw of its own for each, by exact products or with a delta by central differences."""
    d_y = grad_y(problem.lower, x, y, samples.y.lower)
    d_v = hessian_vector(problem, x, y, v, samples.v.lower, delta) - grad_y(problem.upper, x, y, samples.v.upper)
    d_x = grad_x(problem.upper, x, y, samples.x.upper) - jacobian_vector(problem, x, y, v, samples.x.lower, delta)
    return Directions(d_y, d_v, d_x)


def hessian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """H v: exact, or with delta: [grad_y g(x, y + delta v) - grad_y g(x, y - delta v)] / (2 delta)."""
    _check_point(x, y, v)
    with torch.enable_grad():
        slope, ends = slope_along(problem.lower_at(x.detach(), batch), y, v, delta)
    count(**{"Hv": 1} if delta is None else {"gradients": 2})
    return torch.stack(derivatives(slope, *ends)).sum(0)


def jacobian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """J v: exact, or with delta: [grad_x g(x, y + delta v) - grad_x g(x, y - delta v)] / (2 delta)."""
    _check_point(x, y, v)
    x = leaf(x)
    with torch.enable_grad():
        slope, _ = slope_along(problem.lower_at(x, batch), y, v, delta)
    count(**{"Jv": 1} if delta is None else {"gradients": 2})
    return derivatives(slope, x)[0]


def slope_along(
    lower: Callable[[Tensor], Tensor], y: Tensor, v: Tensor, delta: float | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The slope of g along v, to be differentiated: in x that gives J v, in the ends, which come with it, H v.

    < grad_y g(y), v >                                at the one end y
    [g(y + delta v) - g(y - delta v)] / (2 delta)     at the two ends y + delta v and y - delta v
    """
    if delta is None:
        y = leaf(y)
        (g_y,) = derivatives(check_scalar("lower", lower(y)), y, differentiable=True)
        return g_y @ v, (y,)
    POSITIVE.check(delta=delta)
    up, down = leaf(y + delta * v), leaf(y - delta * v)
    g_up, g_down = check_scalar("lower", lower(up)), check_scalar("lower", lower(down))
    return (g_up - g_down) / (2 * delta), (up, down)


def grad_x(loss: Callable[..., Tensor], x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_x of problem.upper or problem.lower on one batch."""
    count(gradients=1)
    x = leaf(x)
    with torch.enable_grad():
        return derivatives(check_scalar(loss.__name__, loss(x, y.detach(), batch)), x)[0]


def grad_y(loss: Callable[..., Tensor], x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_y of problem.upper or problem.lower on one batch."""
    count(gradients=1)
    y = leaf(y)
    with torch.enable_grad():
        return derivatives(check_scalar(loss.__name__, loss(x.detach(), y, batch)), y)[0]


def project(v: Tensor, radius: float) -> Tensor:
    """The nearest point to v in the ball of the given radius (Algorithm 1, line 6)."""
    if not radius > 0:
        raise ValueError(f"the radius r_v must be positive, got {radius}")
    norm = torch.linalg.vector_norm(v)
    # The nudge keeps ||v|| <= radius true in floating point, where v * (radius / norm) may round upwards.
    return v * ((1 - 4 * torch.finfo(v.dtype).eps) * radius / norm) if norm > radius else v


def leaf(tensor: Tensor) -> Tensor:
    """The same numbers as a variable to differentiate by."""
    return tensor.detach().requires_grad_()


def derivatives(
    of: Tensor | Sequence[Tensor],
    *inputs: Tensor,
    grad_outputs: Tensor | Sequence[Tensor] | None = None,
    differentiable: bool = False,
    retain: bool = False,
) -> tuple[Tensor, ...]:
    """Gradients of a scalar, or of < of, grad_outputs >; zeros for an input that it does not depend on."""
    outputs = [of] if isinstance(of, Tensor) else of
    vectors = [grad_outputs] * len(outputs) if isinstance(grad_outputs, Tensor | None) else grad_outputs
    known = [pair for pair in zip(outputs, vectors, strict=True) if pair[0].requires_grad]
    if not known:
        return tuple(torch.zeros_like(z) for z in inputs)
    graph = {"create_graph": differentiable, "retain_graph": retain or differentiable, "materialize_grads": True}
    outputs, vectors = zip(*known, strict=True)
    try:
        return torch.autograd.grad(outputs, inputs, vectors, **graph)
    except RuntimeError as error:
        missing = re.search(r"derivative for (\S+) is not implemented", str(error))
        if not missing:
            raise
        raise NotImplementedError(
            f"torch has no second derivative of {missing[1]}, which exact products H v and J v need: take FdeHBO, or "
            "another single-loop method with delta=0.01, which need first-order gradients only"
        ) from error


def _check_point(x: Tensor, y: Tensor, v: Tensor) -> None:
    check_vector("x", x)
    check_vector("y", y)
    check_vector("v", v, like=y)
