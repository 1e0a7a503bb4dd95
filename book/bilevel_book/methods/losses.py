"""f and g at one x and on one batch, for methods and solvers that need several derivatives there.

What depends on x alone is computed once, and one forward pass at a y serves every derivative at that y.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bilevel_core.counting import count
from bilevel_core.directions import central_difference, derivatives, leaf
from bilevel_core.problem import BilevelProblem, Samples, check_scalar


class Loss:
    """f or g at one x on one batch, as a function of y, with its derivatives.

    The graph at the last y (the same tensor) is kept: further derivatives there need no further forward pass.
    """

    def __init__(
        self,
        name: str,
        loss_at: Callable[[Tensor, Any], Callable[[Tensor], Tensor]],  # problem.upper_at or problem.lower_at
        x: Tensor,
        batch: Any,
        needs_grad_x: bool = True,
    ):
        self.name, self.loss_at, self.x, self.batch = name, loss_at, x.detach().requires_grad_(needs_grad_x), batch
        self.last_y: Tensor | None = None
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

    def hessian_vector(self, y: Tensor, v: Tensor, delta: float | None = None) -> Tensor:
        """H v, exact or by central differences."""
        if delta is None:
            count(Hv=1)
            return derivatives(self._slope(y), self.y, retain=True, grad_outputs=v)[0]
        count(gradients=2)
        with torch.enable_grad():
            slope, up, down = central_difference(self.function, y.detach(), v, delta)
        return torch.add(*derivatives(slope, up, down, retain=True))

    def jacobian_vector(self, y: Tensor, v: Tensor, delta: float | None = None) -> Tensor:
        """J v, exact or by central differences."""
        if delta is None:
            count(Jv=1)
            return derivatives(self._slope(y), self.x, retain=True, grad_outputs=v)[0]
        count(gradients=2)
        with torch.enable_grad():
            slope, _, _ = central_difference(self.function, y.detach(), v, delta)
        return derivatives(slope, self.x, retain=True)[0]

    def products(self, y: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        """H v and J v in one backward pass."""
        count(Hv=1, Jv=1)
        return derivatives(self._slope(y), self.y, self.x, retain=True, grad_outputs=v)

    @cached_property
    def function(self) -> Callable[[Tensor], Tensor]:
        """The loss as a function of y, with all that x alone decides computed, once it is asked for."""
        with torch.enable_grad():
            return self.loss_at(self.x, self.batch)

    def _value(self, y: Tensor) -> Tensor:
        if self.last_y is not y:
            self.last_y, self.y, self.slope = y, leaf(y), None
            with torch.enable_grad():
                self.value = check_scalar(self.name, self.function(self.y), graph=self.x.requires_grad)
        return self.value

    def _slope(self, y: Tensor) -> Tensor:
        """grad_y of the loss as something to be differentiated again."""
        value = self._value(y)
        if self.slope is None:
            self.slope = derivatives(value, self.y, differentiable=True)[0]
        return self.slope


def losses(problem: BilevelProblem, x: Tensor, samples: Samples, needs_grad_x: bool = True) -> tuple[Loss, Loss]:
    """f and g at one x on one draw, as functions of y."""
    f = Loss("upper", problem.upper_at, x, samples.upper, needs_grad_x)
    return f, lower_loss(problem, x, samples.lower, needs_grad_x)


def lower_loss(problem: BilevelProblem, x: Tensor, batch: Any, needs_grad_x: bool = True) -> Loss:
    """g alone."""
    return Loss("lower", problem.lower_at, x, batch, needs_grad_x)
