"""Count oracle calls where they happen, so that no table of costs has to be believed."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Calls:
    """What was asked of a problem: data points drawn, gradients of f or g in x or y, products H v and J v.

    >>> Calls(gradients=3)
    Calls(samples=0, gradients=3, Hv=0, Jv=0)
    """

    samples: int = 0
    gradients: int = 0
    Hv: int = 0
    Jv: int = 0

    def add(self, other: "Calls") -> None:
        for name, calls in vars(other).items():
            setattr(self, name, getattr(self, name) + calls)


_counter: ContextVar[Calls | None] = ContextVar("counter", default=None)


@contextmanager
def counting() -> Iterator[Calls]:
    """`with counting() as calls: ...` collects the oracle calls made inside; nested counters add to outer ones.

    >>> with counting() as calls:
    ...     count(gradients=2)
    >>> calls.gradients
    2
    """
    calls, outer = Calls(), _counter.get()
    token = _counter.set(calls)
    try:
        yield calls
    finally:
        _counter.reset(token)
        if outer is not None:
            outer.add(calls)


def count(**calls: int) -> None:
    """Record calls with the active counter, if there is one.

    >>> with counting() as calls:
    ...     count(Hv=1, Jv=1)
    >>> calls
    Calls(samples=0, gradients=0, Hv=1, Jv=1)
    """
    if (counter := _counter.get()) is not None:
        counter.add(Calls(**calls))
