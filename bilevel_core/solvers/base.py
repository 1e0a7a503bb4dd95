"""What all methods share: options that are checked, step rules, a state that holds everything, `init` and `step`."""

import inspect
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, dataclass_transform

import torch
from torch import Tensor

from bilevel_core.checks import ANYTHING, COUNT, POSITIVE, RADIUS, SHARE, STEP, SWITCH, UNIT, Allowed
from bilevel_core.counting import count
from bilevel_core.directions import (
    Directions,
    ThreeSamples,
    exact,
    finite_difference,
    on_three_draws,
    one_graph_at_a_time,
)
from bilevel_core.problem import BilevelProblem, Samples, check_problem, check_vector, seeded
from bilevel_core.schedules import Moments, Rate, Rule, Step

__all__ = [
    "COUNT", "POSITIVE", "RADIUS", "SHARE", "STEP", "STEPS", "SWITCH", "UNIT", "Options", "SingleLoop",
    "Solver", "State", "Suggestions", "draw", "generator_at", "method", "option", "recursive_momentum",
]  # fmt: skip

STEPS = {"x": "alpha", "y": "beta", "v": "lam", "z": "gamma"}  # the step size of each variable (z: in F2SA, F3SA)


def option(default: Any, allowed: Allowed, words: str = "") -> Any:
    """A field of a method: its default, what it allows, what it is. A default that is a schedule allows schedules."""
    allowed = allowed._replace(schedule=allowed.schedule or callable(default))
    return field(default=default, metadata={"allowed": allowed, "words": words})


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(option,))
def method(cls: type) -> Any:
    """Make a class a method: a frozen dataclass of options, which its docstring (or else its file's) then lists."""
    text = vars(cls).get("__doc__") or sys.modules[cls.__module__].__doc__ or ""
    made: Any = dataclass(frozen=True, kw_only=True)(cls)
    documented = [f for f in fields(made) if f.metadata]  # a field of a user's own need not say what it allows
    options = ["    {} = {!r}: {words}; {allowed}".format(f.name, f.default, **f.metadata) for f in documented]
    made.__doc__ = "\n".join([inspect.cleandoc(text), "", "Options:", "", *options])
    return made


@dataclass(frozen=True)
class Options:
    """Options, checked when the object is made (a schedule: at t = 0) and when they are used. Steps may be rules."""

    def __post_init__(self) -> None:
        for f in fields(self):
            if f.metadata and not (f.name in STEPS.values() and isinstance(vars(self)[f.name], Rule)):
                self.value(f.name, 0)

    def value(self, name: str, t: int) -> Any:
        """The value of an option at time t, checked against what it allows, if it says so."""
        given, allowed = vars(self)[name], self.__dataclass_fields__[name].metadata.get("allowed", ANYTHING)
        value = given(t) if allowed.schedule and callable(given) else given
        when = "" if value is given else f" at t = {t}"
        allowed.check(**{f"{type(self).__name__}: {name}{when}": value})
        return value


@dataclass(frozen=True)
class Momentum(Options, Rule):
    """m <- momentum m + d,  z <- z - rate m, or with nesterov  z - rate (d + momentum m), as in torch.optim.SGD."""

    rate: Rate = option(1e-2, STEP)
    momentum: float = option(0.9, SHARE)
    nesterov: bool = option(False, SWITCH)

    def move(self, z: Tensor, d: Tensor, memory: Moments, t: int) -> tuple[Tensor, Moments]:
        m = memory.m * self.momentum + d
        along = torch.add(d, m, alpha=self.momentum) if self.nesterov else m
        return torch.add(z, along, alpha=-self.value("rate", t)), Moments(m)


@dataclass(frozen=True)
class Normalised(Options, Rule):
    """m <- momentum m + (1 - momentum) d,  z <- z - rate m / ||m||, of Cutkosky, Mehta (2020), as in SLIP for x."""

    rate: Rate = option(1e-2, STEP)
    momentum: float = option(0.0, SHARE)

    def move(self, z: Tensor, d: Tensor, memory: Moments, t: int) -> tuple[Tensor, Moments]:
        m = torch.lerp(memory.m, d, 1 - self.momentum)
        norm = torch.linalg.vector_norm(m).clamp_min(torch.finfo(m.dtype).tiny)
        return z - self.value("rate", t) * (m / norm), Moments(m)


