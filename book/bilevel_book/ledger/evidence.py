"""What the ledgers look at: the stored runs of both experiments and the measured rates."""

from dataclasses import dataclass

import pandas as pd

from bilevel_book.labels import CLEANING, REPRESENTATION
from bilevel_book.paths import RESULTS
from bilevel_book.protocol.cells import RUNS, cells
from bilevel_core import experiments


@dataclass(frozen=True)
class Evidence:
    """The histories of both experiments as `experiments.read` gives them, and the cells of the rates."""

    representation: pd.DataFrame
    cleaning: pd.DataFrame
    cells: pd.DataFrame  # what every cell says about the rate of its method

    @classmethod
    def stored(cls) -> "Evidence":
        """What is in `results`; a run that is missing is an error, since a verdict from half the runs is none."""
        return cls(
            complete(REPRESENTATION),
            complete(CLEANING),
            pd.concat([cells(method).assign(method=method) for method in RUNS]),
        )


def complete(experiment: str) -> pd.DataFrame:
    """The stored runs of an experiment, all of them."""
    folder = RESULTS / experiment / "full"
    runs = experiments.sweep(experiment, "full")
    missing = [run.name for run in runs if not experiments.is_stored(run, folder)]
    if missing:
        raise FileNotFoundError(
            f"{len(missing)} of {len(runs)} runs of {experiment} are not stored, the first is {missing[0]}: "
            f"run `python -m bilevel_core reproduce {experiment}`"
        )
    return experiments.read(experiment, RESULTS)
