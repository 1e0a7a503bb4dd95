"""A sentence of the paper, and its methods compared seed by seed.

    r_s = log(reading of the first / reading of the rival) on seed s     below 0: the first is ahead

- A reading of inf counts as the least it can mean: the horizon, if a level was not reached; if the run diverged, the
  start or the worst finite reading of the pair, whichever is larger. On a seed on which both have inf, r = 0.
- Readings below a floor count as the floor, so that 0 against 0 is alike. It is the resolution of the metric (runs are
  stored with six digits); for rises also 1 % of where the pair settles, half of the smallest margin in use.
- Fewer than two shared seeds, or a reading of nan on one of them: no mean.
- A level counts for a pair if one of the two reaches it on most seeds within two thirds of the budget.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from bilevel_book.protocol.measures import HORIZONS, Curves, Measure, curves, faster, lower, marks_of, stable

VISIBLE_RISE = 0.01


@dataclass(frozen=True)
class Sentence:
    """In `metric`, `first` is faster (to each of `levels`), lower or more stable than each of `rivals`; or `alike`."""

    text: str
    first: str
    rivals: tuple[str, ...]
    measure: str
    metric: str
    levels: tuple[float, ...] = ()
    alike: bool = False
    untestable: str = ""  # the reason why no run can decide
    resolution: float = 1e-6

    def __post_init__(self) -> None:
        if self.measure not in ("faster", "lower", "stable"):
            raise ValueError(f"{self.text}: no measure {self.measure!r}; there are faster, lower and stable")
        if bool(self.levels) != (self.measure == "faster"):
            raise ValueError(f"{self.text}: give levels to the measure faster, and only to it; got {self.levels}")
        if not self.rivals or self.first in self.rivals:
            raise ValueError(f"{self.text}: give at least one rival, other than {self.first}; got {self.rivals}")

    def measures(self) -> dict[float, Measure]:
        """By level; the level is nan where the measure has none."""
        if self.levels:
            return {level: faster(level) for level in self.levels}
        return {np.nan: lower if self.measure == "lower" else stable}


def compare(runs: pd.DataFrame, sentence: Sentence, axis: str) -> pd.DataFrame:
    """A row for each rival, level and horizon: seeds n, mean and standard error of r, seeds with inf (`..._out`)."""
    found = curves(runs, axis, sentence.metric, (sentence.first, *sentence.rivals))
    rows = []
    for rival in sentence.rivals:
        two = {label: found[label] for label in (sentence.first, rival)}
        seeds = sorted(set.intersection(*map(set, two.values())))
        pairs, marks = [[by_seed[seed] for by_seed in two.values()] for seed in seeds], marks_of(two)
        floor = 0.0 if sentence.levels else sentence.resolution
        if sentence.measure == "stable":
            floor = max(floor, VISIBLE_RISE * _settled(two, marks))
        start = max((curve.value[0] for pair in pairs for curve in pair), default=0.0)
        for level, measure in sentence.measures().items():
            for horizon, last in HORIZONS.items():  # two thirds first
                read = np.array([[curve.read(measure, marks[:last]) for curve in pair] for pair in pairs])
                if horizon == "two thirds":
                    counts = bool(2 * np.isfinite(read).sum(axis=0).max(initial=0) > len(seeds))
                worst = marks[last - 1] if sentence.levels else read[np.isfinite(read)].max(initial=start)
                where = {"rival": rival, "level": level, "horizon": horizon, "counts": counts, "n": len(seeds)}
                rows.append(where | _paired(read.reshape(-1, 2), floor, worst))
    return pd.DataFrame(rows)


def _settled(found: Curves, marks: np.ndarray) -> float:
    """Where the runs settle: the median of those that can be read."""
    ends = np.array([curve.read(lower, marks) for by_seed in found.values() for curve in by_seed.values()])
    return float(np.median(ends[np.isfinite(ends)])) if np.isfinite(ends).any() else 0.0


def _paired(read: np.ndarray, floor: float, worst: float) -> dict[str, Any]:
    """Mean and error of the log ratios of the first column of readings to the second, and what is infinite in them."""
    logs = np.log(np.clip(read, floor, worst))
    readable = len(read) > 1 and bool(np.isfinite(logs).all())
    r = logs[:, 0] - logs[:, 1] if readable else np.full(2, np.nan)
    first, rival = np.isinf(read).T
    out = {"first_out": first.sum(), "rival_out": rival.sum(), "both_out": (first & rival).sum()}
    return {"mean": r.mean(), "error": r.std(ddof=1) / np.sqrt(len(r)), **out}
