"""Problems with a closed-form answer, and the two experiments of the paper."""

from bilevel_core.problems.hyper_cleaning import HyperCleaning
from bilevel_core.problems.hyper_representation import HyperRepresentation
from bilevel_core.problems.quadratic import Quadratic
from bilevel_core.problems.valley import Valley

__all__ = ["HyperCleaning", "HyperRepresentation", "Quadratic", "Valley"]
