"""Stored histories as curves that can be compared: the value of each run at given marks, and their means."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bilevel_book.verdicts.student import interval


def at_marks(table: pd.DataFrame, axis: str, column: str, marks: Sequence[float]) -> pd.DataFrame:
    """A row for each (label, seed), a column for each mark: linear between its rows, nan after the last finite one."""

    def interpolate(run: pd.DataFrame) -> pd.Series:
        return pd.Series(np.interp(marks, run[axis], run[column], right=np.nan), index=marks)

    return table.groupby(["label", "seed"], sort=False)[[axis, column]].apply(interpolate)


def mean_curves(values: pd.DataFrame) -> pd.DataFrame:
    """Over the seeds of each label: columns (mean, low, high), the 95 % interval of the mean by Student's t."""
    found = {label: interval(own) for label, own in values.groupby("label", sort=False)}
    parts = zip(("mean", "low", "high"), zip(*found.values(), strict=True), strict=True)
    return pd.concat({name: pd.DataFrame(rows, index=pd.Index(found, name="label")) for name, rows in parts}, axis=1)
