"""Count oracle calls where they happen, so that no table of costs has to be believed."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Calls:
    """What was asked of a problem: data points drawn, gradients of f or g in x or y, products H v and J v."""

    samples: int = 0
    gradients: int = 0
    Hv: int = 0
    Jv: int = 0

    def __add__(self, other: "Calls") -> "Calls":
        return Calls(*map(int.__add__, vars(self).values(), vars(other).values()))


_counter: ContextVar[Calls | None] = ContextVar("counter", default=None)


@contextmanager
def counting() -> Iterator[Calls]:
    """`with counting() as calls: ...` collects the oracle calls made inside; nested counters add to outer ones."""
    calls = Calls()
    token = _counter.set(calls)
    try:
        yield calls
    finally:
        _counter.reset(token)
        count(**vars(calls))


def count(**calls: int) -> None:
    """Record calls with the active counter, if there is one."""
    if (counter := _counter.get()) is not None:
        for name, number in calls.items():
            setattr(counter, name, getattr(counter, name) + number)
