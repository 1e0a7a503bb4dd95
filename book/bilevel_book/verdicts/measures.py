"""What one run shows: the budget it needs for a level, the value where it settles, its largest rise.

A reading is a number, smaller is better; inf if the run diverged before the horizon or never reached the level, which
ranks last; nan if it cannot be read, for it has no row of its own at some mark, or starts below the level.

Methods that are compared are read at the same marks, MARKS equal parts of the budget that they share, where a run
shows its last row since the mark before. So a run with few rows is never taken for a calm one.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

AXES = {"step": "steps", "equivalents": "gradient equivalents", "seconds": "calibrated seconds"}
MARKS = 24  # 6 of them in the last quarter; 16 up to two thirds of the budget, and 4 in the last quarter of those
HORIZONS = {"two thirds": 2 * MARKS // 3, "end": MARKS}  # in marks
Measure = Callable[["Curve", np.ndarray], float]


@dataclass(frozen=True)
class Curve:
    """A metric of one run along one axis, at the rows that have it."""

    at: np.ndarray
    value: np.ndarray
    diverged: bool

    def rows_until(self, marks: np.ndarray) -> np.ndarray:
        """How many rows lie at or before each mark; both are products of floats, so equal means nearly equal."""
        return np.searchsorted(self.at, marks * (1 + 1e-9), side="right")

    def diverged_by(self, mark: float) -> bool:
        return self.diverged and bool(self.at[-1] < mark)

    def at_marks(self, marks: np.ndarray) -> np.ndarray:
        return self.value[self.rows_until(marks) - 1]

    def read(self, measure: Measure, marks: np.ndarray, last: int | None = None) -> float:
        """The measure up to the mark with the number `last`, or inf or nan, as above."""
        until = marks[:last]
        if self.diverged_by(until[-1]):
            return np.inf
        needed = until if self.diverged_by(marks[-1]) else marks  # what has too few rows later on is not read at all
        rows = self.rows_until(np.concatenate(([0.0], needed)))
        return measure(self, until) if (np.diff(rows) > 0).all() else np.nan


Curves = dict[str, dict[int, Curve]]  # by label and seed


def curves(runs: pd.DataFrame, axis: str, metric: str, labels: Iterable[str], least: float = 0.0) -> Curves:
    """The runs of some labels, no value below `least`; rows without one, as the last of a diverged run, go."""
    columns = ["label", "seed", "stop", axis, metric]
    if missing := set(columns) - set(runs.columns):
        raise ValueError(f"the runs have no column {', '.join(sorted(missing))}; they have {', '.join(map(str, runs))}")
    if (runs[metric] < 0).any():
        raise ValueError(f"{metric} has values below 0, which have no log ratio; for an accuracy give 1 - accuracy")
    found: Curves = {label: {} for label in labels}
    if unknown := found.keys() - set(runs.label):
        raise ValueError(f"no run is labelled {', '.join(sorted(unknown))}; there are {', '.join(runs.label.unique())}")
    rows = runs.loc[runs.label.isin(found), columns].dropna(subset=[axis, metric]).sort_values(axis, kind="stable")
    for label in found:
        for seed, run in rows[rows.label == label].groupby("seed"):
            value, diverged = np.maximum(run[metric].to_numpy(float), least), run.stop.iloc[0] == "diverged"
            found[label][int(str(seed))] = Curve(run[axis].to_numpy(float), value, diverged)
    return found


def marks_of(found: Curves) -> np.ndarray:
    """The marks up to the budget that all runs share, those that diverged aside; at inf if all of them did."""
    ends = (curve.at[-1] for runs in found.values() for curve in runs.values() if not curve.diverged)
    return min(ends, default=np.inf) * np.arange(1, MARKS + 1) / MARKS


def lower(curve: Curve, marks: np.ndarray) -> float:
    """The median over the last quarter of the marks: one good or bad moment at the end does not decide."""
    return float(np.median(curve.at_marks(marks)[-(len(marks) // 4) :]))


def stable(curve: Curve, marks: np.ndarray) -> float:
    """The largest ratio to the running minimum, after the first tenth of the marks; 1 if it never rises."""
    value = curve.at_marks(marks)
    return float((value / np.minimum.accumulate(value))[marks > 0.1 * marks[-1]].max())


def faster(level: float) -> Measure:
    """The budget at which the running minimum of the rows first meets the level, linear between rows; inf if never."""

    # Linear, since crossings rounded up to a row would often be the same on every seed, and their interval too short.
    def crossing(curve: Curve, marks: np.ndarray) -> float:
        lowest = np.minimum.accumulate(curve.value[: curve.rows_until(marks[-1:])[0]])
        row = int((lowest > level).sum())  # the first at or below the level
        if row in (0, len(lowest)):
            return np.inf if row else np.nan
        share = (lowest[row - 1] - level) / (lowest[row - 1] - lowest[row])
        return float(curve.at[row - 1] + share * (curve.at[row] - curve.at[row - 1]))

    return crossing
