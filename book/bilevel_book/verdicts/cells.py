"""What measured slopes say about a claimed rate A(T) ~ T^claimed, cell by cell, and what the cells say together.

A cell has eight runs of the method and eight of its negative control, the same steps without momentum:

    supports        the interval of its slope lies below claimed + 0.05, and that of the control does not
    proves nothing  both do: whatever made the slope, it was not what the theory is about
    speaks against  the interval lies above claimed + 0.05, and the curve is not bending down any more
    says nothing    anything else

A rate holds if at least three cells support it and none speaks against it; it does not hold if at least three speak
against it and none supports it; else it is undecided.
"""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from itertools import product
from typing import NamedTuple

import pandas as pd

from bilevel_book.rates import CLAIMED, CONTROLS, NOISES, SINCE, STARTS, slope, stored
from bilevel_book.verdicts.deciding import Verdict
from bilevel_book.verdicts.student import interval

ROOM = 0.05  # between a slope over two decades and an exponent
ENOUGH = 3  # cells
# The runs that stand for a method. On a quadratic lower level FdeHBO cannot be told from FMBO, nor elsewhere with a
# tiny delta.
RUNS = {
    "FdeHBO": [("rate-bent", "FdeHBO, delta 0.1"), ("rate-bent", "FdeHBO, delta 10 t^-1/3")],
    "FMBO": [("rate", "FdeHBO"), ("rate-bent", "FdeHBO, delta 0.0001")],
    "F3SA": [("rate", "F3SA"), ("rate-bent", "F3SA")],
    "F2SA": [("rate", "F2SA"), ("rate-bent", "F2SA")],
}


class Outcome(StrEnum):
    SUPPORTS = "supports"
    NOTHING = "proves nothing"
    AGAINST = "speaks against"
    SILENT = "says nothing"


class Cell(NamedTuple):
    """Mean slope and interval of the method, those of its control, and the outcome."""

    slope: float
    low: float
    high: float
    control: float
    control_low: float
    control_high: float
    outcome: Outcome


def cell(runs: pd.DataFrame, control: pd.DataFrame, claimed: float, since: int = SINCE) -> Cell:
    """From A(T) of both: index T, a column for each seed."""
    own, other = (interval(slope(each.loc[since:])) for each in (runs, control))
    limit = claimed + ROOM
    if own[2] < limit:
        outcome = Outcome.NOTHING if other[2] < limit else Outcome.SUPPORTS
    else:
        outcome = Outcome.AGAINST if own[1] > limit and not _bends_down(runs) else Outcome.SILENT
    return Cell(*own, *other, outcome)


def _bends_down(runs: pd.DataFrame) -> bool:
    """Is the slope over the last decade steeper than over the one before?"""
    last = runs.index[-1]
    before, late = (slope(runs.loc[start : 10 * start]).mean() for start in (last // 100, last // 10))
    return bool(late < before)


def verdict_on_rate(outcomes: Iterable[Outcome]) -> Verdict:
    """What the cells of a method say together."""
    count = Counter(outcomes)
    if count[Outcome.SUPPORTS] >= ENOUGH and not count[Outcome.AGAINST]:
        return Verdict.HOLDS
    if count[Outcome.AGAINST] >= ENOUGH and not count[Outcome.SUPPORTS]:
        return Verdict.FAILS
    return Verdict.UNDECIDED


def cells(method: str, since: int = SINCE) -> pd.DataFrame:
    """All cells of a method: experiment, label, noise, start, and the fields of `Cell`."""
    family, rows = "FdeHBO" if method == "FMBO" else method, []
    for (experiment, label), noise, start in product(RUNS[method], NOISES, STARTS):
        pair = (stored("schedules", name, noise, start, experiment=experiment) for name in (label, CONTROLS[family]))
        rows.append((experiment, label, noise, start, *cell(*pair, CLAIMED[family], since)))
    return pd.DataFrame(rows, columns=["experiment", "label", "noise", "start", *Cell._fields])
