"""What is printed and written about a stored experiment."""

import pytest

from bilevel_book.report import ends
from bilevel_core import experiments
from bilevel_core.__main__ import main


def test_the_table_of_ends(table):
    found = ends(table, ["upper_loss"])
    assert found.loc["A", "upper_loss"] == "2.000 (1.000 to 3.000)"
    assert found.loc["C", "diverged"] == 1
    assert found.loc["C", "upper_loss"].startswith("1.000")


@pytest.mark.parametrize("name", experiments.names())
def test_the_report_prints_a_table_and_writes_figures(name, tmp_path, capsys):
    source = experiments.results_folder() / name
    (tmp_path / name).mkdir()
    (tmp_path / name / "full").mkdir()
    for group in (source / "full").iterdir():
        if group.is_dir() and group.name != "figures":
            (tmp_path / name / "full" / group.name).symlink_to(group)
    assert main(["report", name, "--results", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "[holds" in printed
    assert (tmp_path / name / "full" / "figures" / "main_cpu_seconds.png").stat().st_size > 10_000
