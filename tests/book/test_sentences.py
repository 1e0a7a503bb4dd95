"""The sentences of the protocol: their file, their runs, their verdicts."""

import re
from itertools import product

import numpy as np
import pandas as pd
import pytest

from bilevel_book.experiments import load, sweep
from bilevel_book.figures.verdicts import answer, forest, intervals, told
from bilevel_book.paths import ROOT
from bilevel_book.verdicts import Verdict, sentences

ENTRIES = sentences.entries()


def test_the_file_has_the_sentences_of_the_protocol():
    rows = re.findall(
        r"^\| ([A-Z]\d) \| (.+?) \| .+ \| (.+?) \|$", (ROOT / "experiments/protocol.md").read_text(), re.M
    )
    measures = {name: measure for name, _, measure in rows}
    assert ENTRIES.keys() == measures.keys() - {"C7"}  # which no run can decide
    for name, entry in ENTRIES.items():
        for measure, metric, _ in entry["measures"]:
            assert measure in measures[name] or "alike" in measures[name]
            words = {"upper_error": "training error"}.get(metric, metric.replace("upper", "outer").replace("_", " "))
            assert words in measures[name] or name == "D1"


@pytest.mark.parametrize("name", ENTRIES)
def test_every_name_has_runs(name):
    entry = ENTRIES[name]
    known = {(run.group, run.label) for run in sweep(entry["experiment"], "full")}
    groups = load(entry["experiment"]).sizes["full"]
    for track in ("stated", "tuned"):
        own = entry.get(track, {"group": "not there"})
        for first, method in product(entry["first"], (*entry["first"], *entry["rivals"])):
            usual = own.get("groups", {}).get(first, own["group"])
            for place in own.get("names", {}).get(method, [f"{usual}.{method}"]):
                group, label = place.split(".", 1)
                assert group not in groups or (group, label) in known


def test_with_aid_fp_as_leader_it_is_the_longer_runs_that_decide(monkeypatch):
    asked = set()
    monkeypatch.setattr(sentences, "complete", lambda experiment, group, folder: asked.add(group) or settled("x", 1.0))
    for first, group in {"AID-FP": "long", "FMBO": "main"}.items():
        asked.clear()
        sentences._track(ENTRIES["C2"], "stated", first, None)
        assert asked == {group}


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


def test_a_case_is_decided_on_each_track_by_the_better_reading(runs):
    faster = runs["F1"]
    assert faster.verdict("stated") == Verdict.UNTESTABLE  # of F2SA and F3SA no number is stated
    assert set(faster.numbers("stated").rival) == {"PZOBO-S"}
    assert runs["F3"].verdict("tuned") == Verdict.HOLDS  # against the readings that the finals chose
    means = runs["F3"].numbers("tuned").set_index(["rival", "horizon"])["mean"]
    assert means["F2SA", "end"] == pytest.approx(np.log(0.1 / 0.4))


def test_a_case_is_as_good_as_its_weakest_measure(runs):
    words = runs["F4"].numbers("stated").groupby("measure").verdict.first()
    assert words.to_dict() == {"lower": Verdict.ALIKE, "stable": Verdict.ALIKE}
    assert runs["F4"].verdict("stated") == Verdict.ALIKE
    assert runs["D1"].verdict("stated") == Verdict.HOLDS  # delta 10 differs


@pytest.mark.slow
def test_rules_are_counted_and_drawn(runs):
    case = runs["F3"]
    rules = case.rules()
    assert len(rules) == 2 * 3 * 3
    assert case.stays("tuned") == (8, 17)  # on every axis with every margin; never as stated
    assert [case.verdict("tuned", margin=margin) for margin in (0.98, 1.02)] == ["holds", "alike"]  # PZOBO-S: by 2
    picture = forest([case, runs["F4"]], "step", 0.02, "t")
    stated, tuned = picture.axes
    assert [text.get_text() for text in tuned.get_yticklabels()][:2] == ["F3: PZOBO-S, lower", "F3: F2SA, lower"]
    assert stated.get_yticklabels()[0].get_text() == "F3: PZOBO-S, lower"
    decides = answer([case], "step", 1.02).axes[1]  # the one that is alike, not those that it is far ahead of
    shown = [*decides.get_yticklabels(), *decides.texts]
    assert [text.get_text() for text in shown] == ["F3, lower (PZOBO-S)", "alike"]
    assert decides.texts[0].get_weight() == "bold"  # by the protocol's own rule it holds
    assert answer([case]).axes[1].texts[0].get_weight() == "normal"
    far = runs["F3"].numbers("tuned", "step").assign(mean=np.log(9), low=8.0, high=10.0)
    intervals(decides, far.head(1), ["far"], widest=4.0)
    assert decides.lines[-1].get_xdata() == [4.0]  # at the edge, not out of sight
    for means, mark in (("ahead", "s"), ("alike", "<"), ("differs", ">")):  # the mark says what the word is for
        intervals(decides, far.head(1).assign(verdict=Verdict.ALIKE, means=means), ["far"])
        assert decides.lines[-1].get_marker() == mark
    assert told([case], None, 0.05) == "Margin 5%, on the home axis: 1 holds, 1 not testable; none moved"
    assert told([case], "step", 1.02) == "Margin 102%, in steps: 1 alike, 1 not testable; 1 moved (bold)"


def test_a_thin_line_below_is_the_interval_at_two_thirds(runs):
    row = runs["F3"].numbers("tuned").set_index(["rival", "horizon"]).loc["PZOBO-S", "two thirds"]
    panel = answer([runs["F3"]]).axes[1]
    (thin,) = (line for line in panel.lines if line.get_linewidth() == 1)
    assert list(thin.get_xdata()) == [row.low, row.high]
    assert 0 < thin.get_ydata()[0] < 0.5


def test_half_of_the_runs_decide_nothing(tmp_path):
    with pytest.raises(FileNotFoundError, match="60 of 60 runs of hyper-cleaning, noise_15, are not stored, the first"):
        sentences.complete.__wrapped__("hyper-cleaning", "noise_15", tmp_path)
