"""Tuning alike: boxes of settings, trials in them, and the rules by which stored trials choose.

A box is a range { low, high } of an option, and a trial is a point of all boxes of a method. The rules are those of
experiments/protocol.md:

    widened    a box near whose edge the best trial lies is moved out
    ranked     the trials of each method, best first: the first few are run again with other seeds, the first is taken
"""

from collections.abc import Callable, Iterable
from copy import deepcopy
from functools import cache, reduce
from math import comb, inf, log
from typing import Any

import numpy as np
import pandas as pd
import torch

Options = dict[str, Any]
LOSS = "selection_loss"  # on data that no figure shows
EDGE = 0.1  # of a box, on a logarithmic scale


def at_trial(options: Options, trial: int) -> Options:
    """Options with every box { low, high } in them replaced by a number: together a point of a Sobol sequence.

    Equal numbers of boxes have the same points. A box is logarithmic, low^(1 - u) high^u to three digits, and gives
    integers if its ends are such.
    """
    u = iter(_sobol_point(max(1, len(boxes_of(options))), trial))
    return _replace_boxes(options, lambda name, box: _between(**box, u=next(u)))


@cache
def _sobol_point(dimensions: int, number: int) -> list[float]:
    engine = torch.quasirandom.SobolEngine(dimensions, scramble=True, seed=0)
    return engine.draw(number + 1, dtype=torch.float64)[number].tolist()


def boxes_of(options: Options) -> dict[str, Options]:
    """Every box in the options by its name; that of a box inside a schedule is like eta.c."""
    found: dict[str, Options] = {}
    _replace_boxes(options, found.__setitem__)
    return found


def inside(options: Options, name: str) -> Any:
    """What stands under a name as `boxes_of` gives it."""
    return reduce(lambda value, key: value[key], name.split("."), options)


def _replace_boxes(options: Options, replace: Callable[[str, Options], Any], path: str = "") -> Options:
    replaced = {}
    for key, value in options.items():
        if isinstance(value, dict) and value.keys() == {"low", "high"}:
            value = replace(path + key, value)
        elif isinstance(value, dict):
            value = _replace_boxes(value, replace, f"{path}{key}.")
        replaced[key] = value
    return replaced


def _between(low: Any, high: Any, u: float) -> float:
    numbers = all(type(end) in (int, float) for end in (low, high))
    if not numbers or not 0 < low < high:
        raise ValueError(f"a box needs numbers 0 < low < high, got low = {low!r}, high = {high!r}")
    value = low ** (1 - u) * high**u
    return round(value) if isinstance(low, int) and isinstance(high, int) else float(f"{value:.3g}")


def trial_label(method: str, number: int) -> str:
    return f"{method}, trial {number}"


def method_of(trial: str) -> str:
    """The label of the method of a trial, "label, trial k"."""
    return trial.rsplit(", trial ", 1)[0]


def scores(trials: pd.DataFrame, metric: str) -> pd.Series:
    """The score of each trial (label): over its seeds, the median of the median of the last quarter of its rows.

    A run that diverged has inf. A trial that lacks a seed that others have, as when it missed the finals, has no score.
    """
    seeds, score = set(trials.seed), {}
    for label, own in trials.dropna(subset=[metric]).groupby("label", sort=False):
        if set(own.seed) == seeds:
            score[label] = np.median([_end(run, metric) for _, run in own.groupby("seed")])
    return pd.Series(score)


def _end(run: pd.DataFrame, metric: str) -> float:
    values = run.sort_values("step")[metric]
    return np.inf if run.stop.iloc[0] == "diverged" else float(values.tail(max(1, len(values) // 4)).median())


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


def ranked(trials: pd.DataFrame, metric: str = LOSS) -> dict[str, list[int]]:
    """For each method its trials by score, the best first, of equal ones the earlier; one at least must not diverge."""
    score = scores(trials, metric)
    order = {}
    for method, own in score.groupby(score.index.map(method_of), sort=False):
        try:
            best(own)
        except ValueError as error:
            raise ValueError(f"{method}: {error}") from error
        order[str(method)] = [int(str(trial).rsplit(" ", 1)[1]) for trial in own.sort_values(kind="stable").index]
    return order


def near_edges(options: Options, point: Options) -> dict[str, str]:
    """The settings of a point that lie in the outer tenth of their box, and at which end."""
    boxes = boxes_of(options).items()
    where = {name: log(inside(point, name) / box["low"]) / log(box["high"] / box["low"]) for name, box in boxes}
    return {name: "low" if u < 0.5 else "high" for name, u in where.items() if min(u, 1 - u) <= EDGE + 1e-12}


def widened(solver: str, options: Options, point: Options) -> Options:
    """The options, each box moved out where the point lies in its outer tenth: by ten, integers by two, if allowed."""
    wider = deepcopy(options)
    for name, end in near_edges(options, point).items():
        inside(wider, name)[end] = _moved(solver, wider, name, end)
    return wider


def _moved(solver: str, options: Options, name: str, end: str) -> float:
    """An edge of a box, moved out as far as the method allows: eta <= 1, counts >= 1, and K <= inner in reverse."""
    box = inside(options, name)
    is_integer = isinstance(box["low"], int)
    least, most = 1 if is_integer else 0.0, 1.0 if name == "eta" else inf  # a schedule of eta has a cap of its own
    if solver == "reverse" and name == "inner":
        least = _end_of(options["K"], "high")
    if solver == "reverse" and name == "K":
        most = _end_of(options["inner"], "low")
    if end == "low":
        return max(box["low"] // 2 if is_integer else _rounded(box["low"] / 10), least)
    return min(box["high"] * 2 if is_integer else _rounded(box["high"] * 10), most)


def _end_of(value: Options | int, end: str) -> int:
    """An end of a box, or the number itself where it is fixed."""
    return value[end] if isinstance(value, dict) else value


def _rounded(value: float) -> float:
    """Without the last digits, where 0.003 / 10 is not 0.0003."""
    return float(f"{value:.12g}")
