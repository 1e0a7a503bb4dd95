"""Names of groups and runs that the book's code refers to, checked against the experiment's file."""

from functools import cache

import pandas as pd

from bilevel_book.experiments import sweep

REPRESENTATION, CLEANING = "hyper-representation", "hyper-cleaning"


@cache
def _groups(experiment: str) -> dict[str, tuple[str, ...]]:
    runs = sweep(experiment)
    return {run.group: tuple(dict.fromkeys(r.label for r in runs if r.group == run.group)) for run in runs}


def labels(experiment: str, group: str) -> tuple[str, ...]:
    """The labels of the runs in a group."""
    known = _groups(experiment)
    if group not in known:
        raise ValueError(f"{experiment} has no group {group!r}; it has {', '.join(known)}")
    return known[group]


def label(experiment: str, group: str, name: str) -> str:
    """`name`, if there is a run of that label in that group."""
    known = labels(experiment, group)
    if name not in known:
        raise ValueError(f"group {group} of {experiment} has no label {name!r}; it has {', '.join(map(repr, known))}")
    return name


def select(table: pd.DataFrame, experiment: str, group: str, *names: str) -> pd.DataFrame:
    """The rows of a group, or only those of some labels."""
    chosen = [label(experiment, group, name) for name in names] or labels(experiment, group)
    return table[(table.group == group) & table.label.isin(chosen)]
