"""What a run may spend, and when its rows are due."""

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bilevel_core.checks import COUNT, POSITIVE

UNITS = ("steps", "seconds", "gradients")


@dataclass(frozen=True)
class Budget:
    """`steps` steps, `seconds` of CPU time, or `gradients`, H v and J v counted as `prices` say (else 1 each); a row
    every `every` steps, or at those listed, or about `rows` in all."""

    steps: int | None = None
    seconds: float | None = None
    every: int | Sequence[int] | None = None
    rows: int = 100
    gradients: float | None = None
    prices: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        given = {unit: getattr(self, unit) for unit in UNITS}
        if list(given.values()).count(None) != 2:
            raise ValueError(f"give either steps or seconds or gradients, got {given}")
        COUNT.or_none().check(steps=self.steps)
        POSITIVE.or_none().check(seconds=self.seconds, gradients=self.gradients)
        COUNT.check(rows=self.rows)
        every = list(self.every) if isinstance(self.every, Sequence) else [self.every]
        if self.every is not None and not (all(map(COUNT.test, every)) and every == sorted({*every}) != []):
            raise ValueError(f"every must be {COUNT.words}, or an increasing list of such, got {self.every!r}")
        prices = self.prices if isinstance(self.prices, Mapping) else {"prices": self.prices}
        priced = self.gradients and {*prices} <= {"Hv", "Jv"} and all(map(POSITIVE.test, prices.values()))
        if self.prices is not None and not priced:
            like = 'numbers like {"Hv": 2.0, "Jv": 1.5}, for a budget of gradients'
            raise ValueError(f"prices must be {like}, got {self.prices!r}")

    @cached_property
    def limit(self) -> tuple[str, float]:
        """What is spent, and how much of it."""
        return next((unit, total) for unit in UNITS if (total := getattr(self, unit)) is not None)

    def spent(self, t: int, cpu: float, calls: Mapping[str, int]) -> float:
        """How much of it a run has spent after t steps, which took so many CPU seconds and these calls."""
        unit, _ = self.limit
        if unit != "gradients":
            return t if unit == "steps" else cpu
        prices = {"samples": 0} | dict(self.prices or {})
        return sum(number * prices.get(name, 1) for name, number in calls.items())

    def next_row(self, t: int, spent: float) -> tuple[float, float]:
        """The step, and the amount spent, of which the first to be reached has the next row, for a run that is at t."""
        unit, total = self.limit
        step, amount = (total, math.inf) if unit == "steps" else (math.inf, total)
        if isinstance(self.every, Sequence):
            step = min([step, *self.every[bisect_right(self.every, t) :]])
        elif self.every or unit == "steps":
            whole = self.every or math.ceil(total / self.rows)
            step = min(step, (t // whole + 1) * whole)
        else:
            gap = total / self.rows
            amount = min(amount, (spent // gap + 1) * gap)
        return step, amount
