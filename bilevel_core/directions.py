"""The three directions at one point (x, y, v), and the products behind them.

    d_y = grad_y g(x, y)                   the lower level
    d_v = H(x, y) v - grad_y f(x, y)       the linear system, = grad_v R           paper: def:gradR
    d_x = grad_x f(x, y) - J(x, y) v       the hypergradient surrogate             paper: def:fffform

    H = second derivative of g in y,  J v = grad_x < grad_y g(x, y), v >

`exact` takes H v and J v by automatic differentiation; `finite_difference` takes them from first-order
gradients at y + delta v and y - delta v on the same batch (paper: def:H, def:J). Everything here is pure.

A method that needs several derivatives at one x and on one batch asks `losses` for f and g there: what depends on x
alone is computed once, and one forward pass at a y serves every derivative at that y.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.checks import POSITIVE
from bilevel_core.counting import count
from bilevel_core.problem import BilevelProblem, Samples, check_scalar, check_vector

Partial = Callable[[Tensor, Any], Callable[[Tensor], Tensor]]  # problem.upper_at or problem.lower_at
Tensors = Tensor | Sequence[Tensor]
LossFunction = Callable[[Tensor, Tensor, Any], Tensor]  # problem.upper or problem.lower


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


class Loss:
    """f or g at one x on one batch, as a function of y, with its derivatives.

    The graph at the last y (the same tensor) is kept: further derivatives there need no further forward pass.
    """

    def __init__(self, name: str, at: Partial, x: Tensor, batch: Any, fixed: bool = False):
        self.name, self.at, self.x, self.batch = name, at, x.detach().requires_grad_(not fixed), batch
        self.given: Tensor | None = None
        self.slope: Tensor | None = None

    def __call__(self, y: Tensor) -> Tensor:
        """The loss itself."""
        return self._value(y).detach()

    def grad_y(self, y: Tensor, keep: bool = False) -> Tensor:
        """grad_y of the loss; `keep` its graph for products that will be asked for later."""
        count(gradients=1)
        value = self._value(y)
        if self.slope is None and not keep:
            return derivatives(value, self.y, retain=True)[0]
        return self._slope(y).detach()

    def grad_x(self, y: Tensor, minus: Tensor | None = None) -> Tensor:
        """grad_x of the loss at y, or of its difference from that at another y, in one backward pass."""
        count(gradients=1 if minus is None else 2)
        value = self._value(y)
        with torch.enable_grad():
            value = value if minus is None else value - check_scalar(self.name, self.function(minus.detach()))
        return derivatives(value, self.x, retain=True)[0]

    def gradients(self, y: Tensor) -> tuple[Tensor, ...]:
        """grad_x and grad_y in one backward pass."""
        count(gradients=2)
        return derivatives(self._value(y), self.x, self.y, retain=True)

    def hessian_vector(self, y: Tensor, v: Tensor) -> Tensor:
        """H v."""
        count(Hv=1)
        return derivatives(self._slope(y), self.y, retain=True, towards=v)[0]

    def jacobian_vector(self, y: Tensor, v: Tensor) -> Tensor:
        """J v."""
        count(Jv=1)
        return derivatives(self._slope(y), self.x, retain=True, towards=v)[0]

    def products(self, y: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        """H v and J v in one backward pass."""
        count(Hv=1, Jv=1)
        return derivatives(self._slope(y), self.y, self.x, retain=True, towards=v)

    @cached_property
    def function(self) -> Callable[[Tensor], Tensor]:
        """The loss as a function of y, with all that x alone decides computed, once it is asked for."""
        with torch.enable_grad():
            return self.at(self.x, self.batch)

    def _value(self, y: Tensor) -> Tensor:
        if self.given is not y:
            self.given, self.y, self.slope = y, _leaf(y), None
            with torch.enable_grad():
                self.value = check_scalar(self.name, self.function(self.y), graph=self.x.requires_grad)
        return self.value

    def _slope(self, y: Tensor) -> Tensor:
        """grad_y of the loss as something to be differentiated again."""
        value = self._value(y)
        if self.slope is None:
            self.slope = derivatives(value, self.y, differentiable=True)[0]
        return self.slope


def losses(problem: BilevelProblem, x: Tensor, samples: Samples, fixed: bool = False) -> tuple[Loss, Loss]:
    """f and g at one x on one draw, as functions of y; `fixed` promises that no derivative in x will be asked for."""
    return Loss("upper", problem.upper_at, x, samples.upper, fixed), lower_loss(problem, x, samples.lower, fixed)


def lower_loss(problem: BilevelProblem, x: Tensor, batch: Any, fixed: bool = False) -> Loss:
    """g alone."""
    return Loss("lower", problem.lower_at, x, batch, fixed)


def exact(problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples | ThreeSamples) -> Directions:
    """The directions with exact products: 3 gradients, one H v, one J v."""
    return exact_at(problem, [Point(x, y, v)], samples)[0]


def exact_at(problem: BilevelProblem, points: Sequence[Point], samples: Samples | ThreeSamples) -> list[Directions]:
    """`exact` at several points on the same samples, with the backward passes of one."""
    if mean := getattr(problem, "mean_directions", None):  # of `Distributed`: one message for all of them
        return list(mean(exact_at, points, samples))
    if isinstance(samples, ThreeSamples):
        return [_from_three_draws(problem, point, samples) for point in points]
    n, (x, y, v) = len(points), _leaves(points)
    with torch.enable_grad():
        f = _values("upper", problem.upper_at, samples.upper, x, y)
        g_y = derivatives(_values("lower", problem.lower_at, samples.lower, x, y), *y, differentiable=True)
        # One backward pass of  < g_y, v > - f  gives d_v in y and, with a minus, d_x in x.
        found = derivatives([*g_y, *f], *x, *y, towards=[*v, *(-torch.ones_like(value) for value in f)])
    count(gradients=3 * n, Hv=n, Jv=n)
    return [Directions(d.detach(), d_v, -e) for d, e, d_v in zip(g_y, found, found[n:], strict=False)]


def finite_difference(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples | ThreeSamples, delta: float
) -> Directions:
    """The directions with central differences of first-order gradients: 7 gradients, no second derivative.

    One backward pass of  f - (g(y + delta v) - g(y - delta v)) / (2 delta)  gives d_x and, in y, the rest.
    """
    return finite_difference_at(problem, [Point(x, y, v)], samples, delta)[0]


def finite_difference_at(
    problem: BilevelProblem, points: Sequence[Point], samples: Samples | ThreeSamples, delta: float
) -> list[Directions]:
    """`finite_difference` at several points on the same samples, with the backward passes of one."""
    POSITIVE.check(delta=delta)
    if mean := getattr(problem, "mean_directions", None):
        return list(mean(finite_difference_at, points, samples, delta))
    if isinstance(samples, ThreeSamples):
        return [_from_three_draws(problem, point, samples, delta) for point in points]
    n, (x, y, v) = len(points), _leaves(points)
    up, down = ([_leaf(b + step * c) for b, c in zip(y, v, strict=True)] for step in (delta, -delta))
    with torch.enable_grad():
        f = _values("upper", problem.upper_at, samples.upper, x, y)
        g = [_lower_at_each(problem, a, ys, samples.lower) for a, *ys in zip(x, y, up, down, strict=True)]
        # This pass stops at y: nothing that depends on x alone is visited.
        g_y = derivatives([check_scalar("lower", here, graph=True) for here, _, _ in g], *y, retain=True)
        ahead = [a - (g_up - g_down) / (2 * delta) for a, (_, g_up, g_down) in zip(f, g, strict=True)]
        found = derivatives(ahead, *x, *y, *up, *down)
    count(gradients=7 * n)
    parts = zip(g_y, found, found[n:], found[2 * n :], found[3 * n :], strict=False)
    return [Directions(d, -(a + b) - f_y, d_x) for d, d_x, f_y, a, b in parts]


def hessian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """H v: exact, or with delta: [grad_y g(x, y + delta v) - grad_y g(x, y - delta v)] / (2 delta)."""
    _check_point(x, y, v)
    if delta is None:
        return lower_loss(problem, x, batch, fixed=True).hessian_vector(y, v)
    up, down = _central_difference(problem, x.detach(), y, v, batch, delta, of="y")
    return up + down


def jacobian_vector(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float | None = None
) -> Tensor:
    """J v: exact, or with delta: [grad_x g(x, y + delta v) - grad_x g(x, y - delta v)] / (2 delta)."""
    _check_point(x, y, v)
    if delta is None:
        return lower_loss(problem, x, batch).jacobian_vector(y, v)
    return _central_difference(problem, _leaf(x), y, v, batch, delta, of="x")[0]


def _central_difference(
    problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, batch: Any, delta: float, of: str
) -> tuple[Tensor, ...]:
    POSITIVE.check(delta=delta)
    count(gradients=2)
    ys = [_leaf(y.detach() + step * v) for step in (delta, -delta)]
    with torch.enable_grad():
        g_up, g_down = _lower_at_each(problem, x, ys, batch)
        return derivatives((g_up - g_down) / (2 * delta), *([x] if of == "x" else ys))


def project(v: Tensor, radius: float) -> Tensor:
    """The nearest point to v in the ball of the given radius (Algorithm 1, line 6)."""
    if not radius > 0:
        raise ValueError(f"the radius r_v must be positive, got {radius}")
    norm = torch.linalg.vector_norm(v)
    # The nudge keeps ||v|| <= radius true in floating point, where v * (radius / norm) may round upwards.
    return v * ((1 - 4 * torch.finfo(v.dtype).eps) * radius / norm) if norm > radius else v


def grad_x(loss: LossFunction, x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_x of problem.upper or problem.lower on one batch."""
    x = _leaf(x)
    return _first_order(loss, x, y.detach(), batch, x)


