"""The newer methods beside SOBA on three small problems: what the stored runs of `after_2023.toml` decide."""

import pandas as pd

from bilevel_book import stored
from bilevel_book.protocol.comparison import Sentence, compare
from bilevel_book.protocol.selection import SIZE
from bilevel_book.protocol.verdict import Verdict, decide
from bilevel_core.experiments import load

EXPERIMENT, REFERENCE, PROBLEMS = "after-2023", "SOBA", ("quadratic", "penalties", "cleaning")
# The sentence that is judged is that SOBA ends lower; the words here are said of its rival.
WORDS = {Verdict.HOLDS: "behind", Verdict.FAILS: "ahead", Verdict.ALIKE: "alike", Verdict.UNDECIDED: "undecided"}


def runs(problem: str, group: str = "tuned") -> pd.DataFrame:
    """The stored runs of a problem, labelled by method, with gradient equivalents at the measured prices."""
    table, prices = stored.read(EXPERIMENT, SIZE, group), load(EXPERIMENT).calibration["prices"]
    method, own = (table.label.str.split(", ").str[k] for k in range(2))
    spent = table.gradients + prices["Hv"] * table.Hv + prices["Jv"] * table.Jv
    return table.assign(label=method, equivalents=spent)[own == problem]


def judged(problem: str) -> pd.DataFrame:
    """A row for each rival of SOBA at the end of the budget: SOBA's score over its own, the interval, and a word."""
    table = runs(problem)
    rivals = tuple(label for label in table.label.unique() if label != REFERENCE)
    decided = decide(compare(table, Sentence("SOBA ends lower", REFERENCE, rivals, "lower", "score"), "equivalents"))
    return decided[decided.horizon == "end"].assign(word=decided.verdict.map(WORDS)).reset_index(drop=True)
