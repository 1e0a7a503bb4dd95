"""Every method, one file each, under the name that the paper gives it."""

from bilevel_core.solvers.alternating import Alternating
from bilevel_core.solvers.fdehbo import FdeHBO
from bilevel_core.solvers.fmbo import FMBO
from bilevel_core.solvers.soba import SOBA
from bilevel_core.solvers.solver import Solver, State


class _Solvers(dict[str, type[Solver]]):
    def __missing__(self, name: str) -> type[Solver]:
        raise ValueError(f"unknown solver {name!r}; known are {', '.join(self)}")


SOLVERS: dict[str, type[Solver]] = _Solvers(
    {
        "FdeHBO": FdeHBO,
        "FMBO": FMBO,
        "SOBA": SOBA,
        "alternating": Alternating,
    }
)

__all__ = ["FMBO", "SOBA", "SOLVERS", "Alternating", "FdeHBO", "Solver", "State"]
