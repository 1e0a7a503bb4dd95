"""The newer methods beside SOBA on three small problems: what the stored runs of `after_2023.toml` decide."""

import pandas as pd

from bilevel_book.experiments import load, runs_of, sweep
from bilevel_book.verdicts.comparison import Sentence, compare
from bilevel_book.verdicts.deciding import MARGIN, Verdict, decide
from bilevel_book.verdicts.selection import near_edges

EXPERIMENT, REFERENCE, PROBLEMS = "after-2023", "SOBA", ("quadratic", "penalties", "cleaning")
WORDS = {Verdict.HOLDS: "ahead", Verdict.ALIKE: "alike", Verdict.UNDECIDED: "undecided", Verdict.FAILS: "behind"}


def runs(problem: str) -> pd.DataFrame:
    """The stored runs of a problem, labelled by method."""
    table = runs_of(EXPERIMENT, "tuned")
    method, own = (table.label.str.split(", ").str[k] for k in range(2))
    return table.assign(label=method)[own == problem]


def judged(problem: str, margin: float = MARGIN) -> pd.DataFrame:
    """A row for each method but SOBA at the end of the budget: its score over that of SOBA, the interval, the word."""
    table = runs(problem)
    rivals = tuple(label for label in table.label.unique() if label != REFERENCE)
    sentence = Sentence("SOBA ends lower", REFERENCE, rivals, "lower", "score")
    decided = decide(compare(table, sentence, "equivalents"), margin)
    # What is judged is SOBA against each rival; what is told is the rival against SOBA.
    turned = {Verdict.HOLDS: Verdict.FAILS, Verdict.FAILS: Verdict.HOLDS}
    verdict = decided.verdict.map(lambda word: turned.get(word, word))
    ratio = {"mean": -decided["mean"], "low": 1 / decided.high, "high": 1 / decided.low}
    told = decided.assign(**ratio, verdict=verdict, word=verdict.map(WORDS))
    return told[told.horizon == "end"].reset_index(drop=True)


def at_edges(problem: str) -> dict[str, list[str]]:
    """The settings that were chosen in the outer tenth of their box, by method."""
    boxes, found = load(EXPERIMENT).tables["boxes"], {}
    for run in sweep(EXPERIMENT, groups=["tuned"]):
        if run.label.endswith(f", {problem}"):
            near = near_edges(boxes[run.label].options, run.options)
            found[run.label.split(", ")[0]] = [f"{name} {end}" for name, end in near.items()]
    return {method: near for method, near in found.items() if near}
