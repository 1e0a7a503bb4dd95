"""The runs that come with the book."""

import pandas as pd

from bilevel_book import experiments
from bilevel_book.paths import RESULTS

SIZE = "full"  # smaller ones are for trying


def read(experiment: str, group: str | None = None) -> pd.DataFrame:
    """The stored histories of an experiment, as `bilevel_book.experiments.read` gives them."""
    return experiments.read(experiment, RESULTS, SIZE, group)
