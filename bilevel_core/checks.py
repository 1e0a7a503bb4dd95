"""What may be given: a condition in words and as a test, the same for options, budgets and arguments."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, NamedTuple


class Allowed(NamedTuple):
    """A condition, in words and as a test, and whether a schedule, whose values meet it, is allowed too."""

    words: str
    test: Callable[[Any], bool]
    schedule: bool = False

    def check(self, **given: Any) -> None:
        """Raise ValueError for the first of these values that does not meet it."""
        for name, value in given.items():
            if not self.test(value):
                raise ValueError(f"{name} must be {self.words}, got {value!r}")

    def __str__(self) -> str:
        return self.words + " or a schedule of such" * self.schedule

    def or_none(self) -> "Allowed":
        """The same of a value that need not be given."""
        return self._replace(test=lambda value: value is None or self.test(value))


def is_number(value: object) -> bool:
    """Whether a value is a real number; True and False are none."""
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def is_integer(value: object) -> bool:
    """Whether a value is an integer, one of numpy's too."""
    return isinstance(value, Integral) and not isinstance(value, bool)


ANYTHING = Allowed("anything", lambda value: True, schedule=True)
POSITIVE = Allowed("a positive number", lambda value: is_number(value) and 0 < value < math.inf)
STEP = POSITIVE._replace(schedule=True)
UNIT = Allowed("a number in [0, 1]", lambda value: is_number(value) and 0 <= value <= 1)
SHARE = Allowed("a number in [0, 1)", lambda value: is_number(value) and 0 <= value < 1)
RADIUS = Allowed("a positive number (inf: no projection)", lambda value: is_number(value) and value > 0)
COUNT = Allowed("a whole number of at least 1", lambda value: is_integer(value) and value >= 1)
SEED = Allowed("a whole number of at least 0 and below 2**64", lambda value: is_integer(value) and 0 <= value < 2**64)
SWITCH = Allowed("True or False", lambda value: isinstance(value, bool))
