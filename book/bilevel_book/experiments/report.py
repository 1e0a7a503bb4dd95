"""What stored runs say: their rows with the axes on which methods are compared, and tables of where each ended."""

from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bilevel_book.experiments.checking import find, known, parameters
from bilevel_book.experiments.files import Experiment, load
from bilevel_book.experiments.plan import FULL, MissingTrials, Plan, Run, with_ends
from bilevel_book.paths import RESULTS, Named
from bilevel_core.problem import BilevelProblem

REPRESENTATION, CLEANING = "hyper-representation", "hyper-cleaning"


def runs_of(
    experiment: Named, groups: str | list[str] | None = None, results: Path = RESULTS, size: str = FULL
) -> pd.DataFrame:
    """The stored runs of some groups of an experiment, by default of all, in the order of its file.

    To what `read` gives it adds the columns group, solver, stop and diverged_at, for each accuracy the error, and,
    where the experiment is calibrated, two axes beside step: equivalents = gradients + their prices x (Hv, Jv), of
    batches as large as the experiment's own (nan for a method on the whole data), and seconds = step x the median cost
    of a step. Every run must be stored with the settings that the file has today, since half of them decide nothing.
    """
    plan = Plan(load(experiment), size, results)
    chosen = [groups] if isinstance(groups, str) else groups or [*plan.groups]
    for group in chosen:
        if missing := plan.missing(group):
            raise FileNotFoundError(plan.told(group, missing))
    return pd.concat([with_axes(plan, group) for group in chosen], ignore_index=True)


def with_axes(plan: Plan, group: str) -> pd.DataFrame:
    """The same of one group, as far as its runs are stored."""
    file, costs = plan.file, plan.file.calibration.get("steps", {})
    priced_as, missing = plan.groups[group].priced_as, plan.missing(group)
    about = [
        (group, run.label, run.seed, _batches(run, file), costs.get(priced_as(run.label), {}).get("median", nan))
        for run in plan.runs(group)
        if run not in missing
    ]
    order = pd.DataFrame(about, columns=["group", "label", "seed", "batches", "cost"])
    table = order.merge(with_ends(file.name, group, plan.results), on=["label", "seed"], how="left")
    if file.calibration:
        prices = file.calibration["prices"]
        table["equivalents"] = (table.gradients + sum(prices[name] * table[name] for name in prices)) * table.batches
        table["seconds"] = table.step * table.cost
    errors = {name.replace("accuracy", "error"): 1 - table[name] for name in table if name.endswith("accuracy")}
    return table.assign(**errors).drop(columns=["batches", "cost"])


def _batches(run: Run, file: Experiment) -> float:
    """How many batches of the experiment's own size a call of this run looks at; nan if it is the whole data."""
    usual = parameters(find(file.problem, BilevelProblem)).get("batch_size")
    if usual is None or run.options.get("full"):
        return nan if usual else 1.0
    own, shared = (options.get("batch_size", usual.default) for options in (run.problem_options, file.options))
    return float(own / shared)


def select(table: pd.DataFrame, experiment: str, group: str, *labels: str) -> pd.DataFrame:
    """The rows of a group, or only those of some labels, which must be there."""
    own = table[table.group == known(group, table.group.unique(), f"group of {experiment}")]
    for label in labels:
        known(label, own.label.unique(), f"label in {experiment}, {group},")
    return own[own.label.isin(labels)] if labels else own


def mean_and_range(values: pd.Series, digits: int = 3) -> str:
    """mean (min to max), of the seeds."""
    return f"{values.mean():.{digits}f} ({values.min():.{digits}f} to {values.max():.{digits}f})"


def ends(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """A row for each label: each column at its last finite value, over the seeds; how many runs, diverged, steps."""
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
    """For each (label, seed): the median of `column` over the last quarter of the run on `axis`; inf if it diverged."""

    def score(run: pd.DataFrame) -> float:
        end = run[run[axis] >= 0.75 * run[axis].max()][column]
        return np.inf if end.isna().any() else float(end.median())

    return table.groupby(["label", "seed"], sort=False)[[axis, column]].apply(score)


def report(experiment: str, results: Path = RESULTS, size: str = FULL, **options: Any) -> None:
    """Print a table for each group of runs that are stored in `results`, and how many of a group are missing."""
    plan = Plan(load(experiment, **options), size, results)
    for group in plan.groups:
        try:
            runs, missing = plan.runs(group), plan.missing(group)
        except MissingTrials as error:
            print(f"\n{group}: {error}")
            continue
        print(f"\n{group}" + f": {len(missing)} of {len(runs)} runs are not stored" * bool(missing))
        for run in missing:
            if (found := run.stored_in(results)) is not None:
                print(f"{run.name} is left out: its rows are {'of other settings' if found.is_intact else 'damaged'}")
        if len(missing) < len(runs):
            table = with_axes(plan, group)
            columns = [
                known(name, table.columns, f"column of {plan.file.name}, {group},") for name in plan.file.columns
            ]
            print(f"\n{ends(table, columns).to_string()}")
