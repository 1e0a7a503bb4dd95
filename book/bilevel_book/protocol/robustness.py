"""Would another reasonable rule have said the same? Each sentence under every axis, level, margin and track."""

from collections.abc import Iterable, Mapping
from itertools import product
from math import nan

import pandas as pd

from bilevel_book.protocol.comparison import Sentence, compare
from bilevel_book.protocol.measures import AXES
from bilevel_book.protocol.verdict import MARGIN, decide, overall

MARGINS = (0.02, 0.05, 0.1)


def robustness(tracks: Mapping[str, pd.DataFrame], sentences: Iterable[Sentence]) -> pd.DataFrame:
    """A row for each sentence, track, axis, level (nan: all that the sentence names) and margin, with its verdict."""
    rows = []
    for sentence, track, axis in product(sentences, tracks, AXES):
        compared = compare(tracks[track], sentence, axis)
        for level, margin in product((nan, *sentence.levels), MARGINS):
            chosen = compared[compared.level == level] if level in sentence.levels else compared
            rule = {"track": track, "axis": axis, "level": level, "margin": margin}
            rows.append({"sentence": sentence.text, **rule, "verdict": overall(decide(chosen, margin), sentence)})
    return pd.DataFrame(rows)


def stays(table: pd.DataFrame, track: str, axis: str = "equivalents", margin: float = MARGIN) -> pd.DataFrame:
    """For each sentence the verdict by one rule, and under how many of the other rules it stays."""
    own = (table.track == track) & (table.axis == axis) & table.level.isna() & (table.margin == margin)
    if not own.any():
        raise ValueError(f"no verdict for track {track!r}, axis {axis!r} and margin {margin}")
    verdict = table[own].set_index("sentence").verdict
    others = (table.verdict == table.sentence.map(verdict))[~own].groupby(table.sentence, sort=False)
    return pd.DataFrame({"verdict": verdict, "stays": others.sum(), "of": others.size()})
