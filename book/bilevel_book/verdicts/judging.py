"""Two methods compared seed by seed, and the verdict, by the rules of experiments/protocol.md.

    r_s = log(number of the first / number of the rival) on seed s         below 0: the first is ahead

The number is, of a run cut at the budget,

    faster    the geometric mean, over the levels, of the time at which the loss first crosses the level, straight
              between rows; the budget where it does not
    lower     the median over the rows of the last quarter of the budget
    stable    the largest ratio of the loss to its running minimum, after the first tenth of the budget

and the interval  mean(r) +- t s / sqrt(n)  decides, by Student's t, 95 % for all rivals together (Holm's rule):

    supported       the ratio is below 1 / (1 + margin)          contradicted    it is above 1 + margin
    no difference   it is between the two                        undecided       anything else

A run that diverged misses every level, and has otherwise the larger number of its pair, or its loss at the start if
that is more; a method that diverged where the other did not cannot win.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from math import ceil, exp, log, sqrt
from statistics import NormalDist

import numpy as np
import pandas as pd

from bilevel_book.verdicts.student import cdf, quantile

MARGIN, ALPHA = 0.05, 0.05
MOST_MISSED = 3  # levels that both methods may miss
ENDS_OF_LEVELS = {"upper_loss": (1.84, 0.16), "test_loss": (13.8, 0.55), "train_loss": (13.8, 0.52)}
SLACK = 1e-9  # times are products of floats, so that equal means nearly equal
NO_LEVELS = np.empty(0)


class Verdict(StrEnum):
    """In the order of the protocol: what is made of several has the last one of theirs."""

    SUPPORTED = "supported"
    NO_DIFFERENCE = "no difference"
    UNDECIDED = "undecided"
    CONTRADICTED = "contradicted"
    UNTESTABLE = "not testable"  # which no run of ours gives


@dataclass(frozen=True)
class Curve:
    """One metric of one run: its values at increasing times, from 0 on."""

    at: np.ndarray
    value: np.ndarray
    diverged: bool = False

    def until(self, budget: float) -> "Curve":
        kept = self.at <= budget * (1 + SLACK)
        return Curve(self.at[kept], self.value[kept], self.diverged)


Curves = dict[int, Curve]  # by seed


def levels_of(metric: str) -> np.ndarray:
    """The nine levels of a loss, evenly spaced on a logarithmic axis; they were fixed from the tuning runs."""
    return np.geomspace(*ENDS_OF_LEVELS[metric], 9)


def crossing_times(curve: Curve, levels: np.ndarray, budget: float) -> np.ndarray:
    """When the loss first crosses each level, straight between rows; inf if that is not within the budget."""
    if curve.value[0] <= max(levels):
        raise ValueError(f"a run that starts at {curve.value[0]:g} cannot cross the level {max(levels):g}")
    times = np.full(len(levels), np.inf)
    for i, level in enumerate(levels if not curve.diverged else ()):
        if (is_met := curve.value <= level).any():
            k = int(is_met.argmax())
            share = (curve.value[k - 1] - level) / (curve.value[k - 1] - curve.value[k])
            times[i] = curve.at[k - 1] + share * (curve.at[k] - curve.at[k - 1])
    return np.where(times <= budget * (1 + SLACK), times, np.inf)


def lower(curve: Curve, budget: float) -> float:
    """The median over the rows of the last quarter of the budget."""
    last = curve.until(budget)
    quarter = last.value[last.at >= 0.75 * budget]
    if len(quarter) == 0:
        raise ValueError(f"no row in the last quarter of the budget {budget:g}; the last one is at {curve.at[-1]:g}")
    return float(np.median(quarter))


def stable(curve: Curve, budget: float) -> float:
    """The largest ratio to the running minimum, after the first tenth of the budget; 1 if it never rises."""
    run = curve.until(budget)
    ratios = run.value / np.minimum.accumulate(run.value)
    return float(ratios[run.at > 0.1 * budget].max(initial=1.0))


MEASURES = {"lower": lower, "stable": stable}


@dataclass(frozen=True)
class Pair:
    """r seed by seed; how many levels both miss, and each; on which seeds each diverged."""

    r: np.ndarray
    both_missed: np.ndarray
    missed: tuple[int, int]
    diverged: np.ndarray  # a column for each of the two
    by_level: np.ndarray | None = None  # of faster: r with a column for each level

    @property
    def moments(self) -> tuple[int, float, float]:
        """n, the mean of r, and its standard error."""
        n = len(self.r)
        return n, float(np.mean(self.r)), float(np.std(self.r, ddof=1) / sqrt(n)) if n > 1 else np.nan

    @property
    def is_readable(self) -> bool:
        return len(self.r) > 1 and 2 * (self.both_missed > MOST_MISSED).sum() <= len(self.r)


def compare(first: Curves, rival: Curves, measure: str, budget: float, levels: np.ndarray = NO_LEVELS) -> Pair:
    """Two methods on the seeds that they share."""
    pairs = [(first[seed], rival[seed]) for seed in sorted(first.keys() & rival.keys())]
    diverged = np.array([[curve.diverged for curve in pair] for pair in pairs]).reshape(-1, 2)
    if measure != "faster":
        r = np.array([np.subtract(*np.log(_numbers(pair, measure, budget))) for pair in pairs])
        return Pair(r, np.zeros(len(r)), (0, 0), diverged)
    times = np.array([[crossing_times(curve, levels, budget) for curve in pair] for pair in pairs])
    missed = np.isinf(times)
    by_level = np.subtract(*np.log(np.minimum(times, budget)).swapaxes(0, 1))
    own, other = (int(count) for count in missed.sum((0, 2)))
    return Pair(by_level.mean(1), missed.all(1).sum(1), (own, other), diverged, by_level)


def _numbers(pair: Iterable[Curve], measure: str, budget: float) -> np.ndarray:
    found = [np.nan if curve.diverged else MEASURES[measure](curve, budget) for curve in pair]
    start = max(curve.value[0] for curve in pair) if measure == "lower" else 1.0
    worst = np.nanmax([*found, start if np.isnan(found).any() else np.nan])
    return np.where(np.isnan(found), worst, found)


def decide(pairs: dict[str, Pair], margin: float = MARGIN) -> pd.DataFrame:
    """A row for each rival: seeds n, the ratio with its interval low to high, the verdict, *much* faster by a factor of
    two, and how many seeds would decide a difference of 5 %; the levels missed and the runs diverged, of both."""
    chances = {rival: _chances(pair, log(1 + margin)) for rival, pair in pairs.items()}
    clearest = {rival: min(p, key=lambda verdict: p[verdict]) for rival, p in chances.items()}
    rows, left = {}, len(pairs)
    for rival in sorted(pairs, key=lambda rival: chances[rival][clearest[rival]]):
        pair, level = pairs[rival], ALPHA / 2 / left
        is_decided = chances[rival][clearest[rival]] <= level
        left -= is_decided
        n, mean, error = pair.moments
        half = quantile(1 - level, n - 1) * error if n > 1 else np.nan
        low, high = exp(mean - half), exp(mean + half)
        rows[rival] = {
            "n": n, "ratio": exp(mean), "low": low, "high": high,
            "verdict": clearest[rival] if is_decided else Verdict.UNDECIDED,
            "much": _much(pair, low, high),
            "needed": seeds_needed(error * sqrt(n), level),
            **dict(zip(("missed", "rival_missed"), pair.missed, strict=True)),
            **dict(zip(("diverged", "rival_diverged"), pair.diverged.sum(0).tolist(), strict=True)),
        }  # fmt: skip
    return pd.DataFrame.from_dict(rows, orient="index").loc[[*pairs]].rename_axis("rival")


def _chances(pair: Pair, m: float) -> dict[Verdict, float]:
    """The chance of such a mean, or of a clearer one, if a verdict were wrong; 1 for a verdict that is ruled out."""
    if not pair.is_readable:
        return {Verdict.UNDECIDED: 1.0}
    n, mean, error = pair.moments
    above_low, below_high = ((m + side * mean) / max(error, 1e-300) for side in (1, -1))  # both > 0 inside the margin
    first_alone, rival_alone = ((pair.diverged @ side > 0).any() for side in ((1, -1), (-1, 1)))
    return {
        Verdict.SUPPORTED: 1.0 if first_alone else cdf(above_low, n - 1),
        Verdict.CONTRADICTED: 1.0 if rival_alone else cdf(below_high, n - 1),
        Verdict.NO_DIFFERENCE: max(cdf(-above_low, n - 1), cdf(-below_high, n - 1)),
    }


def _much(pair: Pair, low: float, high: float) -> Verdict:
    """By a factor of two, under the conditions of every verdict: readable, and no win where it alone diverged."""
    own, other = (pair.diverged @ side > 0 for side in ((1, -1), (-1, 1)))
    if pair.is_readable and high < 0.5 and not own.any():
        return Verdict.SUPPORTED
    return Verdict.CONTRADICTED if pair.is_readable and low > 0.5 and not other.any() else Verdict.UNDECIDED


def seeds_needed(deviation: float, level: float = ALPHA / 2) -> float:
    """The fewest seeds whose interval reaches no further than 5 % from its middle, if they scatter as these do."""
    if np.isnan(deviation):
        return np.nan
    n = max(2, ceil((NormalDist().inv_cdf(1 - level) * deviation / log(1 + MARGIN)) ** 2))
    while quantile(1 - level, n - 1) * deviation / sqrt(n) > log(1 + MARGIN):
        n += 1
    return n


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The verdict on a sentence about several methods or measures."""
    return max(verdicts, key=[*Verdict].index)


def against(read: pd.DataFrame, unchanged: str = "correct") -> pd.DataFrame:
    """What one change does: of each other row of `read`, a column for each seed, the ratio to the unchanged one.

    `word` is lower, higher, no difference or undecided.
    """
    r, n = np.log(read.drop(index=unchanged) / read.loc[unchanged]), read.shape[1]
    none = np.zeros((n, 2), bool)
    judged = decide({str(name): Pair(row.to_numpy(), np.zeros(n), (0, 0), none) for name, row in r.iterrows()})
    words = {Verdict.SUPPORTED: "lower", Verdict.CONTRADICTED: "higher"}
    return judged.assign(word=[words.get(verdict, str(verdict)) for verdict in judged.verdict])
