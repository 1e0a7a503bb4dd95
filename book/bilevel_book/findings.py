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

    def counted(self, ledger: Ledger) -> dict[Claim, Passage]:
        """The claims of its sections as the ledger counts them: each once, where the paper first says it."""
        return {
            claim: passage
            for claim, (passage, _) in different(ledger).items()
            if passage.section in self.sections and not claim.apart
        }

    def markdown(self, ledger: Ledger) -> str:
        """The headline, the counts, and a claim that does not hold."""
        rows = self.counted(ledger)
        count = Counter(claim.verdict for claim in rows)
        holds, fails, alike = count[Verdict.HOLDS], count[Verdict.FAILS], count[Verdict.ALIKE]
        left = len(rows) - holds - fails - alike
        counts = f"{holds} of {len(rows)} claims about {self.about} hold, {fails} do not"
        same = f", {alike} found no difference" if alike else ""
        rest = f", and {left} cannot be decided here" if left else ""
        return f"**{self._headline(holds, left, len(rows))}** {counts}{same}{rest}.{self._failure(rows)}"

    def _headline(self, holds: int, left: int, total: int) -> str:
        """ "Most" is a share of all claims, for what is not decided does not hold; "few" one of those that are."""
        if 4 * holds >= 3 * total:
            return self.most
        if 2 * left > total:
            return self.open
        return self.some if 2 * holds >= total - left else self.few

    def _failure(self, rows: dict[Claim, Passage]) -> str:
        """A claim that does not hold: the first of the passage `example`, or the first of all."""
        failed = [claim for claim in rows if claim.verdict == Verdict.FAILS]
        if not failed:
            return ""
        claim = min(failed, key=lambda claim: rows[claim].id != self.example)
        numbers = f" (found: {claim.numbers})" if len(claim.numbers) <= LONGEST_NUMBERS else ""
        return f" One that does not: “{claim.text}”{numbers}."


FINDINGS = tuple(Finding(**entry) for entry in tomllib.loads(FILE.read_text(encoding="utf-8"))["finding"])


def findings(ledger: Ledger) -> str:
    """All of them as a numbered list."""
    return "\n".join(f"1. {finding.markdown(ledger)}" for finding in FINDINGS)
