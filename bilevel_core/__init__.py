"""Stochastic bilevel optimisation: FdeHBO, FMBO and their relatives, small enough to read in an evening."""

from bilevel_core.diagnosis import diagnose
from bilevel_core.distributed import Distributed, init_processes
from bilevel_core.implicit import hypergradient, objective
from bilevel_core.networks import from_modules
from bilevel_core.problem import BilevelProblem, Samples
from bilevel_core.refitting import refit
from bilevel_core.runner import run, run_seeds
from bilevel_core.solvers import SOLVERS
from bilevel_core.solvers.base import Adam, Momentum, Normalised
from bilevel_core.solvers.fdehbo import FdeHBO
from bilevel_core.solvers.fmbo import FMBO
from bilevel_core.solvers.soba import SOBA
from bilevel_core.stepsizes import suggest

__version__ = "2.0.0"
__all__ = [
    "FMBO", "SOBA", "SOLVERS", "Adam", "BilevelProblem", "Distributed", "FdeHBO", "Momentum", "Normalised", "Samples",
    "diagnose", "from_modules", "hypergradient", "init_processes", "objective", "refit", "run", "run_seeds", "suggest",
]  # fmt: skip