def grad_y(loss: LossFunction, x: Tensor, y: Tensor, batch: Any) -> Tensor:
    """grad_y of problem.upper or problem.lower on one batch."""
    y = _leaf(y)
    return _first_order(loss, x.detach(), y, batch, y)


def _first_order(loss: LossFunction, x: Tensor, y: Tensor, batch: Any, of: Tensor) -> Tensor:
    count(gradients=1)
    with torch.enable_grad():
        return derivatives(check_scalar(loss.__name__, loss(x, y, batch)), of)[0]


def _from_three_draws(
    problem: BilevelProblem, point: Point, samples: ThreeSamples, delta: float | None = None
) -> Directions:
    """The directions each on a draw of its own, so that nothing can be shared."""
    x, y, v = point
    d_y = grad_y(problem.lower, x, y, samples.y.lower)
    d_v = hessian_vector(problem, x, y, v, samples.v.lower, delta) - grad_y(problem.upper, x, y, samples.v.upper)
    d_x = grad_x(problem.upper, x, y, samples.x.upper) - jacobian_vector(problem, x, y, v, samples.x.lower, delta)
    return Directions(d_y, d_v, d_x)


def _lower_at_each(problem: BilevelProblem, x: Tensor, ys: Sequence[Tensor], batch: Any) -> Sequence[Tensor]:
    """g(x, y; batch) for each y: vectorised, or one by one where that is faster or the only way."""
    g = problem.lower_at(x, batch)

    def lower(y: Tensor) -> Tensor:
        return check_scalar("lower", g(y))

    if problem.shares_x:
        with suppress(RuntimeError):  # `.item()`, a branch on values
            return torch.func.vmap(lower)(torch.stack(list(ys))).unbind()
    return [lower(y) for y in ys]