@dataclass(frozen=True)
class Adam(Options, Rule):
    """Kingma, Ba (2015), "Adam: a method for stochastic optimization", Algorithm 1:

        m <- beta1 m + (1 - beta1) d,   s <- beta2 s + (1 - beta2) d^2,
        z <- z - rate (m / (1 - beta1^k)) / (sqrt(s / (1 - beta2^k)) + eps)

    at its k-th step, as in AdamBO for x.
    """

    rate: Rate = option(1e-3, STEP)
    beta1: float = option(0.9, SHARE)
    beta2: float = option(0.999, SHARE)
    eps: float = option(1e-8, POSITIVE)

    def start(self, z: Tensor) -> Moments:
        return Moments(torch.zeros_like(z), torch.zeros_like(z))

    def move(self, z: Tensor, d: Tensor, memory: Moments, t: int) -> tuple[Tensor, Moments]:
        k, m = memory.k + 1, torch.lerp(memory.m, d, 1 - self.beta1)
        s = torch.addcmul(memory.s * self.beta2, d, d, value=1 - self.beta2)
        # The clamp is for `reverse` (in the book), which differentiates through this: the root has no slope at 0.
        root = s.clamp_min(torch.finfo(s.dtype).tiny).sqrt() / (1 - self.beta2**k) ** 0.5
        size = self.value("rate", t) / (1 - self.beta1**k)
        return torch.addcdiv(z, m, root + self.eps, value=-size), Moments(m, s, k)


@dataclass(frozen=True)
class State:
    """A method between two steps. It holds all that the method remembers, so equal states go on equally."""

    x: Tensor
    y: Tensor
    v: Tensor
    t: int
    rng: Tensor
    memory: dict[str, Any] = field(default_factory=dict, kw_only=True)  # of the rules, by the variable they move

    def replace(self, **changes: Any) -> Self:
        """The same state with some of its fields replaced."""
        return replace(self, **changes)


S = TypeVar("S", bound=State)
E = TypeVar("E", bound=tuple[Tensor, ...])
Suggestions = dict[str, tuple[float, str]]  # a value for an option, and why


class Solver(Options, ABC, Generic[S]):
    """A method: frozen options, `init` makes the first state, `step` makes the next one and changes nothing."""

    state_type: ClassVar[type[State]] = State  # what init_memory returns
    is_random: ClassVar[bool] = False  # whether the method itself draws at random, besides the problem's samples

    def init(self, problem: BilevelProblem, seed: int = 0, **points: Tensor) -> S:
        """The state at t = 0: the problem's own start and v_0 = 0, unless x, y or v are given in `points`."""
        check_problem(problem, seed)
        generator = seeded(seed)
        x0, y0 = problem.start(generator)  # the run goes on with this generator, where the start has left it
        start = {"x": x0, "y": y0, "v": torch.zeros_like(y0)}
        for name, given in points.items():
            if name not in start:
                raise ValueError(f"init takes the points x, y and v, got {name}")
            check_vector(name, given, like=start[name], start=True)
        start = {name: point.detach().clone() for name, point in (start | points).items()}
        # Only a check: x_0 stays where it is.
        check_vector("project_x(x)", problem.project_x(start["x"]), like=start["x"], start=True)
        rules = {name: rule for name in STEPS if isinstance(rule := self.step_of(name), Rule)}
        memory = {name: rule.start(start.get(name, start["y"])) for name, rule in rules.items()}  # z starts as y
        return self.init_memory(State(**start, t=0, rng=generator.get_state(), memory=memory))

    def init_memory(self, state: State) -> S:
        """The first state with what this method remembers besides x, y and v."""
        return cast(S, state)

    def step(self, problem: BilevelProblem, state: S) -> S:
        """One iteration: the state at t + 1."""
        if type(state) is not self.state_type:
            what = f"needs a state that its own init made, got a {type(state).__name__}"
            raise TypeError(f"{type(self).__name__} {what} (its state_type is {self.state_type.__name__})")
        generator = generator_at(state)
        return self.update(problem, state, generator).replace(t=state.t + 1, rng=generator.get_state())

    @abstractmethod
    def update(self, problem: BilevelProblem, state: S, generator: torch.Generator) -> S:
        """The method itself: the state with x, y, v and whatever it remembers moved on; `step` does the rest."""

    def move(self, problem: BilevelProblem, state: S, **directions: Tensor) -> S:
        """The state with each variable that is named moved, z <- z - rate d or by its rule; then x <- project_x(x)."""
        changes, memory = dict[str, Any](), {**state.memory}
        for name, d in directions.items():
            z, step = vars(state)[name], self.step_of(name)
            if isinstance(step, Rule):
                if name not in memory:
                    raise ValueError(f"{type(self).__name__} moves {name} by {step}: make the state by its own init")
                z, memory[name] = step.move(z, d, memory[name], state.t)
            else:
                z = z - self.value(STEPS[name], state.t) * d
            changes[name] = problem.project_x(z) if name == "x" else z
        return state.replace(**changes, memory=memory)

    def step_of(self, name: str) -> Step | None:
        """The rate or the rule that moves a variable, if this method has it."""
        return vars(self).get(STEPS[name])

    def momentum_weight(self, t: int) -> float:
        """eta_t in [0, 1]: the past has weight 1 - eta_t. At t = 0 there is no past, so eta_0 = 1."""
        return 1.0 if t == 0 else self.value("eta", t)

    def measure(self, problem: BilevelProblem, state: S) -> dict[str, float]:
        """Columns of the history about the method itself: ||v||, so that one sees whether a projection is at work."""
        return {"norm_v": torch.linalg.vector_norm(state.v).item()}

    @classmethod
    def suggestions(cls, common: Suggestions, m: Any) -> Suggestions:
        """Options that `suggest` sets, with reasons: the `common` ones. A method may add some from the Curvature m."""
        return common


