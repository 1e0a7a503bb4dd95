"""Two ledgers, computed when the book is built: what the paper says and whether it holds, and what it leaves open.

claims.toml and choices.toml hold the texts and name the functions that fill them in: the judges in counts, lemmas,
rates, experiments and sentences; values and effects for the choices.
"""

from bilevel_book.ledger.choices import Choice, taken
from bilevel_book.ledger.claims import PASSAGES, Passage, judged, of_experiment, tally
from bilevel_book.ledger.evidence import Evidence

__all__ = ["PASSAGES", "Choice", "Evidence", "Passage", "judged", "of_experiment", "taken", "tally"]
