"""A sentence of the paper, and its methods compared seed by seed.

    r_s = log(reading of the first / reading of the rival) on seed s     below 0: the first is ahead

- Faster: r_s is the mean over the levels that count: those that one of the two meets, on most seeds, within two thirds
  of the budget, and above which both start. A run that never meets a level counts as if it did at the horizon.
- A run that diverged counts as the worst finite reading of the pair or, if that is more, as its start; in the measure
  stable, as a rise from the lowest value of the pair back to the start.
- Values below the resolution of the metric count as the resolution, so that 0 against 0 is alike.
- Fewer than two shared seeds, a run among them that cannot be read, or no level that counts: no mean.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from bilevel_book.verdicts.measures import HORIZONS, Curve, Measure, curves, faster, lower, marks_of, stable


@dataclass(frozen=True)
class Sentence:
    """In `metric`, `first` is faster (to `levels`), lower or more stable than each rival; or what `means` says."""

    text: str
    first: str
    rivals: tuple[str, ...]
    measure: str
    metric: str
    levels: tuple[float, ...] = ()
    means: str = "ahead"  # or "alike", or "differs": from some rival
    untestable: Mapping[str, str] = field(default_factory=dict)  # rivals about whom no run can decide, and why
    contains: tuple[str, ...] = ()  # rivals that are special cases of `first`: it loses to them only for want of tuning
    resolution: float = 1e-6  # runs are stored with six digits; for an error rate, half an image

    def __post_init__(self) -> None:
        for name, known in {"measure": ("faster", "lower", "stable"), "means": ("ahead", "alike", "differs")}.items():
            if (given := getattr(self, name)) not in known:
                raise ValueError(f"{self.text}: {name} must be one of {', '.join(known)}; got {given!r}")
        if bool(self.levels) != (self.measure == "faster"):
            raise ValueError(f"{self.text}: give levels to the measure faster, and only to it; got {self.levels}")
        if not self.rivals or self.first in self.rivals or not {*self.untestable, *self.contains} <= set(self.rivals):
            raise ValueError(f"{self.text}: give rivals besides {self.first}, the untestable and contained among them")


class Pairs:
    """The runs of two methods on the seeds that they share, up to the budget that they share."""

    def __init__(self, first: dict[int, Curve], rival: dict[int, Curve]):
        self.marks = marks_of({"first": first, "rival": rival})
        self.runs = [(first[seed], rival[seed]) for seed in sorted(first.keys() & rival.keys())]

    def each(self, value: Callable[[Curve], float]) -> np.ndarray:
        """A row for each seed, a column for each method."""
        return np.array([[value(curve) for curve in pair] for pair in self.runs]).reshape(-1, 2)

    def counts(self, level: float) -> bool:
        read = self.each(lambda curve: curve.read(faster(level), self.marks, HORIZONS["two thirds"]))
        return not np.isnan(read).any() and bool(2 * np.isfinite(read).sum(axis=0).max() > len(read))

    def diverged(self, last: int) -> np.ndarray:
        return self.each(lambda curve: curve.diverged_by(self.marks[last - 1])).astype(bool)

    def log_ratios(self, measure: Measure, last: int) -> np.ndarray:
        """r of one measure, up to the mark with the number `last`."""
        read = self.each(lambda curve: curve.read(measure, self.marks, last))
        start = self.each(lambda curve: curve.value[0]).max(initial=0)
        if measure is stable:
            until = self.marks[last - 1 : last]
            start /= self.each(lambda curve: curve.value[: curve.rows_until(until)[0]].min()).min(initial=np.inf)
        worst = (
            max(start, read[np.isfinite(read)].max(initial=0)) if measure in (lower, stable) else self.marks[last - 1]
        )
        first, rival = np.log(np.minimum(read, worst)).T
        return first - rival


def compare(runs: pd.DataFrame, sentence: Sentence, axis: str) -> pd.DataFrame:
    """A row for each rival and horizon: seeds n, levels that count, mean and standard error of r, diverged runs."""
    testable = [rival for rival in sentence.rivals if rival not in sentence.untestable]
    found = curves(runs, axis, sentence.metric, (sentence.first, *testable), sentence.resolution)
    rows = []
    for rival in testable:
        pairs = Pairs(found[sentence.first], found[rival])
        n, levels = len(pairs.runs), [level for level in sentence.levels if pairs.counts(level)]
        measures: list[Measure] = [faster(level) for level in levels]
        if sentence.measure != "faster":
            measures = [lower if sentence.measure == "lower" else stable]
        for horizon, last in HORIZONS.items():
            r = np.array([pairs.log_ratios(measure, last) for measure in measures])
            known = n > 1 and r.size > 0 and bool(np.isfinite(r).all())
            mean, error = (r.mean(), r.mean(axis=0).std(ddof=1) / np.sqrt(n)) if known else (np.nan, np.nan)
            first, other = pairs.diverged(last).T
            rows.append({
                "rival": rival, "horizon": horizon, "n": n, "levels": len(levels), "mean": mean, "error": error,
                "first_diverged": first.sum(), "rival_diverged": other.sum(), "both_diverged": (first & other).sum(),
            })  # fmt: skip
    return pd.DataFrame(rows)
