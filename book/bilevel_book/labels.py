"""The runs that the book's code speaks of, by names that are checked."""

import pandas as pd

from bilevel_book.experiments.checking import known

REPRESENTATION, CLEANING = "hyper-representation", "hyper-cleaning"


def select(table: pd.DataFrame, experiment: str, group: str, *labels: str) -> pd.DataFrame:
    """The rows of a group, or only those of some labels, which must be there."""
    own = table[table.group == known(group, table.group.unique(), f"group of {experiment}")]
    for label in labels:
        known(label, own.label.unique(), f"label in {experiment}, {group},")
    return own[own.label.isin(labels)] if labels else own
