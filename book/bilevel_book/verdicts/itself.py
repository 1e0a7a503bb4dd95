"""The protocol against itself: a method and the same method under another name, with other seeds, data and starts."""

import pandas as pd

from bilevel_book.verdicts.comparison import Sentence, compare
from bilevel_book.verdicts.deciding import decide
from bilevel_book.verdicts.sentences import complete, entries

FIRST = {"hyper-cleaning": ("FMBO", "train_loss"), "hyper-representation": ("FdeHBO", "upper_loss")}
GROUPS = {"stated": ("main", "again"), "tuned": ("tuned", "again_tuned")}


def against_itself(experiment: str, track: str) -> pd.DataFrame:
    """What `decide` says of the method and its twin, on every measure and at both horizons."""
    (method, metric), (group, twin) = FIRST[experiment], GROUPS[track]
    ours, theirs = complete(experiment, group).query("label == @method"), complete(experiment, twin)
    pairs = dict(zip(sorted(set(theirs.seed)), sorted(set(ours.seed)), strict=True))  # nothing but the order pairs them
    runs = pd.concat([ours, theirs.assign(label="itself", seed=theirs.seed.map(pairs))], ignore_index=True)
    praised = [entry for entry in entries().values() if method in entry["first"]]
    axis, levels = next(
        (e[track]["axis"], levels) for e in praised for _, name, levels in e["measures"] if name == metric
    )
    asked = {
        measure: Sentence(
            "A/A", method, ("itself",), measure, metric, levels=tuple(levels) if measure == "faster" else ()
        )
        for measure in ("faster", "lower", "stable")
    }
    found = [decide(compare(runs, sentence, axis)).assign(measure=measure) for measure, sentence in asked.items()]
    return pd.concat(found, ignore_index=True)
