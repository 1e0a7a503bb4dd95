"""What rules for deciding from a few seeds are worth, by simulation: r_1, ..., r_n normal, as log ratios nearly are.

All draws come from generators with fixed seeds, so that a page says the same whenever it is built.
"""

from functools import cache
from math import log, sqrt

import numpy as np

from bilevel_book.verdicts.deciding import ALPHA, Verdict
from bilevel_book.verdicts.student import quantile

LEVEL = 1 - ALPHA
SAMPLES, RESAMPLES, PARTS = 10_000, 500, 50


def half_width(r: np.ndarray) -> np.ndarray:
    """t s / sqrt(n) of each row, with Student's t."""
    n = r.shape[1]
    return quantile((1 + LEVEL) / 2, n - 1) * r.std(axis=1, ddof=1) / sqrt(n)


@cache
def coverage(n: int) -> dict[str, float]:
    """How often an interval that promises 95 % has the truth, 0, in it: three kinds of interval from n seeds."""
    rng = np.random.default_rng(n)
    r, inside = rng.standard_normal((SAMPLES, n)), []
    for part in np.split(r, PARTS):  # means of resamples are means with multinomial weights, which a part shares
        means = part @ (rng.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n).T
        low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=1)
        inside.append((low <= 0) & (high >= 0))
    return {
        "Student's t": float((np.abs(r.mean(axis=1)) <= half_width(r)).mean()),
        "percentile bootstrap": float(np.mean(inside)),
        "smallest to largest": float(((r.min(axis=1) <= 0) & (r.max(axis=1) >= 0)).mean()),
    }


def words(ratio: np.ndarray, n: int, margin: float, scatter: float) -> dict[Verdict, np.ndarray]:
    """The chance of each word on one rival at one horizon, for true ratios of the praised method to its rival.

    `scatter` is the standard deviation of the log ratio over seeds.
    """
    r = scatter * np.random.default_rng(n).standard_normal((SAMPLES, n))
    half, edge = half_width(r), log(1 + margin)
    mean = np.log(ratio)[:, None] + r.mean(axis=1)
    below, above = mean + half, mean - half
    said = {
        Verdict.HOLDS: below < -edge,
        Verdict.ALIKE: (-edge <= above) & (below <= edge),
        Verdict.FAILS: above > edge,
    }
    chances = {word: happens.mean(axis=1) for word, happens in said.items()}
    return chances | {Verdict.UNDECIDED: 1 - sum(chances.values())}
