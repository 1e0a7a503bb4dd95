"""Stochastic bilevel optimisation: FdeHBO, FMBO and their relatives, small enough to read in an evening."""

from bilevel_core.hypergradient import hypergradient
from bilevel_core.modules import from_modules
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.runner import run
from bilevel_core.solvers import SOLVERS
from bilevel_core.solvers.fdehbo import FdeHBO
from bilevel_core.solvers.fmbo import FMBO
from bilevel_core.solvers.soba import SOBA

__version__ = "0.2.0"
__all__ = ["FMBO", "SOBA", "SOLVERS", "BilevelProblem", "FdeHBO", "Samples", "from_modules", "hypergradient", "run"]
