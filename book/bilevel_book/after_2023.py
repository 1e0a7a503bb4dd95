"""The newer methods beside SOBA on three small problems: what the stored runs of `after_2023.toml` decide."""

import pandas as pd

from bilevel_book.experiments import load, runs_of, sweep
from bilevel_book.verdicts.judging import MARGIN, Curves, Verdict, compare, decide
from bilevel_book.verdicts.paper import curves
from bilevel_book.verdicts.selection import near_edges

EXPERIMENT, REFERENCE, PROBLEMS = "after-2023", "SOBA", ("quadratic", "penalties", "cleaning")
WORDS = {Verdict.SUPPORTED: "ahead", Verdict.CONTRADICTED: "behind"}


def runs(problem: str) -> pd.DataFrame:
    """The stored runs of a problem, labelled by method."""
    table = runs_of(EXPERIMENT, "tuned")
    method, own = (table.label.str.split(", ").str[k] for k in range(2))
    return table.assign(label=method)[own == problem]


def judged(problem: str, margin: float = MARGIN) -> pd.DataFrame:
    """A row for each method but SOBA: its score over that of SOBA, the interval, and the word."""
    by_label = {
        str(label): curves(own, "score", "equivalents") for label, own in runs(problem).groupby("label", sort=False)
    }
    reference = by_label.pop(REFERENCE)
    pairs = {label: compare(own, reference, "lower", _shared(own, reference)) for label, own in by_label.items()}
    decided = decide(pairs, margin)
    return decided.assign(word=[WORDS.get(verdict, str(verdict)) for verdict in decided.verdict])


def _shared(*methods: Curves) -> float:
    """The budget that all runs have, those that diverged aside."""
    return min(curve.at[-1] for own in methods for curve in own.values() if not curve.diverged)


def at_edges(problem: str) -> dict[str, list[str]]:
    """The settings that were chosen in the outer tenth of their box, by method."""
    boxes, found = load(EXPERIMENT).tables["boxes"], {}
    for run in sweep(EXPERIMENT, groups=["tuned"]):
        if run.label.endswith(f", {problem}"):
            near = near_edges(boxes[run.label].options, run.options)
            found[run.label.split(", ")[0]] = [f"{name} {end}" for name, end in near.items()]
    return {method: near for method, near in found.items() if near}
