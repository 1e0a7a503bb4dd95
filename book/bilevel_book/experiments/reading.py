"""Reading stored runs with the axes on which methods are compared."""

import os
from math import nan
from pathlib import Path

import pandas as pd

from bilevel_book.experiments.checking import find, parameters
from bilevel_book.experiments.files import Experiment, load
from bilevel_book.experiments.plan import FULL, Plan, Run, with_ends
from bilevel_book.paths import RESULTS
from bilevel_core.problem import BilevelProblem


def runs_of(
    experiment: str | os.PathLike[str],
    groups: str | list[str] | None = None,
    results: Path = RESULTS,
    size: str = FULL,
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
