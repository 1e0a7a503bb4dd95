"""From comparisons to a verdict on a sentence.

The interval of the mean log ratio, mean(r) +- t s / sqrt(n) with Student's t, decides on a rival, with margin m (5 %):

    holds          it lies below -log(1 + m)
    does not hold  it lies above +log(1 + m)
    alike          it lies between the two
    undecided      anything else
    not testable   no run could decide: said in the sentence

at the budget's end and at two thirds of it: where these differ, it is undecided. A verdict must hold twice, so its p is
the larger of the two. Holm's rule: the rival that is decided most clearly is tested at 1 - 5 % / k for k rivals, the
next at 1 - 5 % / (k - 1), ..., and from the first that stays undecided on, all are. The interval shown is that one.
A method that diverged on a seed on which the other did not cannot win, and two cannot be alike if either diverged.
"""

from collections.abc import Iterable
from enum import StrEnum
from math import isnan, log
from typing import Any

import numpy as np
import pandas as pd

from bilevel_book.verdicts.comparison import Sentence, compare
from bilevel_book.verdicts.student import cdf, quantile

ALPHA, MARGIN = 0.05, 0.05


class Verdict(StrEnum):
    HOLDS = "holds"
    ALIKE = "alike"
    FAILS = "does not hold"
    UNDECIDED = "undecided"
    UNTESTABLE = "not testable"


MEANT: dict[str, dict[Verdict, Verdict]] = {  # what the verdict on a rival says of a sentence
    "ahead": {},
    "alike": {Verdict.ALIKE: Verdict.HOLDS, Verdict.HOLDS: Verdict.FAILS},
    "differs": {Verdict.FAILS: Verdict.HOLDS, Verdict.ALIKE: Verdict.FAILS},
}
WORDS = {Verdict.HOLDS: "lower", Verdict.FAILS: "higher", Verdict.ALIKE: "alike", Verdict.UNDECIDED: "undecided"}
WORST_FIRST = (Verdict.FAILS, Verdict.UNTESTABLE, Verdict.UNDECIDED, Verdict.ALIKE, Verdict.HOLDS)


def p_values(row: Any, m: float) -> dict[Verdict, float]:
    """The chance of such a mean, or a clearer one, if a verdict were wrong; 1 for a verdict that is ruled out."""
    # With an error of 0, the same r on every seed, the mean itself decides.
    below, above = ((m + side * row.mean) / max(row.error, 1e-300) for side in (1, -1))
    known, nu = not isnan(row.error), row.n - 1
    can_win, can_lose = row.first_diverged == row.both_diverged, row.rival_diverged == row.both_diverged
    none_diverged = row.first_diverged == row.rival_diverged == 0
    return {
        Verdict.HOLDS: cdf(below, nu) if known and can_win else 1.0,
        Verdict.FAILS: cdf(above, nu) if known and can_lose else 1.0,
        Verdict.ALIKE: max(cdf(-below, nu), cdf(-above, nu)) if known and none_diverged else 1.0,
    }


def holm(p: np.ndarray) -> np.ndarray:
    """The level, on each side, at which each p is tested."""
    levels, remaining = np.empty(len(p)), len(p)
    for i in np.argsort(p, kind="stable"):
        levels[i] = ALPHA / 2 / remaining
        remaining -= p[i] <= levels[i]
    return levels


def decide(compared: pd.DataFrame, margin: float = MARGIN) -> pd.DataFrame:
    """The rows of `compare` with the interval of the ratio, low to high, and the verdict on their rival."""
    if compared.empty:
        return compared.assign(verdict=[])
    rows: list[Any] = list(compared.itertuples())
    p: dict[str, dict[Verdict, float]] = {row.rival: dict.fromkeys(Verdict, 0.0) for row in rows}
    for row in rows:
        p[row.rival] = {v: max(chance, p[row.rival][v]) for v, chance in p_values(row, log(1 + margin)).items()}
    clearest = {rival: min(each.items(), key=lambda item: item[1]) for rival, each in p.items()}
    level = dict(zip(clearest, holm(np.array([chance for _, chance in clearest.values()])), strict=True))
    verdict = {rival: v if c <= level[rival] else Verdict.UNDECIDED for rival, (v, c) in clearest.items()}
    t = np.array([quantile(1 - level[row.rival], row.n - 1) if row.n > 1 else np.nan for row in rows])
    low, high = (np.exp(compared["mean"].to_numpy() + side * t * compared.error.to_numpy()) for side in (-1, 1))
    return compared.assign(low=low, high=high, verdict=compared.rival.map(verdict))


def without_inclusions(decided: pd.DataFrame, sentence: Sentence) -> pd.DataFrame:
    """A method that loses to a special case of itself was not tuned enough: that pair is undecided."""
    if decided.empty:
        return decided
    lost = decided.rival.isin(sentence.contains) & (decided.verdict == Verdict.FAILS)
    return decided.assign(verdict=decided.verdict.mask(lost, Verdict.UNDECIDED))


def overall(decided: pd.DataFrame, sentence: Sentence) -> Verdict:
    """The verdict on the sentence: the worst on its rivals, as it means them."""
    found = {MEANT[sentence.means].get(v, v) for v in without_inclusions(decided, sentence).verdict}
    if sentence.means == "differs":  # one rival is enough
        found = next(({v} for v in (Verdict.HOLDS, Verdict.UNDECIDED) if v in found), found)
    return worst(found | ({Verdict.UNTESTABLE} if sentence.untestable else set()))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on what is made of several."""
    return min(verdicts, key=WORST_FIRST.index)


def judge(runs: pd.DataFrame, sentence: Sentence, axis: str = "equivalents", margin: float = MARGIN) -> Verdict:
    """The verdict on a sentence; `decide(compare(...))` has the numbers behind it."""
    return overall(decide(compare(runs, sentence, axis), margin), sentence)


def against(read: pd.DataFrame, unchanged: str = "correct") -> pd.DataFrame:
    """What one change does: of each other row of `read`, a column for each seed, the ratio to the unchanged one.

        r_s = log(what is read with the change / what is read without it)        on seed s, both at the same place

    `word` is lower, higher, alike or undecided, as `decide` says, but at one place alone: runs that are too short to be
    read at 24 marks have no second one. Low to high is the interval by which a row was judged, Holm's rule included.
    """
    r = np.log(read.drop(index=unchanged) / read.loc[unchanged])
    n, none = r.shape[1], dict.fromkeys(("first_diverged", "rival_diverged", "both_diverged"), 0)
    error = r.std(axis=1, ddof=1) / np.sqrt(n)
    judged = decide(pd.DataFrame({"rival": r.index, "n": n, "mean": r.mean(axis=1), "error": error} | none))
    return judged.assign(ratio=np.exp(judged["mean"]), word=judged.verdict.map(WORDS))
