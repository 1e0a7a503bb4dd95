"""The rules of experiments/protocol.md, by which stored runs decide on a sentence of the paper.

A table of runs has a row for each stored row: label, seed, stop, the axes (step, equivalents, seconds), and metrics
that are at least 0 and better when smaller: for an accuracy take the error, 1 - accuracy.
"""

from bilevel_book.verdicts.comparison import Sentence, compare
from bilevel_book.verdicts.deciding import Verdict, decide, judge, overall
from bilevel_book.verdicts.selection import best, expected_best, scores

__all__ = ["Sentence", "Verdict", "best", "compare", "decide", "expected_best", "judge", "overall", "scores"]
