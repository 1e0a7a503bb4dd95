"""The sentences of the protocol: their file, their runs, their verdicts."""

import json
import re

import pytest

from bilevel_book.__main__ import main
from bilevel_book.experiments import runs_of
from bilevel_book.ledger import of_experiment
from bilevel_book.paths import ROOT, chapter
from bilevel_book.verdicts import Sentence, Verdict, judge, sentences
from bilevel_book.verdicts.sentences import against_itself

ENTRIES = sentences.entries()


def test_the_file_has_the_sentences_of_the_protocol():
    rows = re.findall(
        r"^\| ([A-Z]\d) \| (.+?) \| .+ \| (.+?) \|$", (ROOT / "experiments/protocol.md").read_text(), re.M
    )
    measures = {name: measure for name, _, measure in rows}
    assert ENTRIES.keys() == {name for name in measures if name[0] == "C"} - {"C7"}  # which no run can decide
    for name, entry in ENTRIES.items():
        for measure, metric in entry["measures"]:
            assert measure in measures[name] or "alike" in measures[name]
            assert metric.replace("_", " ") in measures[name]


def test_missing_runs_raise_with_a_remedy(tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match="60 of 60 runs of hyper-cleaning, noise_15, are not stored, the first"):
        sentences.complete.__wrapped__("hyper-cleaning", "noise_15", tmp_path)
    assert main(["verdicts", "hyper-cleaning", "--results", str(tmp_path)]) == 2
    command = f"python -m bilevel_book reproduce hyper-cleaning --size full --group pilot --results {tmp_path}"
    assert f"run `{command}`" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_prints_every_claim_with_its_verdict(capsys):
    assert main(["verdicts", "hyper-representation"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n[") == len(of_experiment("hyper-representation", runs_of("hyper-representation")))
    assert "] FdeHBO converges much faster than PZOBO-S, F2SA and F3SA (Section 4.1, Figure 1)" in printed


@pytest.mark.slow
@pytest.mark.parametrize("track", ["stated", "tuned"])
def test_a_stored_method_is_not_ahead_of_itself(track):
    found = against_itself("hyper-cleaning", track)
    assert len(found) == 6  # three measures, two horizons
    assert set(found.n) == {10}
    assert not found["mean"].isna().any()  # all of it can be read
    assert set(found.verdict) <= {Verdict.ALIKE, Verdict.UNDECIDED}


@pytest.mark.slow
def test_chapter_names_every_method_that_is_not_ahead_of_the_control():
    cells = json.loads(chapter(10).read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    section = re.search(r"^## Tuned alike$(.*?)^## ", text, re.M | re.S)[1]
    said = re.sub(r"\$\^(\d)\$", r"\1", "\n".join(re.findall(r"^- \*\*The control\*\*.*", section, re.M)))  # F$^2$SA
    runs = sentences.complete("hyper-cleaning", "tuned")
    for method in set(runs.label) - {"alternating"}:
        lower = Sentence(f"{method} ends lower", method, ("alternating",), "lower", "train_loss")
        name = method.partition(",")[0]  # "F2SA, 10 inner steps" is a reading of F2SA
        ahead = judge(runs, lower, "equivalents") == Verdict.HOLDS
        assert ahead or name in said or "no method is ahead of it" in said, name
