"""Verdicts from curves that are written by hand."""

import pandas as pd
import pytest

from bilevel_book.verdicts import Verdict, ahead, mean_and_range, thirty_marks, worst


@pytest.mark.parametrize(
    ("first", "second", "marks", "verdict"),
    [
        ("B", "A", [10, 25], Verdict.HOLDS),
        ("A", "B", [10, 25], Verdict.FAILS),
        ("B", "A", [10, 30], Verdict.FAILS),  # 2.5 each
        ("A", "B", [10, 29, 30], Verdict.FAILS),
        ("C", "A", [15, 30], Verdict.FAILS),  # it was ahead, and diverged
        ("A", "C", [15, 30], Verdict.LATE),
    ],
)
def test_a_method_is_ahead_where_its_mean_is_lower(table, first, second, marks, verdict):
    assert ahead(table, first, second, "upper_loss", marks) == verdict


def test_a_claim_of_several_parts_is_as_good_as_the_worst():
    assert worst([Verdict.HOLDS, Verdict.HOLDS]) == Verdict.HOLDS
    assert worst([Verdict.HOLDS, Verdict.LATE]) == Verdict.LATE
    assert worst([Verdict.FAILS, Verdict.LATE, Verdict.HOLDS]) == Verdict.FAILS


def test_the_marks_end_with_the_budget_and_leave_out_the_start():
    marks = thirty_marks(60.0)
    assert len(marks) == 30
    assert (marks[0], marks[-1]) == (2.0, 60.0)


def test_mean_and_range():
    assert mean_and_range(pd.Series([1.0, 3.0])) == "2.000 (1.000 to 3.000)"
