"""Functions that the ledgers' files call by their names.

    @judge
    def has_rate(cells: pd.DataFrame, method: str, exponent: float) -> Claim: ...

is called in claims.toml by

    { judge = "has_rate", method = "FdeHBO", exponent = 1.5 }

or, where the file has nothing to add, by its name alone. A parameter that is named as a field of `Evidence` gets
it, so that a function says in its first line what it looks at.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from bilevel_book.ledger.evidence import Evidence

Function = TypeVar("Function", bound=Callable[..., Any])


class Registry(dict[str, Callable[..., Any]]):
    """Functions of one kind, by name; as a decorator it takes in another one."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind

    def __call__(self, function: Function) -> Function:
        name = function.__name__
        if name in self:
            where = f"{self[name].__module__} and {function.__module__}"
            raise ValueError(f"there are two functions for the {self.kind} {name!r}, in {where}")
        self[name] = function
        return function

    def call(self, entry: str | dict[str, Any], *arguments: Any) -> "Call":
        """What an entry of a file asks for: the name of a function, or a table with the name and the arguments."""
        given = dict(entry) if isinstance(entry, dict) else {self.kind: entry}
        name = given.pop(self.kind, None)
        if not isinstance(name, str) or name not in self:
            raise ValueError(f"no {self.kind} {name!r}; there are {', '.join(sorted(self))}")
        call = Call(self[name], arguments, given)
        try:
            inspect.signature(self[name]).bind(*arguments, **given, **dict.fromkeys(call.tables))
        except TypeError as error:
            raise ValueError(f"{self.kind} {name!r}: {error}") from None
        return call

    def refuse_unused(self, calls: list["Call"]) -> None:
        """A function that no entry asks for is a mistake."""
        if unused := [name for name in self if name not in {call.function.__name__ for call in calls}]:
            raise ValueError(f"no entry asks for the {self.kind} {', '.join(map(repr, unused))}")


@dataclass(frozen=True)
class Call:
    """A function with what the file gives it; it waits for the tables that it looks at."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    options: dict[str, Any]

    @property
    def tables(self) -> list[str]:
        known = {field.name for field in fields(Evidence)}
        return [name for name in inspect.signature(self.function).parameters if name in known]

    def __call__(self, tables: dict[str, Any]) -> Any:
        return self.function(*self.arguments, **self.options, **{name: tables[name] for name in self.tables})


judge = Registry("judge")  # returns a Claim

OWN_CODE, CONSTRUCTION = "about this book's code", "true by construction"
OWN_QUESTION, TUNED = "a question of ours", "the same sentence, tuned alike"


def apart(why: str) -> Callable[[Function], Function]:
    """What this judge finds is shown and not counted: it says nothing about whether the paper is right."""

    def mark(function: Function) -> Function:
        function.apart = why  # type: ignore[attr-defined]
        return function

    return mark
