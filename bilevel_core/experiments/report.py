"""What stored runs say: tables of where each method ended, and of how the settings of a grid did."""

from pathlib import Path

import numpy as np
import pandas as pd

from bilevel_core.experiments.files import load
from bilevel_core.experiments.storing import read


def mean_and_range(values: pd.Series, digits: int = 3) -> str:
    """mean (min to max), of the seeds."""
    return f"{values.mean():.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"


def ends(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """One row for each label: each column at the end, over the seeds, then runs, how many diverged, seconds a step.

    A diverged run counts with its last finite value.
    """
    rows = {}
    for label, runs in table.groupby("label", sort=False):
        last = runs.groupby("seed").last()  # of each column, the last value that is there
        row: dict[str, object] = {name: mean_and_range(last[name]) for name in columns}
        row |= {"runs": len(last), "diverged": int((last.stop == "diverged").sum())}
        if clock := _clock(table):
            row["s a step"] = f"{(last[clock] / last.step).mean():.2g}"
        rows[label] = row | {"steps": round(last.step.mean())}
    return pd.DataFrame(rows).T


def _clock(table: pd.DataFrame) -> str | None:
    """The column of time: measured, if that was the budget, or calibrated."""
    return next((name for name in ("cpu_seconds", "seconds") if name in table), None)


def last_quarter_median(table: pd.DataFrame, axis: str, column: str) -> pd.Series:
    """For each (label, seed): the median of `column` over the last quarter of the run on `axis`; inf if it diverged.

    The median, since one good or bad moment at the end should not decide.
    """

    def score(run: pd.DataFrame) -> float:
        end = run[run[axis] >= 0.75 * run[axis].max()][column]
        return np.inf if end.isna().any() else float(end.median())

    return table.groupby(["label", "seed"], sort=False)[[axis, column]].apply(score)


def tuning_scores(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Each setting of a grid, tried with one seed, by its score, best first: `last_quarter_median` of `column`."""
    scores = last_quarter_median(table, _clock(table) or "step", column).droplevel("seed").rename("score").reset_index()
    solvers = dict(zip(table.label, table.solver, strict=True))
    scores.insert(0, "solver", scores.label.map(solvers))
    return scores.sort_values(["solver", "score"], ignore_index=True)


def report(experiment: str, folder: Path, size: str) -> None:
    """Print a table for each group of runs that are stored in `folder`."""
    file = load(experiment)
    for group, runs in read(experiment, folder, size).groupby("group", sort=False):
        grid = file.sizes[size][str(group)].grid
        table = tuning_scores(runs, file.columns[0]) if grid else ends(runs, file.columns)
        print(f"\n{group}\n\n{table.to_string(index=not grid)}")
