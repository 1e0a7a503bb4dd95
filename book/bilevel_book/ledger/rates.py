"""Complexities: exponents that the paper states, against slopes that were measured."""

import pandas as pd

from bilevel_book.ledger.claim import CONSTRUCTION, Claim, holds_if
from bilevel_book.ledger.experiments import no_run_decides
from bilevel_book.rates import CLAIMED, EARLIER
from bilevel_book.verdicts.cells import Outcome, verdict_on_rate

PLURALS = {
    Outcome.SUPPORTS: "support", Outcome.NOTHING: "prove nothing", Outcome.AGAINST: "speak against",
    Outcome.SILENT: "say nothing",
}  # fmt: skip


def has_rate(cells: pd.DataFrame, method: str, exponent: float) -> Claim:
    """epsilon^-exponent means that the mean squared slope falls like T^(-1 / exponent), or faster: it is a bound."""
    text, rows = f"{method}: about $\\epsilon^{{-{exponent:g}}}$ iterations and samples", cells[cells.method == method]
    if rows.empty:
        return no_run_decides(text, "no rate of this method is measured in the book")
    measure = (
        "slopes of the mean squared hypergradient against steps, on two problems with three noises, four starts and "
        "eight seeds, beside a negative control, SOBA with the same steps of x and of the lower level, which no theory "
        "promises this rate; by the rule of the protocol"
    )
    said, verdict, earlier = rows.outcome.value_counts(), verdict_on_rate(rows.outcome), verdict_on_rate(rows.earlier)
    counts = ", ".join(f"{said.get(word, 0)} {plural}" for word, plural in PLURALS.items())
    robust = "the verdict stays" if earlier == verdict else f"the verdict would be “{earlier}”"
    numbers = f"of {len(rows)} cells {counts}; with slopes from T = {EARLIER} on {robust}"
    return Claim(text, measure, numbers, verdict)


def bound_below_its_kind() -> Claim:
    text = "the bound of FdeHBO is below those of the methods of its kind by a large margin"
    measure = "exponents of 1 / epsilon in Table 1 of the paper; what runs say about each stands with its row"
    ours, *others = (-1 / CLAIMED[method] for method in ("FdeHBO", "F2SA", "F3SA"))
    numbers = f"{ours:g} against " + " and ".join(f"{other:g}" for other in others)
    return Claim(text, measure, numbers, holds_if(ours < min(others)), CONSTRUCTION)


def samples_as_in_table(method: str, iterations: int, batch: int, said: int) -> Claim:
    """Exponents of 1 / epsilon: samples are iterations times batch."""
    text = f"{method}: $p^2\\epsilon^{{-{said}}}$ samples"
    measure = "compared with Table 1 of the same paper: iterations times batch"
    numbers = f"exponent {iterations} + {batch} = {iterations + batch}, said {said}"
    return Claim(text, measure, numbers, holds_if(iterations + batch == said))


def batch_of_order(method: str, exponent: int) -> Claim:
    reason = "what an analysis asks for, not what a run shows: the runs here have one batch size"
    return no_run_decides(f"{method}: batch of order $\\epsilon^{{-{exponent}}}$", reason)
