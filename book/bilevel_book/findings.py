"""The findings of the front page, from the verdicts of the claims ledger.

findings.toml holds the words for each outcome. Nothing there says which outcome it will be.
"""

import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bilevel_book.ledger.claim import Claim
from bilevel_book.ledger.claims import Passage, different
from bilevel_book.verdicts import Verdict

FILE = Path(__file__).with_name("findings.toml")
LONGEST_NUMBERS = 60  # characters; longer ones are left to the ledger
Ledger = list[tuple[Passage, list[Claim]]]


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

    def markdown(self, ledger: Ledger) -> str:
        """The headline, the counts, and a claim that does not hold: the first of `example`, or the first of all.

        "Most" is a share of all claims, for what is not decided does not hold; "few" one of those that are.
        """
        first = {claim: passage for claim, (passage, _) in different(ledger).items() if not claim.apart}
        rows = {claim: passage for claim, passage in first.items() if passage.section in self.sections}
        total, count = len(rows), Counter(claim.verdict for claim in rows)
        holds, fails, alike = count[Verdict.HOLDS], count[Verdict.FAILS], count[Verdict.ALIKE]
        left = total - holds - fails - alike
        headline = self.some if 2 * holds >= total - left else self.few
        if 2 * left > total:
            headline = self.open
        if 4 * holds >= 3 * total:
            headline = self.most
        told = f"**{headline}** {holds} of {total} claims about {self.about} hold, {fails} do not"
        told += f", {alike} found no difference" if alike else ""
        told += f", and {left} cannot be decided here." if left else "."
        if not fails:
            return told
        failed = [claim for claim in rows if claim.verdict == Verdict.FAILS]
        claim = min(failed, key=lambda claim: rows[claim].id != self.example)
        numbers = f" (found: {claim.numbers})" if len(claim.numbers) <= LONGEST_NUMBERS else ""
        return f"{told} One that does not: “{claim.text}”{numbers}."


FINDINGS = tuple(Finding(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["finding"])


def findings(ledger: Ledger) -> str:
    """All of them as a numbered list."""
    return "\n".join(f"1. {finding.markdown(ledger)}" for finding in FINDINGS)
