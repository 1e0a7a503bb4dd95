"""Names of groups and runs that the book's code refers to, checked against the experiment's file."""

from functools import cache

import pandas as pd

from bilevel_book.experiments import sweep
from bilevel_book.experiments.checking import known

REPRESENTATION, CLEANING = "hyper-representation", "hyper-cleaning"


@cache
def labels(experiment: str, group: str) -> tuple[str, ...]:
    """The labels of the runs in a group."""
    return tuple(dict.fromkeys(run.label for run in sweep(experiment, groups=[group])))


def label(experiment: str, group: str, name: str) -> str:
    """`name`, if there is a run of that label in that group."""
    return known(name, labels(experiment, group), f"label in {experiment}, {group},")


def select(table: pd.DataFrame, experiment: str, group: str, *names: str) -> pd.DataFrame:
    """The rows of a group, or only those of some labels."""
    chosen = [label(experiment, group, name) for name in names] or labels(experiment, group)
    return table[(table.group == group) & table.label.isin(chosen)]
