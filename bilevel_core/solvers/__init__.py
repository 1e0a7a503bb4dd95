"""The methods of the library, one file each, by name, and step rules. The book has more, with the same interface."""

from typing import Any

from bilevel_core.solvers.alternating import Alternating
from bilevel_core.solvers.base import Adam, Momentum, Normalised, Solver, State
from bilevel_core.solvers.fdehbo import FdeHBO
from bilevel_core.solvers.fmbo import FMBO
from bilevel_core.solvers.soba import SOBA


class Solvers(dict[str, type[Solver[Any]]]):
    """Methods by name; an unknown name says which there are."""

    def __missing__(self, name: str) -> type[Solver[Any]]:
        raise ValueError(f"unknown solver {name!r}; known are {', '.join(self)}")


SOLVERS = Solvers({"FdeHBO": FdeHBO, "FMBO": FMBO, "SOBA": SOBA, "alternating": Alternating})

__all__ = ["FMBO", "SOBA", "SOLVERS", "Adam", "Alternating", "FdeHBO", "Momentum", "Normalised", "Solver", "State"]
