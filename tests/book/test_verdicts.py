"""The command that prints every claim about a figure."""

import pytest

from bilevel_book.__main__ import main
from bilevel_book.ledger import of_experiment
from bilevel_book.ledger.evidence import runs_of


@pytest.mark.slow
def test_the_command_prints_every_claim_with_its_verdict(capsys):
    assert main(["verdicts", "hyper-representation"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n[") == len(of_experiment("hyper-representation", runs_of("hyper-representation")))
    assert "] FdeHBO converges much faster than PZOBO-S, F2SA and F3SA (Section 4.1, Figure 1)" in printed


def test_without_results_the_command_says_how_to_make_them(tmp_path, capsys):
    assert main(["verdicts", "hyper-cleaning", "--results", str(tmp_path)]) == 2
    command = f"python -m bilevel_book reproduce hyper-cleaning --size full --group pilot --results {tmp_path}"
    assert f"run `{command}`" in capsys.readouterr().err
