"""The stored runs of Chapter 11."""

import pandas as pd

from bilevel_book import stored

PUBLISHED = ("published", "second_seed", "switches")  # all with the steps of the paper


def all_runs() -> pd.DataFrame:
    """Every run of `experiments/released.toml`; the three groups with the steps of the paper are one, "published"."""
    table = stored.read("released")
    return table.assign(group=table.group.replace(dict.fromkeys(PUBLISHED, "published")))


def runs_of(group: str, label: str, seed: int = 0) -> pd.DataFrame:
    """The history of one run."""
    table = all_runs()
    known = table[(table.group == group) & (table.seed == seed)]
    if label not in set(known.label):
        labels = ", ".join(map(repr, known.label.unique()))
        raise ValueError(f"released/{group} has no label {label!r}; it has {labels}")
    return known[known.label == label]