@method
class SingleLoop(Solver[S]):
    """A method that moves x, y and v once a step, along the three directions of one draw or of three."""

    delta: Rate | None = option(
        None, STEP.or_none(), "None: exact products; else gradients are taken at y + delta v and y - delta v"
    )
    independent: bool = option(False, SWITCH, "three draws a step, one for each direction, instead of a shared one")
    one_graph: bool = option(False, SWITCH, "with delta: less memory, and more time where x has a network of its own")

    def draw(self, problem: BilevelProblem, generator: torch.Generator) -> Samples | ThreeSamples:
        """The samples of one iteration."""
        if not self.independent:
            return draw(problem, generator)
        return ThreeSamples(*(draw(problem, generator) for _ in range(3)))

    def directions(
        self, problem: BilevelProblem, x: Tensor, y: Tensor, v: Tensor, samples: Samples | ThreeSamples, t: int
    ) -> Directions:
        """(d_y, d_v, d_x) at (x, y, v), with the products that `delta` asks for; their means over all processes."""
        here, delta = problem.local(), self.value("delta", t)
        if isinstance(samples, ThreeSamples):
            found = on_three_draws(here, x, y, v, samples, delta)
        elif delta is None:
            found = exact(here, x, y, v, samples)
        else:
            by_differences = one_graph_at_a_time if self.one_graph else finite_difference
            found = by_differences(here, x, y, v, samples, delta)
        return Directions(*problem.average(*found))


def draw(problem: BilevelProblem, generator: torch.Generator, full: bool = False) -> Samples:
    """One counted draw, or with `full` all the data."""
    samples = problem.full() if full else problem.sample(generator)
    count(samples=problem.size(samples.upper) + problem.size(samples.lower))
    return samples


def generator_at(state: State) -> torch.Generator:
    """A generator that goes on where the state's randomness stopped."""
    return torch.Generator().set_state(state.rng)


def recursive_momentum(now: E, past: E, before: E, eta: float) -> E:
    """h_t = now + (1 - eta) (past - before) for each tensor of a named tuple: past is h_{t-1}, now and before are the
    directions d_t at (x_t, y_t, v_t) and at (x_{t-1}, y_{t-1}, v_{t-1}), on the same samples."""
    parts = zip(now, past, before, strict=True)
    return cast(Any, type(now))(*(torch.add(d, h - b, alpha=1 - eta) for d, h, b in parts))
