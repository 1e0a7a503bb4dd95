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


_counters: ContextVar[tuple[Calls, ...]] = ContextVar("counters", default=())


@contextmanager
def counting(calls: Calls | None = None) -> Iterator[Calls]:
    """`with counting() as calls: ...` collects the oracle calls made inside, or adds them to those given."""
    calls = Calls() if calls is None else calls
    token = _counters.set((*_counters.get(), calls))
    try:
        yield calls
    finally:
        _counters.reset(token)


def count(**calls: int) -> None:
    """Record calls with the active counters, if there are any."""
    for counter in _counters.get():
        for name, number in calls.items():
            setattr(counter, name, getattr(counter, name) + number)
