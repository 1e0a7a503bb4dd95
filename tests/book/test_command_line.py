"""python -m bilevel_book: it runs, reports and explains."""

import hashlib

import pytest

from bilevel_book.__main__ import main
from bilevel_book.experiments.tables import StoredRun, stored_runs, write_table

FILE = """
problem = "Quadratic"
columns = ["objective"]
[sizes.smoke]
main = { steps = 20, seeds = [0, 1], every = 5 }
tuning = { steps = 20, seeds = [7], grid = true }
[main.SOBA]
alpha = 0.05
[tuning.SOBA]
alpha = [0.01, 0.1]
"""


@pytest.fixture
def small(tmp_path):
    (tmp_path / "small.toml").write_text(FILE)
    return str(tmp_path / "small.toml")


def test_missing_runs_are_done_and_reported(small, tmp_path, capsys):
    folder = str(tmp_path / "results")
    assert main(["reproduce", small, "--results", folder]) == 0
    assert "4 runs done, 0 were there already" in capsys.readouterr().out
    assert main(["reproduce", small, "--results", folder]) == 0
    assert "0 runs done, 4 were there already" in capsys.readouterr().out
    assert main(["report", small, "--results", folder]) == 0  # of the same size, by default
    told = capsys.readouterr().out
    assert told.index("main") < told.index("SOBA") < told.index("tuning") < told.index("SOBA, alpha 0.1")


def test_results_are_kept_in_the_current_folder(small, tmp_path, capsys, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["reproduce", small, "--label", "SOBA"]) == 0
    assert (tmp_path / "elsewhere" / "results" / "smoke" / "small" / "main.csv").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["reproduce", "great"], "unknown experiment 'great' (or give the path of a TOML file); known are after-2023"),
        (["reproduce", "SMALL", "--size", "huge"], "unknown size of small 'huge'; known are smoke"),
        (["reproduce", "SMALL", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["verify", "SMALL", "--rows", "0"], "--rows must be at least 1, got 0"),
        (["report", "SMALL"], "main: 2 of 2 runs are not stored"),
        (["verify", "SMALL"], "main/SOBA_0 is not stored in FOLDER"),
    ],
)
def test_invalid_arguments_are_explained(small, tmp_path, capsys, given, message):
    folder = str(tmp_path / "nothing")
    code = main([small if part == "SMALL" else part for part in given] + ["--results", folder])
    assert code == (0 if given[0] == "report" else 2)
    told = capsys.readouterr()
    assert message.replace("FOLDER", folder) in told.err + told.out


def test_changed_rows_are_named(small, tmp_path, capsys):
    folder = tmp_path / "results"
    given = [small, "--results", str(folder)]
    main(["reproduce", *given])
    assert main(["verify", *given, "--rows", "2"]) == 0
    told = capsys.readouterr().out
    assert "4 of 4 runs" in told
    assert "8 rows were compared" in told
    path = folder / "smoke" / "small" / "main.csv"
    first, *others = stored_runs("small", "main", folder / "smoke").values()
    history = first.history.replace("\n20,", "\n20,1")
    facts = first.facts | {"sha256": hashlib.sha256(history.encode()).hexdigest()}
    write_table([StoredRun(history, facts), *others], path)
    again = ["verify", *given, "--group", "main"]
    assert main(again) == 0  # the first row after the start is as it was
    assert main([*again, "--rows", "4", "--jobs", "2"]) == 2
    told = capsys.readouterr()
    assert "main/SOBA_0: the code gives other rows than are stored" in told.out
    assert "1 of 2 runs" in told.out
    assert "8 rows were compared" in told.out
