"""A bilevel problem: two losses, a start, and a way to draw samples.

minimise over x   Phi(x) = E_xi f(x, y*(x); xi)
where             y*(x)  = argmin over y of  E_zeta g(x, y; zeta)
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from bilevel_core.checks import SEED

Loss = Callable[..., Tensor]  # of x, y and a batch
LossOfY = Callable[[Tensor], Tensor]  # where x and the batch are given
UNSEEN = " as far as torch sees; cut off by .detach(), .item(), numpy, torch.tensor(...), no_grad, inference_mode?"


class Samples(NamedTuple):
    """One draw: a batch for the upper loss f and a batch for the lower loss g (any objects)."""

    upper: Any
    lower: Any


class BilevelProblem(ABC):
    """Subclass this and say what f, g, the start and a draw are. x and y are flat (1-D) tensors.

    Where much of a loss depends on x and the batch alone (the features of a network), give `upper_at` and `lower_at`
    instead of `upper` and `lower`: that part is then computed once for all y that a method looks at.
    """

    # Sizes of the parts that x is made of (the tensors of a network), where a method treats them one by one.
    x_blocks: tuple[int, ...] | None = None

    @abstractmethod
    def start(self, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The first iterates x_0 and y_0."""

    @abstractmethod
    def sample(self, generator: torch.Generator) -> Samples:
        """Draw one independent pair of batches, using nothing but `generator` for randomness."""

    def upper(self, x: Tensor, y: Tensor, batch: Any) -> Tensor:
        """f(x, y; batch), a scalar."""
        return self.upper_at(x, batch)(y)

    def lower(self, x: Tensor, y: Tensor, batch: Any) -> Tensor:
        """g(x, y; batch), a scalar."""
        return self.lower_at(x, batch)(y)

    def upper_at(self, x: Tensor, batch: Any) -> LossOfY:
        """y -> f(x, y; batch), with what depends on x and the batch alone computed before y is known."""
        return lambda y: self.upper(x, y, batch)

    def lower_at(self, x: Tensor, batch: Any) -> LossOfY:
        """y -> g(x, y; batch), likewise."""
        return lambda y: self.lower(x, y, batch)

    def project_x(self, x: Tensor) -> Tensor:
        """The nearest x that is allowed (a box, a ball, a simplex), taken after every step of x; by default all are."""
        return x

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Numbers to follow in a run; the first is shown, and watched if "loss" or "objective" is in its name."""
        return {}

    def full(self) -> Samples:
        """The batches that stand for the expectations: all the data, or no noise; by default one draw."""
        return self.sample(seeded(0))

    def size(self, batch: Any) -> int:
        """How many data points `batch` holds, for counting samples."""
        return 1

    def state_dict(self) -> dict[str, Any]:
        """What a problem that changes as it is used needs in a checkpoint: tensors and numbers; by default nothing."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take up what `state_dict` returned, when a run is resumed."""
        if state:
            raise ValueError(f"{type(self).__name__} has no load_state_dict, and there is {', '.join(state)} to load")

    def local(self) -> "BilevelProblem":
        """The problem of this process alone, whose directions `average` joins; by default the problem itself."""
        return self

    def average(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The mean of each tensor over all processes; by default there is one process."""
        return tensors

    def processes(self) -> tuple[int, int]:
        """The number of this process, from 0, and how many share the problem."""
        return 0, 1


def seeded(seed: int) -> torch.Generator:
    """A generator with that seed."""
    SEED.check(seed=seed)
    return torch.Generator().manual_seed(int(seed))


def full_samples(problem: BilevelProblem) -> Samples:
    """`problem.full()`; ValueError where it is the inherited draw and draws differ, for then it is not all the data."""
    if type(problem).full is BilevelProblem.full:
        x, y = problem.start(seeded(0))
        draws = [problem.sample(seeded(seed)) for seed in range(2)]
        one, two = ([problem.upper(x, y, f).item(), problem.lower(x, y, g).item()] for f, g in draws)
        if one != two:
            what = f"{type(problem).__name__} has no `full`, and its draws differ"
            raise ValueError(f"{what}, so one draw would stand for all the data: write def full(self) -> Samples")
    return problem.full()


def check_vector(name: str, vector: Tensor, like: Tensor | None = None, start: bool = False) -> None:
    """Raise ValueError unless `vector` is 1-D, float32 or float64, shaped as `like`, and at the `start` finite."""
    if not isinstance(vector, Tensor) or vector.dim() != 1 or vector.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} must be a 1-D tensor of float32 or float64, got {_described(vector)}")
    if like is not None and (vector.shape != like.shape or vector.dtype != like.dtype):
        raise ValueError(f"{name} changed: expected {_described(like)}, got {_described(vector)}")
    if start and not (len(vector) and vector.isfinite().all()):
        raise ValueError(f"{name} must have entries at the start, and all of them finite, got {vector}")


def check_scalar(name: str, loss: Tensor, graph: bool = False) -> Tensor:
    """Return `loss`, or raise ValueError unless it is a scalar tensor of floats, and if need be has a `graph`."""
    if not isinstance(loss, Tensor) or loss.dim() != 0 or not loss.is_floating_point():
        hint = "take the mean over the batch, without .item() or numpy?"
        raise ValueError(f"{name} must return a scalar (0-D) tensor of floats, got {_described(loss)}; {hint}")
    if graph and not loss.requires_grad:
        raise ValueError(f"{name} does not depend on x or y{UNSEEN}")
    return loss


def check_problem(problem: BilevelProblem, seed: int) -> tuple[Tensor, Tensor]:
    """x_0 and y_0, or ValueError for anything in `problem` that would spoil a run, before it starts.

    Both losses are taken at the start with their gradients, which must be finite. g must depend on y, f on x or y, and
    one of them on x; a g without x is allowed: then grad Phi is grad_x f alone. A second call, by `upper_at` and
    `lower_at`, must return the same, unless the problem has a `state_dict`, which says that it changes as it is used.
    """
    if not isinstance(problem, BilevelProblem):
        raise ValueError(f"problem must be a BilevelProblem, got {type(problem).__name__} {problem!r}")
    for name, value in vars(problem).items():
        if callable(vars(BilevelProblem).get(name)) and not callable(value):
            raise ValueError(f"{name} is a method of BilevelProblem, got {value!r}: give your attribute another name")
    for name in ("upper", "lower"):
        if all(getattr(type(problem), each) is getattr(BilevelProblem, each) for each in (name, f"{name}_at")):
            raise ValueError(f"{type(problem).__name__} must define {name}(x, y, batch), or {name}_at(x, batch)")
    first = _at_start(problem, seed, problem.upper, problem.lower)
    at = partial(BilevelProblem.upper, problem), partial(BilevelProblem.lower, problem)  # by upper_at and lower_at
    second = first if problem.state_dict() else _at_start(problem, seed, *at)
    for name, one, two in zip(("start", "start", "upper", "lower"), first, second, strict=True):
        rounding = torch.finfo(one.dtype).eps ** 0.5 * torch.linalg.vector_norm(one)
        if one.shape != two.shape or torch.linalg.vector_norm(one - two) > rounding:
            cause = "it (or sample) uses randomness other than its generator, as dropout does, or it keeps a state"
            what = f"{name} returned a different value on a second call with the same seed"
            raise ValueError(f"{what}: {cause}, or {name}_at is another function")
    return first[0], first[1]


def _at_start(problem: BilevelProblem, seed: int, upper: Loss, lower: Loss) -> list[Tensor]:
    """x_0, y_0, and f and g there, each with its gradient as one vector."""
    x, y = problem.start(seeded(seed))
    check_vector("x", x, start=True)
    check_vector("y", y, start=True)
    if x.dtype != y.dtype or x.device != y.device:
        raise ValueError(f"x and y must share dtype and device, got {x.dtype}, {x.device} and {y.dtype}, {y.device}")
    x, y = (z.detach().clone().requires_grad_() for z in (x, y))
    samples = problem.sample(seeded(seed))  # a fresh generator: the check must not consume the randomness of the run
    found, knows_x = [x.detach(), y.detach()], False
    for name, loss, batch in (("upper", upper, samples.upper), ("lower", lower, samples.lower)):
        tensors = [t for t in tree_leaves((x, y, batch)) if isinstance(t, Tensor) and not t.is_inference()]
        versions = [t._version for t in tensors]
        with torch.enable_grad():
            value = check_scalar(name, loss(x, y, batch), graph=True)
        if versions != [t._version for t in tensors]:
            raise ValueError(f"{name} edits its batch, x or y in place, and will be asked there again: edit a copy")
        slopes = in_x, in_y = torch.autograd.grad(value, (x, y), allow_unused=True)
        knows_x |= in_x is not None
        if in_y is None and (name == "lower" or in_x is None):
            raise ValueError(f"{name} does not depend on {'y' if name == 'lower' else 'x or y'}{UNSEEN}")
        found.append(torch.cat([value.detach()[None], *(slope for slope in slopes if slope is not None)]))
        if not found[-1].isfinite().all():
            cause = "is its batch finite? 0 / 0, log 0, or labels all ignored (-100)?"
            raise ValueError(f"{name} or its gradient is not finite at the start: {name} is {value.item()}; {cause}")
    if not knows_x:
        raise ValueError(f"neither upper nor lower depends on x{UNSEEN}")
    return found


def _described(value: object) -> str:
    return f"shape {tuple(value.shape)}, {value.dtype}" if isinstance(value, Tensor) else repr(value)
