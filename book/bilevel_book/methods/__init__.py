"""All methods by name: the library's four and the others, one file each, under the name that its authors give it."""

from bilevel_book.methods.aid_cg import AIDCG
from bilevel_book.methods.aid_fp import AIDFP
from bilevel_book.methods.amigo import AmIGO
from bilevel_book.methods.bome import BOME
from bilevel_book.methods.bsa import BSA
from bilevel_book.methods.f2sa import F2SA
from bilevel_book.methods.f2sa_p import F2SAP
from bilevel_book.methods.f3sa import F3SA
from bilevel_book.methods.fsla import FSLA
from bilevel_book.methods.ma_soba import MASOBA
from bilevel_book.methods.meha import MEHA
from bilevel_book.methods.mrbo import MRBO
from bilevel_book.methods.pzobo import PZOBO
from bilevel_book.methods.reverse import Reverse
from bilevel_book.methods.s_tfbo import STFBO
from bilevel_book.methods.sgha import SGHA
from bilevel_book.methods.srba import SPABA, SRBA
from bilevel_book.methods.stocbio import StocBiO
from bilevel_book.methods.sustain import SUSTAIN
from bilevel_book.methods.vrbo import VRBO
from bilevel_core.solvers import FMBO, SOBA, Alternating, FdeHBO, Solvers

SOLVERS = Solvers(
    {
        "FdeHBO": FdeHBO, "FMBO": FMBO, "SOBA": SOBA, "FSLA": FSLA, "AID-FP": AIDFP, "reverse": Reverse,
        "stocBiO": StocBiO, "BSA": BSA, "AmIGO": AmIGO, "MRBO": MRBO, "VRBO": VRBO, "SUSTAIN": SUSTAIN,
        "PZOBO-S": PZOBO, "F2SA": F2SA, "F3SA": F3SA, "alternating": Alternating, "AID-CG": AIDCG,
        "BOME": BOME, "SRBA": SRBA, "MA-SOBA": MASOBA, "MEHA": MEHA, "SPABA": SPABA, "S-TFBO": STFBO,
        "F2SA-p": F2SAP, "SGHA": SGHA,
    }
)  # fmt: skip
PAPER = tuple(SOLVERS)[:15]  # those that the paper has; then a control that is no bilevel method, and others by year

__all__ = ["PAPER", "SOLVERS", *(method.__name__ for method in SOLVERS.values())]
