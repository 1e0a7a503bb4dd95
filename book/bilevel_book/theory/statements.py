"""The statements of the paper as functions: what is true on an instance, and what is claimed. All names in one place.

Every function returns a `Check(truth, bound)`; the statement says truth <= bound. Where the print is wrong, the name
without suffix is the corrected statement and the name with `_as_printed` is the paper's. statements.toml lists all
lemmas, propositions, theorems and corollaries of the paper with their status and their functions.

An instance is a `LogCoshFamily` (constants by formula, expectations by enumeration) and a point, or one `Step` of the
algorithms. e_y, e_v, e_x are the errors of the momentum estimators h_y, h_v, h_x (in the paper e^g, e^R, e^f).
"""

from bilevel_book.theory.check import *  # noqa: F403
from bilevel_book.theory.descent import *  # noqa: F403
from bilevel_book.theory.estimators import *  # noqa: F403
from bilevel_book.theory.lipschitz import *  # noqa: F403
from bilevel_book.theory.surrogate import *  # noqa: F403
