"""What released bilevel code does differently from its papers, one switch a defect (Chapter 11)."""

from bilevel_book.released.problem import ReleasedCleaning
from bilevel_book.released.solvers import ReleasedMRBO, ReleasedStocBiO

__all__ = ["ReleasedCleaning", "ReleasedMRBO", "ReleasedStocBiO"]
