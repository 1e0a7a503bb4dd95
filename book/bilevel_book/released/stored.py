"""The stored runs of Chapter 11, and what a switch changes in them.

    r_s = log(what is read with the switch / what is read without it)        on seed s, both at the same step

The mean of r over the seeds has an interval by Student's t, and a word by the rules of the protocol, but at the end of
the budget alone: these runs are too short to be read at 24 marks.
"""

import numpy as np
import pandas as pd

from bilevel_book.protocol.sentences import complete
from bilevel_book.protocol.verdict import Verdict, decide

WORDS = {Verdict.HOLDS: "lower", Verdict.FAILS: "higher", Verdict.ALIKE: "alike", Verdict.UNDECIDED: "undecided"}
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


def against(read: pd.DataFrame, unchanged: str = "correct") -> pd.DataFrame:
    """For each other row of `read`: the ratio to the unchanged one, beside what `decide` says of it.

    `word` is lower, higher, alike or undecided. Holm's rule shares the 5 % among the rows, and the interval from low to
    high is the one by which a row was judged.
    """
    r = np.log(read.drop(index=unchanged) / read.loc[unchanged])
    n, none = r.shape[1], dict.fromkeys(("first_diverged", "rival_diverged", "both_diverged"), 0)
    error = r.std(axis=1, ddof=1) / np.sqrt(n)
    judged = decide(pd.DataFrame({"rival": r.index, "n": n, "mean": r.mean(axis=1), "error": error} | none))
    return judged.assign(ratio=np.exp(judged["mean"]), word=judged.verdict.map(WORDS))
