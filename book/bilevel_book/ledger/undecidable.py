"""Claims that no run decides, and why."""

from bilevel_book.ledger.claim import Claim, Verdict
from bilevel_book.ledger.registry import judge


@judge
def undecidable(text: str, reason: str) -> Claim:
    return Claim(text, reason, "no number", Verdict.UNTESTABLE)


@judge
def came_first(text: str) -> Claim:
    return undecidable(text, "a statement about what others had done by 2023, which no run decides")


@judge
def batch_of_order(method: str, exponent: int) -> Claim:
    return undecidable(
        f"{method}: batch of order $\\epsilon^{{-{exponent}}}$",
        "what an analysis asks for, not what a run shows: the runs here have one batch size",
    )
