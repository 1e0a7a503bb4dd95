"""The runs that come with the book."""

import pandas as pd

from bilevel_book.paths import RESULTS
from bilevel_core import experiments


def read(experiment: str, size: str = "full", group: str | None = None) -> pd.DataFrame:
    """The stored histories of an experiment, as `bilevel_core.experiments.read` gives them."""
    return experiments.read(experiment, RESULTS, size, group)
