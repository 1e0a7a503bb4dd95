"""What the ledgers look at: the stored runs of both experiments, the sentences that they decide, the measured rates."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import pandas as pd

from bilevel_book.experiments import runs_of
from bilevel_book.labels import CLEANING, REPRESENTATION
from bilevel_book.rates import EARLIER
from bilevel_book.verdicts.cells import RUNS, cells
from bilevel_book.verdicts.sentences import Case, case


@dataclass(frozen=True)
class Evidence:
    """The histories of both experiments as `runs_of` gives them, the sentences, and the cells of the rates."""

    representation: pd.DataFrame
    cleaning: pd.DataFrame
    case: Callable[[str], Case]  # the sentence of the protocol with this name, and its runs
    cells: pd.DataFrame  # what every cell says about the rate of its method, and, `earlier`, by the second rule

    @classmethod
    def stored(cls) -> "Evidence":
        """What is in `results`; a run that is missing is an error, since a verdict from half the runs is none."""
        said = [cells(method).assign(method=method, earlier=cells(method, EARLIER).outcome) for method in RUNS]
        return cls(runs_of(REPRESENTATION), runs_of(CLEANING), cache(case), pd.concat(said))
