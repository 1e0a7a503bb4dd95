"""From comparisons to a verdict on a sentence.

The interval of the mean log ratio, mean(r) +- t s / sqrt(n) with Student's t, says of a rival, with the margin m (5 %):

    holds          it lies below -log(1 + m)
    does not hold  it lies above +log(1 + m)
    alike          it lies between the two
    undecided      anything else
    not testable   no run could decide: said of the sentence, before any run

at the budget's end and at two thirds of it, and at every level that counts: where these differ, it is undecided. So a
word must be proved in several places, its p is the largest of theirs, and Holm over the rivals keeps the chance that
the word is said wrongly of any of them at 2.5 %. The interval that is shown is the one that Holm asks for.
A method that has inf on a seed on which the other has a number cannot win, and two cannot be alike if either has inf.
"""

from enum import StrEnum
from math import isnan, log
from typing import Any

import numpy as np
import pandas as pd

from bilevel_book.protocol.comparison import Sentence, compare
from bilevel_book.protocol.student import cdf, quantile

ALPHA, MARGIN = 0.05, 0.05


class Verdict(StrEnum):
    HOLDS = "holds"
    ALIKE = "alike"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTABLE = "not testable"


def chances(row: Any, m: float) -> dict[Verdict, float]:
    """The p of each word: the chance of such a mean, or a clearer one, if the word were wrong; 1 where it cannot be."""
    # With an error of 0, the same r on every seed, the mean itself decides.
    below, above = ((m + side * row.mean) / max(row.error, 1e-300) for side in (1, -1))
    known, nu = not isnan(row.error), row.n - 1
    return {
        Verdict.HOLDS: cdf(below, nu) if known and row.first_out == row.both_out else 1.0,
        Verdict.FAILS: cdf(above, nu) if known and row.rival_out == row.both_out else 1.0,
        Verdict.ALIKE: max(cdf(-below, nu), cdf(-above, nu)) if known and row.first_out == row.rival_out == 0 else 1.0,
    }


def holm(p: pd.Series) -> np.ndarray:
    """The level at which each p is tested: a / k for the smallest of k, then a / (k - 1) if that was below it, ..."""
    levels, remaining = np.empty(len(p)), len(p)
    for i in np.argsort(p.to_numpy(), kind="stable"):
        levels[i] = ALPHA / 2 / remaining
        remaining -= int(p.iloc[i] <= levels[i])
    return levels


def decide(compared: pd.DataFrame, margin: float = MARGIN) -> pd.DataFrame:
    """The rows of `compare` with the interval of the ratio, low to high, and in `verdict` the word on their rival."""
    rows: list[Any] = list(compared.itertuples())
    p = pd.DataFrame([chances(row, log(1 + margin)) for row in rows], compared.index)[compared.counts]
    p = p.groupby(compared.rival).max().reindex(compared.rival.unique(), fill_value=1.0)
    nearest, smallest = p.idxmin(axis=1), p.min(axis=1)
    level = p.apply(holm).to_numpy()[range(len(p)), p.to_numpy().argmin(axis=1)]
    verdict = nearest.where(smallest <= level, Verdict.UNDECIDED)
    at = compared.rival.map(pd.Series(level, p.index))
    t = np.array([quantile(1 - a, row.n - 1) if row.n > 1 else np.nan for a, row in zip(at, rows, strict=True)])
    low, high = (np.exp(compared["mean"] + side * t * compared.error) for side in (-1, 1))
    return compared.assign(low=low, high=high, verdict=compared.rival.map(verdict))


def overall(decided: pd.DataFrame, sentence: Sentence) -> Verdict:
    """The verdict on the sentence, which is as good as the weakest on its rivals."""
    if sentence.untestable:
        return Verdict.UNTESTABLE
    words = set(decided.verdict)
    if sentence.alike:
        meant = {Verdict.ALIKE: Verdict.HOLDS, Verdict.HOLDS: Verdict.FAILS}
        words = {meant.get(word, word) for word in words}
    return next(word for word in (Verdict.FAILS, Verdict.UNDECIDED, Verdict.ALIKE, Verdict.HOLDS) if word in words)


def judge(runs: pd.DataFrame, sentence: Sentence, axis: str = "equivalents", margin: float = MARGIN) -> Verdict:
    """The verdict on a sentence; `decide(compare(...))` has the numbers behind it."""
    return overall(decide(compare(runs, sentence, axis), margin), sentence)
