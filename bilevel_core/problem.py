"""A bilevel problem: two losses, a start, and a way to draw samples.

minimise over x   Phi(x) = E_xi f(x, y*(x); xi)                          f: the upper loss
where             y*(x)  = argmin over y of  E_zeta g(x, y; zeta)        g: the lower loss
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

    # Sizes of the tensors that x was flattened from, for a method that treats each of them separately (PZOBO-S).
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
        """The nearest allowed x (in a box, a ball, a simplex), applied after every step of x; by default x itself."""
        return x

    def evaluate(self, x: Tensor, y: Tensor) -> dict[str, float]:
        """Numbers to record in a run. The first is shown, and `diagnose` checks it if named "loss" or "objective"."""
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
        """The problem of this process alone; `average` takes the mean of its directions over all processes."""
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
    """`problem.full()`; ValueError if it is the inherited single draw, and two draws have different losses."""
    if type(problem).full is BilevelProblem.full:
        x, y = problem.start(seeded(0))
        draws = [problem.sample(seeded(seed)) for seed in range(2)]
        one, two = ([problem.upper(x, y, s.upper).item(), problem.lower(x, y, s.lower).item()] for s in draws)
        if one != two:
            what = f"{type(problem).__name__} has no `full`, and its draws differ"
            raise ValueError(f"{what}, so one draw would stand for all the data: write def full(self) -> Samples")
    return problem.full()


def check_vector(name: str, vector: Tensor, like: Tensor | None = None, start: bool = False) -> None:
    """Raise ValueError unless `vector` is 1-D, of float32 or float64, of the shape and dtype of `like` if that is
    given, and at the `start` also finite and not empty."""
    if not isinstance(vector, Tensor) or vector.dim() != 1 or vector.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"{name} must be a 1-D tensor of float32 or float64, got {_described(vector)}")
    if like is not None and (vector.shape != like.shape or vector.dtype != like.dtype):
        raise ValueError(f"{name} has another shape or dtype: expected {_described(like)}, got {_described(vector)}")
    if start and not (len(vector) and vector.isfinite().all()):
        raise ValueError(f"{name} must have entries at the start, and all of them finite, got {vector}")


def check_scalar(name: str, loss: Tensor, graph: bool = False) -> Tensor:
    """Return `loss`; ValueError unless it is a scalar tensor of floats and, with `graph`, depends on x or y."""
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
    `lower_at`, must return the same up to rounding, unless `state_dict()` says that the problem changes as it is used.
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
    by_at = partial(BilevelProblem.upper, problem), partial(BilevelProblem.lower, problem)  # call upper_at, lower_at
    second = first if problem.state_dict() else _at_start(problem, seed, *by_at)
    for name, one, two in zip(("start", "start", "upper", "lower"), first, second, strict=True):
        rounding = torch.finfo(one.dtype).eps ** 0.5 * torch.linalg.vector_norm(one)
        if one.shape != two.shape or torch.linalg.vector_norm(one - two) > rounding:
            cause = "it (or sample) uses randomness other than its generator, as dropout does, or it keeps a state"
            what = f"{name} returned a different value on a second call with the same seed"
            raise ValueError(f"{what}: {cause}, or {name}_at is another function")
    return first[0], first[1]


def _at_start(problem: BilevelProblem, seed: int, upper: Loss, lower: Loss) -> list[Tensor]:
    """[x_0, y_0, (f, grad f), (g, grad g)] at the start, each a vector; ValueError for a loss that cannot be used."""
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
        versions = [t._version for t in tensors]  # torch raises it at each edit in place
        with torch.enable_grad():
            value = check_scalar(name, loss(x, y, batch), graph=True)
        if versions != [t._version for t in tensors]:
            raise ValueError(f"{name} edits its batch, x or y in place, and later calls would see that: edit a copy")
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
