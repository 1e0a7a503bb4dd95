"""The protocol against itself: a method and the same method under another name, with other seeds, data and starts."""

import pandas as pd

from bilevel_book.verdicts.comparison import Sentence, compare
from bilevel_book.verdicts.deciding import decide
from bilevel_book.verdicts.sentences import LEVELS, complete, entries

# The method, the metric, and a sentence about both, for its axis.
FIRST = {"hyper-cleaning": ("FMBO", "train_loss", "C3"), "hyper-representation": ("FdeHBO", "upper_loss", "F1")}
GROUPS = {"stated": ("main", "again"), "tuned": ("tuned", "again_tuned")}


def against_itself(experiment: str, track: str) -> pd.DataFrame:
    """What `decide` says of the method and its twin, on every measure and at both horizons."""
    (method, metric, sentence), (group, twin) = FIRST[experiment], GROUPS[track]
    ours, theirs = complete(experiment, group).query("label == @method"), complete(experiment, twin)
    pairs = dict(zip(sorted(set(theirs.seed)), sorted(set(ours.seed)), strict=True))  # nothing but the order pairs them
    runs = pd.concat([ours, theirs.assign(label="itself", seed=theirs.seed.map(pairs))], ignore_index=True)
    found = []
    for measure in ("faster", "lower", "stable"):
        levels = LEVELS[metric] if measure == "faster" else ()
        asked = Sentence("A/A", method, ("itself",), measure, metric, levels)
        found.append(decide(compare(runs, asked, entries()[sentence][track]["axis"])).assign(measure=measure))
    return pd.concat(found, ignore_index=True)
