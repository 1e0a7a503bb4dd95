"""What stored runs say: a table of where each method ended."""

from pathlib import Path

import numpy as np
import pandas as pd

from bilevel_book.experiments.files import load
from bilevel_book.experiments.plan import FULL, MissingTrials, Plan
from bilevel_book.experiments.reading import with_axes
from bilevel_book.paths import RESULTS


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
        if "seconds" in table:
            row["s a step"] = f"{(last.seconds / last.step).mean():.2g}"
        rows[label] = row | {"steps": round(last.step.mean())}
    return pd.DataFrame(rows).T


def last_quarter_median(table: pd.DataFrame, axis: str, column: str) -> pd.Series:
    """For each (label, seed): the median of `column` over the last quarter of the run on `axis`; inf if it diverged.

    The median, since one good or bad moment at the end should not decide.
    """

    def score(run: pd.DataFrame) -> float:
        end = run[run[axis] >= 0.75 * run[axis].max()][column]
        return np.inf if end.isna().any() else float(end.median())

    return table.groupby(["label", "seed"], sort=False)[[axis, column]].apply(score)


def report(experiment: str, results: Path = RESULTS, size: str = FULL) -> None:
    """Print a table for each group of runs that are stored in `results`, and how many of a group are missing."""
    plan = Plan(load(experiment), size, results)
    for group in plan.groups:
        try:
            runs, missing = plan.runs(group), plan.missing(group)
        except MissingTrials as error:
            print(f"\n{group}: {error}")
            continue
        print(f"\n{group}" + f": {len(missing)} of {len(runs)} runs are not stored" * bool(missing))
        if len(missing) < len(runs):
            print(f"\n{ends(with_axes(plan, group), plan.file.columns).to_string()}")
