"""A bilevel problem: two losses, a start, and a way to draw samples.

minimise over x   Phi(x) = E_xi f(x, y*(x); xi)
where             y*(x)  = argmin over y of  E_zeta g(x, y; zeta)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Samples(NamedTuple):
    """One draw: a batch for the upper loss f and a batch for the lower loss g (any objects)."""

    upper: Any
    lower: Any


class BilevelProblem(ABC):
    """Subclass this and say what f, g, the start and a draw are. x and y are flat (1-D) tensors.

    Where much of a loss depends on x and the batch alone (the features of a network), give `upper_at` and `lower_at`
    instead of `upper` and `lower`: that part is then computed once for all y that a method looks at.
    """

    # Whether much of the lower loss depends on x alone (the features of a network), so that finite differences in y
    # should compute that part once and vectorise the rest over y. Where little does, one y after the other is faster.
    shares_x: bool = True

    # Sizes of the parts that x is made of (the tensors of a network), where a method treats them one by one.
    x_blocks: tuple[int, ...] | None = None

    def __init_subclass__(cls) -> None:
        """A class gives f (and g) as `upper` or as `upper_at`; the other one is made here, also if a parent has one."""
        for name in ("upper", "lower"):
            whole, partial = name in vars(cls), vars(cls).get(f"{name}_at")
            if whole and partial is None:
                setattr(cls, f"{name}_at", vars(BilevelProblem)[f"{name}_at"])
            elif partial is not None and not whole:
                setattr(cls, name, _whole(name, partial))

    @abstractmethod
    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The first iterates x_0 and y_0."""

    @abstractmethod
    def sample(self, generator: torch.Generator) -> Samples:
        """Draw one independent pair of batches, using nothing but `generator` for randomness."""

    @abstractmethod
    def upper(self, x: Tensor, y: Tensor, batch: Any) -> Tensor:
        """f(x, y; batch), a scalar."""

    @abstractmethod
    def lower(self, x: Tensor, y: Tensor, batch: Any) -> Tensor:
        """g(x, y; batch), a scalar."""

    def upper_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        """y -> f(x, y; batch), with what depends on x and the batch alone computed before y is known."""
        return lambda y: self.upper(x, y, batch)

    def lower_at(self, x: Tensor, batch: Any) -> Callable[[Tensor], Tensor]:
        """y -> g(x, y; batch), likewise."""
        return lambda y: self.lower(x, y, batch)

    def project_x(self, x: Tensor) -> Tensor:
        """The nearest x that is allowed (a box, a ball, a simplex), taken after every step of x; by default all are."""
        return x

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Numbers to follow during a run; the first is shown in the progress bar."""
        return {}

    def full(self) -> Samples:
        """The batches that stand for the expectations: all the data, or no noise.

        The default is one fixed draw, which is right only when the problem is deterministic.
        """
        return self.sample(torch.Generator().manual_seed(0))

    def size(self, batch: Any) -> int:
        """How many data points `batch` holds, for counting samples."""
        return 1


def _whole(name: str, at: Callable[[Any, Tensor, Any], Callable[[Tensor], Tensor]]) -> Callable[..., Tensor]:
    def loss(self: BilevelProblem, x: Tensor, y: Tensor, batch: Any) -> Tensor:
        return at(self, x, batch)(y)

    loss.__name__ = name
    return loss


def check_vector(name: str, vector: Tensor, like: Tensor | None = None) -> None:
    """Raise ValueError unless `vector` is a finite-dimensional point: a 1-D float tensor, shaped as `like`."""
    if not isinstance(vector, Tensor) or vector.dim() != 1 or not vector.is_floating_point():
        given = f"shape {tuple(vector.shape)}, {vector.dtype}" if isinstance(vector, Tensor) else repr(vector)
        raise ValueError(f"{name} must be a 1-D tensor of floats, got {given}")
    if like is not None and (vector.shape != like.shape or vector.dtype != like.dtype):
        raise ValueError(
            f"{name} changed: expected shape {tuple(like.shape)}, {like.dtype}, "
            f"got {tuple(vector.shape)}, {vector.dtype}"
        )


def check_scalar(name: str, loss: Tensor) -> Tensor:
    """Return `loss`, or raise ValueError unless it is a scalar tensor."""
    if not isinstance(loss, Tensor) or loss.dim() != 0:
        given = f"a tensor of shape {tuple(loss.shape)}" if isinstance(loss, Tensor) else repr(loss)
        raise ValueError(f"{name} must return a scalar (0-D) tensor, got {given}; take the mean over the batch?")
    return loss


def check_problem(problem: BilevelProblem, seed: int) -> None:
    """Raise ValueError for anything in `problem` that a solver would stumble over later."""
    if not isinstance(problem, BilevelProblem):
        raise ValueError(f"problem must be a BilevelProblem, got {type(problem).__name__}")
    x, y = problem.start(torch.Generator().manual_seed(seed))
    check_vector("x", x)
    check_vector("y", y)
    if x.dtype != y.dtype or x.device != y.device:
        raise ValueError(
            f"x and y must share dtype and device, got {x.dtype} on {x.device} and {y.dtype} on {y.device}"
        )
    # A fresh generator: the check must not consume the randomness of the run.
    samples = problem.sample(torch.Generator().manual_seed(seed))
    if not isinstance(samples, Samples):
        raise ValueError(f"sample must return Samples(upper=..., lower=...), got {type(samples).__name__}")
    with torch.no_grad():
        check_scalar("upper", problem.upper(x, y, samples.upper))
        check_scalar("lower", problem.lower(x, y, samples.lower))
