"""The stored runs of Chapter 11: of a label, of all switches, and at the step at which all of them can be read."""

import pandas as pd

from bilevel_book.verdicts.sentences import complete

HALF = 25  # the step at which all switches can be read with the steps of the paper
RENOISED = "labels re-noised"


def runs_of(group: str, label: str) -> pd.DataFrame:
    """The histories of a label, all seeds."""
    table = complete("released", group)
    if label not in set(table.label):
        labels = ", ".join(map(repr, table.label.unique()))
        raise ValueError(f"released/{group} has no label {label!r}; it has {labels}")
    return table[table.label == label]


def curve(group: str, label: str, column: str) -> pd.DataFrame:
    """A row for each stored step and a column for each seed."""
    return runs_of(group, label).pivot(index="step", columns="seed", values=column)


def readings(group: str, column: str, step: int | None = None) -> pd.DataFrame:
    """A row for each switch and a column for each seed: a metric at a step, by default the last."""
    table = complete("released", group)
    rows = table[table.step == (table.step.max() if step is None else step)]
    return rows.pivot(index="label", columns="seed", values=column).loc[list(table.label.unique())]


def at_the_published_step(column: str) -> pd.DataFrame:
    """The switches of stocBiO after `HALF` steps; re-noised labels are those of the longer runs at that time."""
    switches, longer = readings("switches", column), readings("published", column, HALF)
    return pd.concat([switches, longer.loc[[RENOISED], switches.columns]])
