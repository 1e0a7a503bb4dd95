"""What the ledgers look at: the stored runs of both experiments and the measured rates."""

from dataclasses import dataclass

import pandas as pd

from bilevel_book import rates
from bilevel_book.labels import CLEANING, REPRESENTATION
from bilevel_book.paths import RESULTS
from bilevel_core import experiments


@dataclass(frozen=True)
class Evidence:
    """The histories of both experiments as `experiments.read` gives them, and the tables of `rates`."""

    representation: pd.DataFrame
    cleaning: pd.DataFrame
    slopes: pd.DataFrame  # with the schedules of the theories: method, slope, low, high
    fair: pd.DataFrame  # the same with constant steps that are best for each length of the run
    far: pd.DataFrame  # the mean itself after 1e5 steps from a far start: method, mean, low, high

    @classmethod
    def stored(cls) -> "Evidence":
        """What is in `results`; a run that is missing is an error, since a verdict from half the runs is none."""
        return cls(
            complete(REPRESENTATION),
            complete(CLEANING),
            rates.slopes(),
            rates.fair_slopes(),
            rates.levels(10**5),
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
