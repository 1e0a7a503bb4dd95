"""The findings of the front page, from the verdicts of the claims ledger.

findings.toml holds the words for each outcome. Nothing there says which outcome it will be.
"""

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bilevel_book.ledger.claim import Claim, Verdict
from bilevel_book.ledger.claims import Passage, different

FILE = Path(__file__).with_name("findings.toml")
SHORT = 60  # longer numbers are left to the ledger


@dataclass(frozen=True)
class Finding:
    """Sections of the ledger, and what to say where most, some or few of their claims hold, or most are not decided."""

    about: str
    sections: list[str]
    most: str
    some: str
    few: str
    open: str
    example: str  # the passage to take an example from, if a claim of it does not hold

    def headline(self, holds: int, left: int, every: int) -> str:
        """ "Most" is a share of all claims, for what is not decided does not hold; "few" one of those that are."""
        if 4 * holds >= 3 * every:
            return self.most
        if 2 * left > every:
            return self.open
        return self.some if 2 * holds >= every - left else self.few


FINDINGS = tuple(Finding(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["finding"])


def told(finding: Finding, ledger: list[tuple[Passage, list[Claim]]]) -> str:
    """The headline, the counts, and a claim that does not hold: as Markdown."""
    rows = counted(finding, ledger)
    count = Counter(claim.verdict for claim in rows)
    holds, fails, alike = (count[word] for word in (Verdict.HOLDS, Verdict.FAILS, Verdict.ALIKE))
    left = len(rows) - holds - fails - alike
    counts = f"{holds} of {len(rows)} claims about {finding.about} hold, {fails} do not"
    same = f", {alike} found no difference" if alike else ""
    rest = f", and {left} cannot be decided here" if left else ""
    return f"**{finding.headline(holds, left, len(rows))}** {counts}{same}{rest}.{_example(finding, rows)}"


def counted(finding: Finding, ledger: list[tuple[Passage, list[Claim]]]) -> dict[Claim, Passage]:
    """The claims of its sections as the ledger counts them: each once, where the paper first says it."""
    return {
        claim: passage
        for claim, (passage, _) in different(ledger).items()
        if passage.section in finding.sections and not claim.apart
    }


def _example(finding: Finding, rows: dict[Claim, Passage]) -> str:
    failed = [
        (passage.id != finding.example, claim) for claim, passage in rows.items() if claim.verdict == Verdict.FAILS
    ]
    if not failed:
        return ""
    _, claim = min(failed, key=lambda row: row[0])  # the first of its passage, or the first of all
    numbers = f" (found: {claim.numbers})" if len(claim.numbers) <= SHORT else ""
    return f" One that does not: “{claim.text}”{numbers}."
