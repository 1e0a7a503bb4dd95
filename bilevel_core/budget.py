"""How long a run is, and at which of its steps the history gets a row."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """`steps` steps or `seconds` of CPU time; a row every `every` steps, or at those listed, or about `rows` in all."""

    steps: int | None = None
    seconds: float | None = None
    every: int | Sequence[int] | None = None
    rows: int = 100

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError(f"give either steps or seconds, got steps = {self.steps}, seconds = {self.seconds}")
        for name, value in (("steps", self.steps), ("rows", self.rows)):
            if value is not None and not _is_count(value):
                raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")
        if self.seconds is not None and not 0 < self.seconds < math.inf:
            raise ValueError(f"seconds must be a positive number, got {self.seconds!r}")
        if self.every is not None and not (_is_count(self.every) or _is_increasing(self.every)):
            raise ValueError(
                f"every must be a whole number of at least 1, or an increasing list of such, got {self.every!r}"
            )

    def is_spent(self, t: int, cpu: float) -> bool:
        """Whether a run ends at step t, after `cpu` seconds."""
        return t >= self.steps if self.steps is not None else cpu >= (self.seconds or 0.0)

    def rows_due(self, t: int, cpu: float) -> int:
        """How many rows after the first are due by then."""
        if isinstance(self.every, Sequence):
            return bisect_right(self.every, t)
        if self.every is None and self.seconds is not None:
            return int(self.rows * cpu / self.seconds)
        return t // (self.every or math.ceil((self.steps or 1) / self.rows))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _is_increasing(value: object) -> bool:
    return isinstance(value, Sequence) and all(map(_is_count, value)) and list(value) == sorted({*value}) != []
