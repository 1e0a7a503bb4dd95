"""Every method, one file each, under the name that the paper gives it, or its own authors."""

from typing import Any

from bilevel_core.solvers.aid_cg import AIDCG
from bilevel_core.solvers.aid_fp import AIDFP
from bilevel_core.solvers.alternating import Alternating
from bilevel_core.solvers.amigo import AmIGO
from bilevel_core.solvers.bome import BOME
from bilevel_core.solvers.bsa import BSA
from bilevel_core.solvers.f2sa import F2SA
from bilevel_core.solvers.f2sa_p import F2SAP
from bilevel_core.solvers.f3sa import F3SA
from bilevel_core.solvers.fdehbo import FdeHBO
from bilevel_core.solvers.fmbo import FMBO
from bilevel_core.solvers.fsla import FSLA
from bilevel_core.solvers.ma_soba import MASOBA
from bilevel_core.solvers.meha import MEHA
from bilevel_core.solvers.mrbo import MRBO
from bilevel_core.solvers.pzobo import PZOBO
from bilevel_core.solvers.reverse import Reverse
from bilevel_core.solvers.sgha import SGHA
from bilevel_core.solvers.soba import SOBA
from bilevel_core.solvers.solver import Solver, State
from bilevel_core.solvers.srba import SPABA, SRBA
from bilevel_core.solvers.stocbio import StocBiO
from bilevel_core.solvers.sustain import SUSTAIN
from bilevel_core.solvers.vrbo import VRBO


class _Solvers(dict[str, type[Solver[Any]]]):
    """Methods by name; an unknown name says which there are."""

    def __missing__(self, name: str) -> type[Solver[Any]]:
        raise ValueError(f"unknown solver {name!r}; known are {', '.join(self)}")


SOLVERS: dict[str, type[Solver[Any]]] = _Solvers(
    {
        "FdeHBO": FdeHBO, "FMBO": FMBO, "SOBA": SOBA, "FSLA": FSLA, "AID-FP": AIDFP, "reverse": Reverse,
        "stocBiO": StocBiO, "BSA": BSA, "AmIGO": AmIGO, "MRBO": MRBO, "VRBO": VRBO, "SUSTAIN": SUSTAIN,
        "PZOBO-S": PZOBO, "F2SA": F2SA, "F3SA": F3SA, "alternating": Alternating, "AID-CG": AIDCG,
        "BOME": BOME, "SRBA": SRBA, "MA-SOBA": MASOBA, "MEHA": MEHA, "SPABA": SPABA, "F2SA-p": F2SAP, "SGHA": SGHA,
    }
)  # fmt: skip
PAPER = tuple(SOLVERS)[:15]  # those that the paper has; then a control that is no bilevel method, and others by year

__all__ = ["PAPER", "SOLVERS", "Solver", "State", *(method.__name__ for method in SOLVERS.values())]
