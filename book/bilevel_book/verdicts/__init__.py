"""The rules of experiments/protocol.md, by which stored runs decide on a sentence of the paper.

judging compares two methods seed by seed and gives the verdict; paper has the sentences and the runs that decide them;
selection has the rules by which trials choose settings.
"""

from bilevel_book.verdicts.judging import Verdict
from bilevel_book.verdicts.selection import best, expected_best, scores

__all__ = ["Verdict", "best", "expected_best", "scores"]
