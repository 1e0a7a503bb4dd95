"""f and g at one x and on one batch, for methods that need several derivatives there.

What depends on x alone is computed once, and one forward pass at a y serves every derivative at that y.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from bilevel_core import directions
from bilevel_core.counting import count
from bilevel_core.directions import derivatives, leaf
from bilevel_core.problem import BilevelProblem, Samples, check_scalar


class Loss:
    """f ("upper") or g ("lower") at one x on one batch, as a function of y, with its derivatives.

    The graph at the last y (the same tensor) is kept: further derivatives there need no further forward pass.
    """

    def __init__(self, problem: BilevelProblem, name: str, x: Tensor, batch: Any):
        self.problem, self.name, self.x, self.batch = problem, name, leaf(x), batch
        self.last_y: Tensor | None = None

    def grad_y(self, y: Tensor) -> Tensor:
        count(gradients=1)
        value = self._value(y)
        return derivatives(value, self.y, retain=True)[0] if self.slope is None else self.slope.detach()

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
        if delta is not None:
            return directions.hessian_vector(self.problem, self.x, y, v, self.batch, delta)
        count(Hv=1)
        return derivatives(self._slope(y), self.y, retain=True, grad_outputs=v)[0]

    def jacobian_vector(self, y: Tensor, v: Tensor, delta: float | None = None) -> Tensor:
        if delta is not None:
            return directions.jacobian_vector(self.problem, self.x, y, v, self.batch, delta)
        count(Jv=1)
        return derivatives(self._slope(y), self.x, retain=True, grad_outputs=v)[0]

    def products(self, y: Tensor, v: Tensor) -> tuple[Tensor, ...]:
        """H v and J v in one backward pass."""
        count(Hv=1, Jv=1)
        return derivatives(self._slope(y), self.y, self.x, retain=True, grad_outputs=v)

    @cached_property
    def function(self) -> Callable[[Tensor], Tensor]:
        """The loss as a function of y, with all that x alone decides computed, once it is asked for."""
        with torch.enable_grad():
            at = self.problem.upper_at if self.name == "upper" else self.problem.lower_at
            return at(self.x, self.batch)

    def _value(self, y: Tensor) -> Tensor:
        if self.last_y is not y:
            self.last_y, self.y, self.slope = y, leaf(y), None
            with torch.enable_grad():
                self.value = check_scalar(self.name, self.function(self.y), graph=True)
        return self.value

    def _slope(self, y: Tensor) -> Tensor:
        """grad_y of the loss as something to be differentiated again."""
        value = self._value(y)
        if self.slope is None:
            self.slope = derivatives(value, self.y, differentiable=True)[0]
        return self.slope


def losses(problem: BilevelProblem, x: Tensor, samples: Samples) -> tuple[Loss, Loss]:
    """f and g at one x on one draw, as functions of y."""
    return Loss(problem, "upper", x, samples.upper), Loss(problem, "lower", x, samples.lower)
