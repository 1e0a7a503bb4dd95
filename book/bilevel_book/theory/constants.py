"""The constants of Theorems 1 (FdeHBO) and 2 (FMBO): what the assumptions say (assumed.py), what the proofs choose, as
printed and corrected (chosen.py), and what that does to their potential (potential.py). All names in one place.

Everything there is arithmetic on numbers: no problem, no samples, no torch beyond a source of random numbers.
"""

from bilevel_book.theory.assumed import *  # noqa: F403
from bilevel_book.theory.chosen import *  # noqa: F403
from bilevel_book.theory.potential import *  # noqa: F403
