"""Two ledgers, computed when the book is built: what the paper says and whether it holds, and what it leaves open."""

from bilevel_book.ledger.choices import SECTIONS as CHOICE_SECTIONS
from bilevel_book.ledger.choices import Choice, choices
from bilevel_book.ledger.evidence import Evidence
from bilevel_book.ledger.sentences import SECTIONS as CLAIM_SECTIONS
from bilevel_book.ledger.sentences import Passage, judge, tally

__all__ = ["CHOICE_SECTIONS", "CLAIM_SECTIONS", "Choice", "Evidence", "Passage", "choices", "judge", "tally"]
