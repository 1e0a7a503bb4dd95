"""Settings chosen by one rule for every method, and what the choice is worth."""

from collections.abc import Iterable
from math import comb

import numpy as np
import pandas as pd

from bilevel_book.verdicts.measures import curves


def scores(trials: pd.DataFrame, metric: str) -> pd.Series:
    """The score of each trial (label): over its seeds, the median of the median of the last quarter of its rows.

    A run that diverged has inf. A trial that lacks a seed that others have, as when it missed the finals, has no score.
    """
    found = curves(trials, "step", metric, trials.label.unique())
    seeds = set(trials.seed)
    ends = {
        label: [
            np.inf if run.diverged else np.median(run.value[-max(1, len(run.value) // 4) :]) for run in runs.values()
        ]
        for label, runs in found.items()
        if runs.keys() == seeds
    }
    return pd.Series({label: np.median(each) for label, each in ends.items()})


def best(score: pd.Series) -> str:
    """The trial with the lowest score; of several, the first."""
    if not np.isfinite(score).any():
        raise ValueError(f"all {len(score)} trials diverged, so none is best: change the box")
    return str(score.idxmin())


def expected_best(score: pd.Series, shown: pd.Series, trials: Iterable[int] = (1, 4, 12, 24)) -> pd.DataFrame:
    """What the best, by score, of k trials drawn from the n that were made shows: mean, median, 10 and 90 per cent."""
    n, rows = len(score), {}
    value = shown[score.sort_values(kind="stable").index].to_numpy(float)
    for k in trials:
        if not 1 <= k <= n:
            raise ValueError(f"there is no best of {k} trials out of {n}: take 1 to {n}")
        # P(the best of k is the i-th of n) = C(n - i, k - 1) / C(n, k), which is 0 for the last k - 1
        chance = np.array([comb(n - i, k - 1) / comb(n, k) for i in range(1, n - k + 2)])
        possible = value[: len(chance)]
        order = np.argsort(possible)
        low, median, high = possible[order][np.searchsorted(chance[order].cumsum(), np.array([0.1, 0.5, 0.9]) - 1e-12)]
        rows[k] = {"mean": chance @ possible, "low": low, "median": median, "high": high}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("trials")
