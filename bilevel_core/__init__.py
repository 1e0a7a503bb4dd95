"""Stochastic bilevel optimisation: FdeHBO, FMBO and their relatives, small enough to read in an evening."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bilevel_core.distributed import Distributed, together
    from bilevel_core.hypergradient import hypergradient
    from bilevel_core.modules import from_modules
    from bilevel_core.objective import objective
    from bilevel_core.problem import BilevelProblem, Samples
    from bilevel_core.refit import refit
    from bilevel_core.runner import run, run_seeds
    from bilevel_core.solvers import SOLVERS
    from bilevel_core.solvers.fdehbo import FdeHBO
    from bilevel_core.solvers.fmbo import FMBO
    from bilevel_core.solvers.rules import Adam, Momentum, Normalised
    from bilevel_core.solvers.soba import SOBA
    from bilevel_core.suggest import suggest

__version__ = "1.0.0"
__all__ = [
    "FMBO", "SOBA", "SOLVERS", "Adam", "BilevelProblem", "Distributed", "FdeHBO", "Momentum", "Normalised", "Samples",
    "from_modules", "hypergradient", "objective", "refit", "run", "run_seeds", "suggest", "together",
]  # fmt: skip

# Where each name lives. It is imported when it is asked for, so that `python -m bilevel_core --help` need not wait.
_HOMES = {
    "BilevelProblem": "problem", "Samples": "problem", "SOLVERS": "solvers", "FMBO": "solvers.fmbo",
    "FdeHBO": "solvers.fdehbo", "SOBA": "solvers.soba", "from_modules": "modules", "hypergradient": "hypergradient",
    "objective": "objective", "refit": "refit", "run": "runner", "run_seeds": "runner", "suggest": "suggest",
    "Distributed": "distributed", "together": "distributed",
    "Adam": "solvers.rules", "Momentum": "solvers.rules", "Normalised": "solvers.rules",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bilevel_core' has no attribute {name!r}")
    return getattr(import_module(f"bilevel_core.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # The import system binds a submodule to its name here; `hypergradient` is the function, whoever came first.
        is_module = _HOMES.get(name) == name and isinstance(value, ModuleType)
        super().__setattr__(name, getattr(value, name) if is_module else value)


sys.modules[__name__].__class__ = _Package
