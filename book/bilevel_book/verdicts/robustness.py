"""Would another reasonable rule have said the same? Each sentence under every axis, level, margin and track.

A rule under which no rival can be read, for want of rows or of levels, says nothing, and is not counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import product
from math import nan

import pandas as pd

from bilevel_book.verdicts.comparison import Sentence, compare
from bilevel_book.verdicts.deciding import MARGIN, decide, overall
from bilevel_book.verdicts.measures import AXES

MARGINS = (0.02, 0.05, 0.1)


def robustness(tracks: Mapping[str, tuple[pd.DataFrame, Iterable[Sentence]]]) -> pd.DataFrame:
    """Of each track its runs and sentences; a row for each sentence, track, axis, level and margin, with the verdict.

    The level is nan where the sentence is judged by all of its levels; `read` says whether any rival could be.
    """
    rows = []
    for track, (runs, sentences) in tracks.items():
        for sentence, axis in product(sentences, AXES):
            for level in (nan, *sentence.levels):
                chosen = replace(sentence, levels=(level,)) if level in sentence.levels else sentence
                compared = compare(runs, chosen, axis)
                read = not compared.empty and bool(compared["mean"].notna().any())
                for margin in MARGINS:
                    verdict = overall(decide(compared, margin), sentence)
                    rule = {"track": track, "axis": axis, "level": level, "margin": margin}
                    rows.append({"sentence": sentence.text, **rule, "verdict": verdict, "read": read})
    return pd.DataFrame(rows)


def stays(table: pd.DataFrame, track: str, axis: str = "equivalents", margin: float = MARGIN) -> pd.DataFrame:
    """For each sentence the verdict by one rule, and under how many of the others that can be read it stays."""
    own = (table.track == track) & (table.axis == axis) & table.level.isna() & (table.margin == margin)
    if not own.any():
        raise ValueError(f"no verdict for track {track!r}, axis {axis!r} and margin {margin}")
    verdict = table[own].set_index("sentence").verdict
    others = (table.verdict == table.sentence.map(verdict))[~own & table.read].groupby(table.sentence)
    counted = pd.DataFrame({"stays": others.sum(), "of": others.size()}).reindex(verdict.index, fill_value=0)
    return counted.assign(verdict=verdict)
