"""Claims that no run decides, and why."""

from bilevel_book.ledger.claim import Claim
from bilevel_book.verdicts import Verdict


def no_run_decides(text: str, reason: str) -> Claim:
    return Claim(text, reason, "no number", Verdict.UNTESTABLE)


def came_first(text: str) -> Claim:
    return no_run_decides(text, "a statement about what others had done by 2023, which no run decides")


def batch_of_order(method: str, exponent: int) -> Claim:
    reason = "what an analysis asks for, not what a run shows: the runs here have one batch size"
    return no_run_decides(f"{method}: batch of order $\\epsilon^{{-{exponent}}}$", reason)
