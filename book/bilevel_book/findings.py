"""The findings of the front page, from the verdicts of the claims ledger.

findings.toml holds the words for each outcome. Nothing there says which outcome it will be.
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("findings.toml")
SHORT = 60  # longer numbers are left to the ledger


@dataclass(frozen=True)
class Finding:
    """Sections of the ledger, and what to say where most, some or few of their decided claims hold."""

    about: str
    sections: list[str]
    most: str
    some: str
    few: str
    example: str  # the passage to take an example from, if a claim of it does not hold

    def headline(self, holds: int, fails: int) -> str:
        if 4 * holds >= 3 * (holds + fails):
            return self.most
        return self.some if 2 * holds >= holds + fails else self.few


FINDINGS = tuple(Finding(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["finding"])


def told(finding: Finding, ledger: Sequence[tuple[Any, Sequence[Any]]]) -> str:
    """The headline, the counts, and a claim that does not hold: as Markdown."""
    rows = [(passage, claim) for passage, claims in ledger if passage.section in finding.sections for claim in claims]
    rows = [(passage, claim) for passage, claim in rows if not claim.apart]
    claims = {(claim.text, claim.numbers): claim for _, claim in rows}.values()  # said twice is counted once
    holds = sum(claim.verdict.startswith("holds") for claim in claims)
    fails = sum(claim.verdict == "does not hold" for claim in claims)
    alike = sum(claim.verdict == "alike" for claim in claims)
    left = len(claims) - holds - fails - alike
    counts = f"{holds} of {len(claims)} claims about {finding.about} hold, {fails} do not"
    same = f", {alike} found no difference" if alike else ""
    rest = f", and {left} cannot be decided here" if left else ""
    return f"**{finding.headline(holds, fails + alike)}** {counts}{same}{rest}.{_example(finding, rows)}"


def _example(finding: Finding, rows: Sequence[tuple[Any, Any]]) -> str:
    failed = [(passage.id != finding.example, claim) for passage, claim in rows if claim.verdict == "does not hold"]
    if not failed:
        return ""
    _, claim = min(failed, key=lambda row: row[0])  # the first of its passage, or the first of all
    numbers = f" (found: {claim.numbers})" if len(claim.numbers) <= SHORT else ""
    return f" One that does not: “{claim.text}”{numbers}."
