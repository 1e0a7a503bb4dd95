"""Claims of the paper with their verdicts, and how the first edition's runs of hyper-representation decide theirs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bilevel_book.curves import at_marks, band
from bilevel_book.protocol.verdict import Verdict

__all__ = ["Claim", "Verdict", "ahead", "decided", "thirty_marks"]


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was measured, the numbers, the verdict; where it says so; why it is not counted."""

    text: str
    measure: str
    numbers: str
    verdict: Verdict
    where: str = ""
    apart: str = ""


def decided(holds: bool) -> Verdict:
    """The verdict on a claim that is either true or not."""
    return Verdict.HOLDS if holds else Verdict.FAILS


def ahead(
    table: pd.DataFrame, first: str, second: str, column: str, marks: Sequence[float], axis: str = "cpu_seconds"
) -> Verdict:
    """Is the mean of `first` below that of `second` at all marks, at the last ones only, or not at the last?

    A mean that is missing (a seed diverged) loses against one that is there.
    """
    means = band(at_marks(table[table.label.isin((first, second))], axis, column, marks))["mean"].fillna(np.inf)
    lower = means.loc[first].to_numpy() < means.loc[second].to_numpy()
    if lower.all():
        return Verdict.HOLDS
    return Verdict.LATE if lower[-1] else Verdict.FAILS


def thirty_marks(seconds: float) -> np.ndarray:
    """Thirty times, evenly spaced up to `seconds`."""
    return np.linspace(1 / 30, 1, 30) * seconds
