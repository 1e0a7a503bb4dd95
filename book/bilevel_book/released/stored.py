"""The stored runs of Chapter 11: of a label, of all switches, and at the step at which all of them can be read."""

import pandas as pd

from bilevel_book.experiments import runs_of
from bilevel_book.experiments.report import select

HALF = 25  # the step at which all switches can be read with the steps of the paper
RENOISED = "labels re-noised"


def curve(group: str, label: str, column: str) -> pd.DataFrame:
    """A row for each stored step and a column for each seed."""
    rows = select(runs_of("released", group), "released", group, label)
    return rows.pivot(index="step", columns="seed", values=column)


def readings(group: str, column: str, step: int | None = None) -> pd.DataFrame:
    """A row for each switch and a column for each seed: a metric at a step, by default the last."""
    table = runs_of("released", group)
    rows = table[table.step == (table.step.max() if step is None else step)]
    return rows.pivot(index="label", columns="seed", values=column).loc[list(table.label.unique())]


def at_the_published_step(column: str) -> pd.DataFrame:
    """The switches of stocBiO after `HALF` steps; re-noised labels are those of the longer runs at that time."""
    switches, longer = readings("switches", column), readings("published", column, HALF)
    return pd.concat([switches, longer.loc[[RENOISED], switches.columns]])
