"""Complexities: exponents that the paper states, against slopes that were measured."""

import pandas as pd

from bilevel_book.ledger.claim import CONSTRUCTION, Claim, supported_if
from bilevel_book.ledger.experiments import no_run_decides
from bilevel_book.rates import CLAIMED, in_words
from bilevel_book.verdicts import Verdict


def has_rate(rates: dict[str, pd.DataFrame], method: str, exponent: float) -> Claim:
    """epsilon^-exponent means that the mean squared slope falls like T^(-1 / exponent), or faster: it is a bound."""
    text = f"{method}: about $\\epsilon^{{-{exponent:g}}}$ iterations and samples"
    if method not in rates:
        return no_run_decides(text, "no rate of this method is measured in the book")
    measure = (
        "slopes of the mean squared hypergradient against steps, over two decades and eight seeds, with 95 % "
        "intervals, beside controls to which no theory promises this rate. This is a report: a slope over a finite "
        "range can agree with a bound and cannot prove it"
    )
    return Claim(text, measure, in_words(rates[method], -1 / exponent), Verdict.UNTESTABLE)


def bound_below_its_kind() -> Claim:
    text = "the bound of FdeHBO is below those of the methods of its kind by a large margin"
    measure = "exponents of 1 / epsilon in Table 1 of the paper; what runs say about each stands with its row"
    ours, *others = (-1 / CLAIMED[method] for method in ("FdeHBO", "F2SA", "F3SA"))
    numbers = f"{ours:g} against " + " and ".join(f"{other:g}" for other in others)
    return Claim(text, measure, numbers, supported_if(ours < min(others)), CONSTRUCTION)


def samples_as_in_table(method: str, iterations: int, batch: int, said: int) -> Claim:
    """Exponents of 1 / epsilon: samples are iterations times batch."""
    text = f"{method}: $p^2\\epsilon^{{-{said}}}$ samples"
    measure = "compared with Table 1 of the same paper: iterations times batch"
    numbers = f"exponent {iterations} + {batch} = {iterations + batch}, said {said}"
    return Claim(text, measure, numbers, supported_if(iterations + batch == said))


def batch_of_order(method: str, exponent: int) -> Claim:
    reason = "what an analysis asks for, not what a run shows: the runs here have one batch size"
    return no_run_decides(f"{method}: batch of order $\\epsilon^{{-{exponent}}}$", reason)
