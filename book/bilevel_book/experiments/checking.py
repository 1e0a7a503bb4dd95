"""Checking: errors in a file name the place, what was given and what is allowed."""

import inspect
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from bilevel_book.methods import SOLVERS
from bilevel_book.mnist import HyperCleaning, HyperRepresentation
from bilevel_core.problem import BilevelProblem
from bilevel_core.problems import Quadratic, Valley

PROBLEMS = {kind.__name__: kind for kind in (HyperCleaning, HyperRepresentation, Quadratic, Valley)}
PLAIN = {bool: (bool,), int: (int,), float: (int, float), str: (str,), dict: (dict,), NoneType: (NoneType,)}


@contextmanager
def at(place: str) -> Iterator[None]:
    """An error inside is told with its place."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def known(given: str, names: Collection[str], what: str) -> str:
    """`given`, which must be one of the names."""
    if given not in names:
        raise ValueError(f"unknown {what} {given!r}; known are {', '.join(names)}")
    return given


def typed(key: str, value: Any, hint: Any) -> Any:
    """The value of a key, which must be of the type that is asked for."""
    if not _fits(value, hint):
        given, allowed = "nothing" if value is None else repr(value), hint if get_args(hint) else hint.__name__
        raise ValueError(f"{key}: got {given}, allowed: {allowed}")
    return value


def _fits(value: Any, hint: Any) -> bool:
    """Types that no file can give are not judged."""
    if isinstance(hint, UnionType):
        return any(_fits(value, part) for part in get_args(hint))
    kind = get_origin(hint) or hint
    if kind is list:
        return isinstance(value, list) and all(_fits(part, *get_args(hint)) for part in value)
    return kind not in PLAIN or type(value) in PLAIN[kind]


def check_options(options: Mapping[str, Any], owner: Any) -> None:
    """Options must be parameters of the constructor of `owner`, of the right type."""
    hints = {name: parameter.annotation for name, parameter in parameters(owner).items()}
    for key, value in options.items():
        typed(key, value, hints[known(key, hints, f"option of {owner.__name__}")])


def parameters(owner: Any) -> dict[str, inspect.Parameter]:
    """The parameters of a constructor."""
    return {name: each for name, each in inspect.signature(owner.__init__).parameters.items() if name != "self"}


def find(name: str, kind: type) -> Any:
    """The problem, or the solver, of that name among those that come with the book, or at "package.module:Class"."""
    shipped: Mapping[str, type] = PROBLEMS if kind is BilevelProblem else SOLVERS
    if ":" not in name:
        return shipped[known(name, shipped, f'{kind.__name__} (or give "package.module:Class")')]
    module, _, attribute = name.partition(":")
    try:
        found = getattr(import_module(module), attribute)
    except Exception as error:  # of any kind: what is imported is somebody's code
        raise ValueError(f"{name} cannot be imported: {error!r}") from error
    if not (isinstance(found, type) and issubclass(found, kind)) or inspect.isabstract(found):
        raise ValueError(f"{name} is not a {kind.__name__} with all its methods")
    return found
