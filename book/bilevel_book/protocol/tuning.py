"""Settings chosen by one rule for every method, and what the choice is worth."""

from collections.abc import Iterable, Mapping
from math import comb, log

import numpy as np
import pandas as pd

from bilevel_book.protocol.comparison import Sentence, compare
from bilevel_book.protocol.measures import curves, lower, marks_of
from bilevel_book.protocol.verdict import Verdict, decide

EDGE = 0.1  # of a box, on a logarithmic scale


def scores(trials: pd.DataFrame, metric: str, axis: str = "equivalents") -> pd.Series:
    """The score of each trial (label): the median over the tuning seeds of where it settles; inf if unreadable."""
    found = curves(trials, axis, metric, trials.label.unique())
    ends = {label: [run.read(lower, marks_of(found)) for run in runs.values()] for label, runs in found.items()}
    return pd.Series({label: np.median(np.where(np.isnan(each), np.inf, each)) for label, each in ends.items()})


def best(score: pd.Series) -> str:
    """The trial with the lowest score; of several, the first."""
    if not np.isfinite(score).any():
        raise ValueError(f"all {len(score)} trials diverged or have too few rows, so none is best: change the box")
    return str(score.idxmin())


def expected_best(score: pd.Series, trials: Iterable[int] = (1, 4, 12, 24)) -> pd.DataFrame:
    """The best of k trials drawn from the n that were made: mean, median, tenth and ninetieth percentile."""
    ordered, n, rows = np.sort(score.to_numpy(float)), len(score), {}
    for k in trials:
        if not 1 <= k <= n:
            raise ValueError(f"there is no best of {k} trials out of {n}: take 1 to {n}")
        # P(the best of k is the i-th of n) = C(n - i, k - 1) / C(n, k), which is 0 for the last k - 1
        chance = np.array([comb(n - i, k - 1) / comb(n, k) for i in range(1, n - k + 2)])
        low, median, high = (ordered[np.searchsorted(chance.cumsum(), q - 1e-12)] for q in (0.1, 0.5, 0.9))
        rows[k] = {"mean": chance @ ordered[: len(chance)], "low": low, "median": median, "high": high}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("trials")


def edges(point: Mapping[str, float], box: Mapping[str, tuple[float, float]]) -> dict[str, str]:
    """The settings of a point that lie in the outer tenth of their box, and at which end."""
    where = {name: log(point[name] / low) / log(high / low) for name, (low, high) in box.items()}
    return {name: "low" if u < 0.5 else "high" for name, u in where.items() if min(u, 1 - u) <= EDGE + 1e-12}


def inclusions(runs: pd.DataFrame, contains: Mapping[str, tuple[str, ...]], metric: str) -> dict[tuple[str, str], str]:
    """The word on each method and one that it contains: a tuned superset that ends higher needs more tuning."""
    words = {}
    for method, parts in contains.items():
        decided = decide(compare(runs, Sentence(f"{method} ends lower", method, parts, "lower", metric), "equivalents"))
        for part, word in zip(decided.rival, decided.verdict, strict=True):
            words[method, part] = "needs more tuning" if word == Verdict.FAILS else str(word)
    return words
