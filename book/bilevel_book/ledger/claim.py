"""One claim of the paper with its verdict: what every judge returns."""

from dataclasses import dataclass

from bilevel_book.verdicts import Verdict

# Claims that are shown and not counted, because they say nothing about whether the paper is right.
OWN_CODE, CONSTRUCTION = "about this book's code", "true by construction"
OWN_QUESTION, TUNED = "a question of ours", "the same sentence, tuned alike"


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was measured, the numbers, the verdict; why it is not counted; where it says so; the
    hash of the runs that decide it, and the command that prints it, where there are such."""

    text: str
    measure: str
    numbers: str
    verdict: Verdict
    apart: str = ""
    where: str = ""
    runs: str = ""
    command: str = ""


def holds_if(condition: bool) -> Verdict:
    """The verdict on a claim that is either true or not."""
    return Verdict.HOLDS if condition else Verdict.FAILS


def listed(numbers: list[int] | list[float] | tuple[float, ...]) -> str:
    """Numbers with three digits, separated by commas."""
    return ", ".join(f"{number:.3g}" for number in numbers)
