"""Verdicts from curves that are written by hand."""

import pytest

from bilevel_book import stored
from bilevel_book.__main__ import main
from bilevel_book.ledger import of_experiment
from bilevel_book.verdicts import Verdict, ahead, thirty_marks


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


def test_the_marks_end_with_the_budget_and_leave_out_the_start():
    marks = thirty_marks(60.0)
    assert len(marks) == 30
    assert (marks[0], marks[-1]) == (2.0, 60.0)


@pytest.mark.slow
def test_the_command_prints_every_claim_with_its_verdict(capsys):
    assert main(["verdicts", "hyper-representation"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n[") == len(of_experiment("hyper-representation", stored.read("hyper-representation")))
    assert "[holds] FdeHBO converges much faster than F2SA (Section 4.1, Figure 1)" in printed


def test_without_results_the_command_says_how_to_make_them(tmp_path, capsys):
    assert main(["verdicts", "hyper-cleaning", "--results", str(tmp_path)]) == 2
    command = f"python -m bilevel_core reproduce hyper-cleaning --size protocol --group pilot --results {tmp_path}"
    assert f"run `{command}`" in capsys.readouterr().err
