"""What the ledgers look at: the stored runs and the measured rates; and the form in which a finding is put."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from bilevel_book import rates, stored
from bilevel_book.paths import RESULTS
from bilevel_book.verdicts import Claim, Verdict
from bilevel_core import experiments


@dataclass(frozen=True)
class Evidence:
    """The histories of both experiments as `stored.read` gives them, and the tables of `rates`."""

    representation: pd.DataFrame
    cleaning: pd.DataFrame
    slopes: pd.DataFrame  # with the schedules of the theories: method, slope, low, high
    fair: pd.DataFrame  # the same with constant steps that are best for each length of the run
    far: pd.DataFrame  # the mean itself after 1e5 steps from a far start: method, mean, low, high

    @classmethod
    def stored(cls) -> "Evidence":
        """What is in `results`; a run that is missing is an error, since a verdict from half the runs is none."""
        return cls(
            complete("hyper-representation"),
            complete("hyper-cleaning"),
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
            f"run `python -m bilevel_core reproduce {experiment} --size full --results {RESULTS}`"
        )
    return stored.read(experiment)


Judge = Callable[[Evidence], list[Claim]]


def found(text: str, measure: str, numbers: str, verdict: Verdict | bool) -> Claim:
    """A claim whose place is that of its passage."""
    if isinstance(verdict, bool):
        verdict = Verdict.HOLDS if verdict else Verdict.FAILS
    return Claim("", text, measure, numbers, verdict)


def undecidable(text: str, reason: str) -> Judge:
    """A claim that no run can decide, and why."""
    return lambda evidence: [found(text, reason, "no number", Verdict.UNTESTABLE)]


def several(*judges: Judge) -> Judge:
    """The claims of one judge after those of another."""
    return lambda evidence: [claim for each in judges for claim in each(evidence)]


def listed(numbers: Iterable[float]) -> str:
    """Numbers with three digits, separated by commas."""
    return ", ".join(f"{number:.3g}" for number in numbers)
