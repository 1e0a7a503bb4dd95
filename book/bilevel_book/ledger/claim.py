"""One claim of the paper with its verdict: what every judge returns."""

from dataclasses import dataclass
from enum import StrEnum

from bilevel_book.verdicts import Verdict

# Claims that are shown and not counted, because they say nothing about whether the paper is right.
OWN_CODE, CONSTRUCTION = "about this book's code", "true by construction"
OWN_QUESTION, TUNED = "a question of ours", "the same sentence, tuned alike"


class Printed(StrEnum):
    """What is found about a statement of the theory that is not right as it stands."""

    FALSE = "false as printed"  # there is a counterexample inside the assumptions
    GAP = "proof has a gap"


@dataclass(frozen=True)
class Claim:
    """What the paper says, what was measured, the numbers, the verdict; why it is not counted; where it says so; the
    hash of the runs that decide it, and the command that prints it, where there are such."""

    text: str
    measure: str
    numbers: str
    verdict: Verdict | Printed
    apart: str = ""
    where: str = ""
    runs: str = ""
    command: str = ""


def supported_if(condition: bool) -> Verdict:
    """The verdict on a claim that is either true or not."""
    return Verdict.SUPPORTED if condition else Verdict.CONTRADICTED


def true_if(condition: bool) -> Verdict | Printed:
    """The same on a statement of the theory."""
    return Verdict.SUPPORTED if condition else Printed.FALSE


def listed(numbers: list[int] | list[float] | tuple[float, ...]) -> str:
    """Numbers with three digits, separated by commas."""
    return ", ".join(f"{number:.3g}" for number in numbers)
