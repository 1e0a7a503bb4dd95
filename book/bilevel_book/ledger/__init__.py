"""Two ledgers, computed when the book is built: what the paper says and whether it holds, and what it leaves open.

claims.toml and choices.toml hold the words; counts, lemmas, rates, representation, cleaning and undecidable judge the
claims; values and effects fill in the choices.
"""

from bilevel_book.ledger.choices import SECTIONS as CHOICE_SECTIONS
from bilevel_book.ledger.choices import Choice, taken
from bilevel_book.ledger.claims import PASSAGES, Passage, judged, of_experiment, tally
from bilevel_book.ledger.claims import SECTIONS as CLAIM_SECTIONS
from bilevel_book.ledger.evidence import Evidence

__all__ = [
    "CHOICE_SECTIONS",
    "CLAIM_SECTIONS",
    "PASSAGES",
    "Choice",
    "Evidence",
    "Passage",
    "judged",
    "of_experiment",
    "taken",
    "tally",
]
