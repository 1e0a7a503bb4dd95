"""python -m bilevel_book: it runs, reports and explains."""

import hashlib
import json

import pytest

from bilevel_book.__main__ import main

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


def test_it_runs_what_is_not_there_and_reports_it(small, tmp_path, capsys):
    folder = str(tmp_path / "results")
    assert main(["reproduce", small, "--results", folder]) == 0
    assert "4 runs done, 0 were there already" in capsys.readouterr().out
    assert main(["reproduce", small, "--results", folder]) == 0
    assert "0 runs done, 4 were there already" in capsys.readouterr().out
    assert main(["report", small, "--results", folder]) == 0  # of the same size, by default
    told = capsys.readouterr().out
    assert told.index("main") < told.index("SOBA") < told.index("tuning") < told.index("SOBA, alpha 0.1")
    assert not list((tmp_path / "results").rglob("*.png"))


def test_results_are_kept_in_the_current_folder(small, tmp_path, capsys, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["reproduce", small, "--label", "SOBA"]) == 0
    assert (tmp_path / "elsewhere" / "results" / "small" / "smoke" / "main" / "SOBA_0.csv").exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            ["reproduce", "great"],
            "unknown experiment 'great' (or give the path of a TOML file); known are after-2023, hyper-cleaning",
        ),
        (["reproduce", "SMALL", "--size", "huge"], "unknown size of small 'huge'; known are smoke"),
        (["reproduce", "SMALL", "--jobs", "0"], "--jobs must be at least 1, got 0"),
        (["verify", "SMALL", "--jobs", "-1"], "--jobs must be at least 1, got -1"),
        (["verify", "SMALL", "--rows", "0"], "--rows must be at least 1, got 0"),
        (["report", "SMALL"], "small.toml --size smoke --results FOLDER` first"),
        (["verify", "SMALL"], "main/SOBA_0 is not stored in FOLDER"),
        (["calibrate", "SMALL", "--size", "huge"], "unknown size of small 'huge'; known are smoke"),
    ],
)
def test_what_cannot_be_done_is_explained(small, tmp_path, capsys, given, message):
    folder = str(tmp_path / "nothing")
    assert main([small if part == "SMALL" else part for part in given] + ["--results", folder]) == 2
    told = capsys.readouterr()
    assert message.replace("FOLDER", folder) in told.err + told.out


def test_results_that_are_a_file_are_told(small, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["reproduce", small, "--results", str(tmp_path / "file")]) == 2
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_stored_run_that_the_code_no_longer_gives_is_named(small, tmp_path, capsys):
    folder = str(tmp_path / "results")
    main(["reproduce", small, "--results", folder])
    assert main(["verify", small, "--results", folder]) == 0
    assert "4 of 4 runs" in capsys.readouterr().out
    path = tmp_path / "results" / "small" / "smoke" / "main" / "SOBA_1.json"
    csv = path.with_suffix(".csv")
    *begin, last = csv.read_text().splitlines(keepends=True)
    csv.write_text("".join([*begin, last.replace("0.", "1.")]))
    facts = json.loads(path.read_text()) | {"sha256": hashlib.sha256(csv.read_bytes()).hexdigest()}
    path.write_text(json.dumps(facts))
    again = ["verify", small, "--results", folder, "--group", "main"]
    assert main(again) == 0  # the first row after the start is as it was
    assert main([*again, "--rows", "4", "--jobs", "2"]) == 2
    told = capsys.readouterr()
    assert "main/SOBA_1: the code no longer gives its first rows" in told.out
    assert "1 of 2 runs" in told.out
