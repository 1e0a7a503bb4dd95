"""Claims of the paper with their verdicts."""

from dataclasses import dataclass

from bilevel_book.verdicts.deciding import Verdict

__all__ = ["Claim", "Verdict", "decided"]


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was measured, the numbers, the verdict; where it says so; why it is not counted."""

    text: str
    measure: str
    numbers: str
    verdict: Verdict
    where: str = ""
    apart: str = ""


def decided(holds: bool) -> Verdict:
    """The verdict on a claim that is either true or not."""
    return Verdict.HOLDS if holds else Verdict.FAILS
