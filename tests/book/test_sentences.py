"""The sentences of the protocol: their file, their runs, their verdicts."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from bilevel_book.__main__ import main
from bilevel_book.experiments import runs_of
from bilevel_book.figures.verdicts import told
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
    assert ENTRIES.keys() == measures.keys() - {"C7"}  # which no run can decide
    for name, entry in ENTRIES.items():
        for measure, metric in entry["measures"]:
            assert measure in measures[name] or "alike" in measures[name]
            words = {"upper_error": "training error"}.get(metric, metric.replace("upper", "outer").replace("_", " "))
            assert words in measures[name] or name == "D1"


def settled(label, *levels, group="tuned", stop="time"):
    """Runs that stay at their level from the first of 24 marks on."""
    step = np.arange(25.0)
    axes = {"step": step, "equivalents": 3 * step, "seconds": 0.1 * step}
    tables = [
        pd.DataFrame({"label": label, "seed": seed, "stop": stop, **axes, "group": group})
        .assign(**{column: [4.0] + [level] * 24 for column in ("upper_loss", "upper_error", "selection_loss")})
        for seed, level in enumerate(levels)
    ]  # fmt: skip
    return pd.concat(tables, ignore_index=True)


@pytest.fixture
def runs(monkeypatch):
    """On the tuned track the first reading of F2SA was better in the finals and is worse in the race."""
    main = [settled("FdeHBO", 0.1, 0.11), settled("PZOBO-S", 0.2, 0.2201)]
    race = {"FdeHBO": 0.1, "PZOBO-S": 0.2, "PZOBO-S, its paper": 0.05, "F3SA": 0.3, "F2SA": 0.4}
    race |= {"F2SA, 10 inner steps": 0.05}
    tuned = [settled(label, level, 1.1 * level) for label, level in race.items()]
    scores = {"PZOBO-S": 0.2, "PZOBO-S, its paper": 0.3, "F2SA": 0.1, "F2SA, 10 inner steps": 0.4}
    trials = [settled(f"{label}, trial 3", level) for label, level in scores.items()]
    off = [settled("FdeHBO", 0.101, 0.111)]
    momentum = [settled("eta 0.9, as in the paper", 0.1, 0.1), settled("eta 1, momentum off", 0.1001, 0.1)]
    deltas = ("as in the paper", "delta 0.001", "delta 0.01", "delta 1")
    ablations = [*(settled(label, 1, 1) for label in deltas), settled("delta 10", 2, 2)]
    tables = {"main": main, "tuned": tuned, "tuning": trials, "finals": trials, "momentum_tuned": off}
    tables |= {"momentum": momentum, "ablations": ablations}
    monkeypatch.setattr(sentences, "complete", lambda experiment, group, folder: pd.concat(tables[group]))
    return {case.id: case for case in sentences.cases("hyper-representation")}


def test_each_track_is_decided_by_the_better_reading(runs):
    faster = runs["F1"]
    assert faster.verdict("stated") == Verdict.UNTESTABLE  # of F2SA and F3SA no number is stated
    assert set(faster.numbers("stated").rival) == {"PZOBO-S"}
    assert runs["F3"].verdict("tuned") == Verdict.HOLDS  # against the readings that the finals chose
    means = runs["F3"].numbers("tuned").set_index(["rival", "horizon"])["mean"]
    assert means["F2SA", "end"] == pytest.approx(np.log(0.1 / 0.4))


@pytest.mark.slow
def test_other_rules_are_counted(runs):
    case = runs["F3"]
    assert len(case.rules) == 2 * 3 * 3
    assert case.stays("tuned") == (8, 17)  # on every axis with every margin; never as stated
    assert [case.verdict("tuned", margin=margin) for margin in (0.98, 1.02)] == ["holds", "alike"]  # PZOBO-S: by 2
    assert told([case], None, 0.05) == "Margin 5%, on the home axis: 1 holds, 1 not testable; none moved"
    assert told([case], "step", 1.02) == "Margin 102%, in steps: 1 alike, 1 not testable; 1 moved (bold)"


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
@pytest.mark.parametrize(("experiment", "seeds"), [("hyper-cleaning", 10), ("hyper-representation", 6)])
def test_a_stored_method_is_not_ahead_of_itself(experiment, seeds, track):
    found = against_itself(experiment, track)
    assert len(found) == 6  # three measures, two horizons
    assert set(found.n) == {seeds}
    assert not found["mean"].isna().any()  # all of it can be read
    assert set(found.verdict) <= {Verdict.ALIKE, Verdict.UNDECIDED}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("experiment", "metric", "axis", "number"),
    [("hyper-cleaning", "train_loss", "equivalents", 10), ("hyper-representation", "upper_loss", "seconds", 9)],
)
def test_chapters_name_every_method_that_is_not_ahead_of_the_control(experiment, metric, axis, number):
    cells = json.loads(chapter(number).read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    section = re.search(r"^## Tuned alike$(.*?)^## ", text, re.M | re.S)[1]
    said = re.sub(r"\$\^(\d)\$", r"\1", "\n".join(re.findall(r"^- \*\*The control\*\*.*", section, re.M)))  # F$^2$SA
    runs = sentences.complete(experiment, "tuned")
    for method in set(runs.label) - {"alternating"}:
        lower = Sentence(f"{method} ends lower", method, ("alternating",), "lower", metric)
        name = method.partition(",")[0]  # "F2SA, 10 inner steps" is a reading of F2SA
        ahead = judge(runs, lower, axis) == Verdict.HOLDS
        assert ahead or name in said or "no method is ahead of it" in said, name