def _values(name: str, at: Partial, batch: Any, x: Sequence[Tensor], y: Sequence[Tensor]) -> list[Tensor]:
    """A loss at several points on one batch."""
    return [check_scalar(name, at(a, batch)(b), graph=True) for a, b in zip(x, y, strict=True)]


def _leaves(points: Sequence[Point]) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    for point in points:
        _check_point(*point)
    x, y, v = zip(*points, strict=True)
    return [_leaf(a) for a in x], [_leaf(b) for b in y], list(v)


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().requires_grad_()


def derivatives(
    of: Tensors, *inputs: Tensor, differentiable: bool = False, retain: bool = False, towards: Tensors | None = None
) -> tuple[Tensor, ...]:
    """Gradients of a scalar, or of < of, towards >; zeros for an input that it does not depend on."""
    outputs = [of] if isinstance(of, Tensor) else of
    vectors = [towards] * len(outputs) if towards is None or isinstance(towards, Tensor) else towards
    known = [pair for pair in zip(outputs, vectors, strict=True) if pair[0].requires_grad]
    if not known:
        return tuple(torch.zeros_like(i) for i in inputs)
    keep = {"create_graph": differentiable, "retain_graph": retain or differentiable, "materialize_grads": True}
    outputs, vectors = zip(*known, strict=True)
    return torch.autograd.grad(outputs, inputs, vectors, **keep)


def _check_point(x: Tensor, y: Tensor, v: Tensor) -> None:
    check_vector("x", x)
    check_vector("y", y)
    check_vector("v", v, like=y)
