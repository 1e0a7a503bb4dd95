"""What all methods share: options that are checked, a state that holds everything, `init` and `step`."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import torch
from torch import Tensor

from bilevel_core.counting import count
from bilevel_core.directions import ThreeSamples
from bilevel_core.problem import BilevelProblem, Samples, check_problem, check_vector
from bilevel_core.schedules import Rate, at


class Allowed(NamedTuple):
    """A condition on an option, in words and as a test."""

    words: str
    test: Callable[[Any], bool]


POSITIVE = Allowed("a positive number", lambda value: 0 < value < float("inf"))
UNIT = Allowed("a number in [0, 1]", lambda value: 0 <= value <= 1)
COUNT = Allowed("a whole number of at least 1", lambda value: isinstance(value, int) and value >= 1)
RADIUS = Allowed("a positive number (inf: no projection)", lambda value: value > 0)


def option(default: Any, allowed: Allowed) -> Any:
    """A dataclass field with the values it allows; given a schedule, every value that it takes is checked."""
    return field(default=default, metadata={"allowed": allowed})


@dataclass(frozen=True)
class State:
    """A method between two steps. Nothing else is remembered anywhere, so equal states go on equally."""

    x: Tensor
    y: Tensor
    v: Tensor
    t: int
    rng: Tensor


@dataclass(frozen=True, kw_only=True)
class Solver(ABC):
    """A method: frozen options, `init` makes the first state, `step` makes the next one and changes nothing."""

    def __new__(cls, *args: Any, **options: Any) -> "Solver":
        names = [f.name for f in fields(cls)]
        if args or (unknown := [name for name in options if name not in names]):
            given = f"{len(args)} without a name" if args else ", ".join(unknown)
            raise ValueError(f"unknown option of {cls.__name__}: {given}; its options are {', '.join(names)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for f in fields(self):
            if "allowed" in f.metadata:
                self.at(0, f.name)

    def at(self, t: int, *names: str) -> tuple[float, ...]:
        """The values of the named options at time t, each checked against what it allows."""
        return tuple(self._checked(name, getattr(self, name), t) for name in names)

    def _checked(self, name: str, rate: Rate, t: int) -> float:
        allowed = self.__dataclass_fields__[name].metadata["allowed"]
        try:
            value = at(rate, t)
            if allowed.test(value):
                return value
        except TypeError:
            value = rate
        when = f" at t = {t}" if callable(rate) else ""
        raise ValueError(f"{type(self).__name__}: {name} must be {allowed.words}, got {value}{when}")

    def init(
        self,
        problem: BilevelProblem,
        seed: int = 0,
        *,
        x: Tensor | None = None,
        y: Tensor | None = None,
        v: Tensor | None = None,
    ) -> State:
        """The state at t = 0: the problem's own start, v_0 = 0, unless other points are given."""
        check_problem(problem, seed)
        generator = torch.Generator().manual_seed(seed)
        x0, y0 = problem.start(generator)
        for name, given, like in (("x", x, x0), ("y", y, y0), ("v", v, y0)):
            if given is not None:
                check_vector(name, given, like)
        x0, y0 = (x0 if x is None else x).detach().clone(), (y0 if y is None else y).detach().clone()
        v0 = torch.zeros_like(y0) if v is None else v.detach().clone()
        return self._first(problem, State(x0, y0, v0, 0, generator.get_state()))

    def _first(self, problem: BilevelProblem, state: State) -> State:
        """Give the state what this method remembers besides x, y and v."""
        return state

    @abstractmethod
    def step(self, problem: BilevelProblem, state: State) -> State:
        """One iteration: the state at t + 1."""

    def measure(self, problem: BilevelProblem, state: State) -> dict[str, float]:
        """Columns of the history about the method itself: ||v||, so that one sees whether a projection is at work."""
        return {"norm_v": torch.linalg.vector_norm(state.v).item()}


@dataclass(frozen=True, kw_only=True)
class SingleLoop(Solver):
    """A method that moves x, y and v once a step, along the three directions of one draw or of three."""

    independent: bool = False  # three independent draws a step, one for each direction, instead of a shared one

    def draw(self, problem: BilevelProblem, generator: torch.Generator) -> Samples | ThreeSamples:
        """The samples of one iteration."""
        if not self.independent:
            return draw(problem, generator)
        return ThreeSamples(*(draw(problem, generator) for _ in range(3)))


def draw(problem: BilevelProblem, generator: torch.Generator) -> Samples:
    """One counted draw."""
    samples = problem.sample(generator)
    count(samples=problem.size(samples.upper) + problem.size(samples.lower))
    return samples


def draw_lower(problem: BilevelProblem, generator: torch.Generator) -> Any:
    """The lower batch of a draw whose upper batch is not used, and not counted."""
    batch = problem.sample(generator).lower
    count(samples=problem.size(batch))
    return batch


def count_full(problem: BilevelProblem, upper: bool = True) -> Samples:
    """The whole data, counted as samples: both sets, or the lower one only."""
    samples = problem.full()
    count(samples=problem.size(samples.lower) + (problem.size(samples.upper) if upper else 0))
    return samples


def generator_at(state: State) -> torch.Generator:
    """A generator that goes on where the state's randomness stopped."""
    generator = torch.Generator()
    generator.set_state(state.rng)
    return generator
