"""What the ledgers look at: the stored runs of both experiments, the sentences that they decide, the measured rates."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pandas as pd

from bilevel_book.experiments import load
from bilevel_book.labels import CLEANING, REPRESENTATION
from bilevel_book.paths import RESULTS
from bilevel_book.rates import EARLIER
from bilevel_book.stored import SIZE
from bilevel_book.verdicts.cells import RUNS, cells
from bilevel_book.verdicts.sentences import Case, case, complete


@dataclass(frozen=True)
class Evidence:
    """The histories of both experiments as `experiments.read` gives them, the sentences, and the cells of the rates."""

    representation: pd.DataFrame
    cleaning: pd.DataFrame
    case: Callable[[str], Case]  # the sentence of the protocol with this name, and its runs
    cells: pd.DataFrame  # what every cell says about the rate of its method, and, `earlier`, by the second rule

    @classmethod
    def stored(cls) -> "Evidence":
        """What is in `results`; a run that is missing is an error, since a verdict from half the runs is none."""
        said = [cells(method).assign(method=method, earlier=cells(method, EARLIER).outcome) for method in RUNS]
        return cls(all_runs(REPRESENTATION), all_runs(CLEANING), cache(case), pd.concat(said))


def all_runs(experiment: str, folder: Path = RESULTS) -> pd.DataFrame:
    """The stored runs of all groups of an experiment."""
    tables = [complete(experiment, group, folder) for group in load(experiment).sizes[SIZE]]
    return pd.concat(tables, ignore_index=True)
