"""Stored histories as curves that can be compared: the value of each run at given marks, and their means."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bilevel_book.verdicts.student import quantile


def at_marks(table: pd.DataFrame, axis: str, column: str, marks: Sequence[float]) -> pd.DataFrame:
    """One row for each (label, seed), one column for each mark on `axis`: linear between the rows of the history.

    A run that diverged has no value after the last finite row, a run that ended none past its end.
    """

    def interpolate(run: pd.DataFrame) -> pd.Series:
        return pd.Series(np.interp(marks, run[axis], run[column], right=np.nan), index=marks)

    return table.groupby(["label", "seed"], sort=False)[[axis, column]].apply(interpolate)


def interval(values: pd.DataFrame) -> pd.DataFrame:
    """Over the seeds of each label: columns (mean, low, high), the 95 % interval of the mean by Student's t.

    A missing run leaves no mean; one seed has no interval, and its low and high are its mean.
    """
    groups = values.groupby("label", sort=False)
    mean, n = groups.agg(lambda column: column.mean(skipna=False)), groups.size()
    t = n.map(lambda size: quantile(0.975, size - 1) / np.sqrt(size) if size > 1 else 0.0)
    half = groups.std().fillna(0).mul(t, axis=0)
    return pd.concat({"mean": mean, "low": mean - half, "high": mean + half}, axis=1)
