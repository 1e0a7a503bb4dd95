"""The sentences of the paper, the runs that decide each of them, and verdicts that follow these runs."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bilevel_book.paths import ROOT
from bilevel_book.verdicts import paper
from bilevel_book.verdicts.judging import Verdict
from bilevel_book.verdicts.paper import SENTENCES, against_itself, deciding, scoreboard, sentence

SUPPORTED, NO_DIFFERENCE, UNDECIDED, CONTRADICTED, _ = Verdict
PROTOCOL = (ROOT / "experiments/protocol.md").read_text()


@pytest.fixture
def runs(monkeypatch):
    """Runs of both experiments that all fall alike, to 0.1; a test sets the lowest loss of a (group, label)."""
    lowest, stop = {}, {}

    def timed_runs(plan, group, clock="alone"):
        asked, at, rows = plan.groups[group], np.linspace(0, 150, 200), []
        for label, (number, seed) in ((label, pair) for label in asked.only for pair in enumerate(asked.seeds)):
            low = lowest.get((group, label), 0.1) * (1 + 0.001 * (number % 3))
            loss = low + (20 - low) * np.exp(-at / 5)
            metrics = {f"{name}_loss": loss for name in ("upper", "test", "train")}
            rows.append(
                pd.DataFrame({"label": label, "seed": seed, "step": at, "seconds": at, **metrics}).assign(
                    upper_accuracy=1 - low, stop=stop.get((group, label), "steps")
                )
            )
        return pd.concat(rows)

    monkeypatch.setattr(paper, "timed_runs", timed_runs)
    monkeypatch.setattr(paper, "stored_seeds", lambda plan, group: plan.groups[group].seeds)
    monkeypatch.setattr(paper, "pairs", paper.pairs.__wrapped__)
    return lowest


def test_sentences_are_those_of_the_protocol():
    rows = dict(re.findall(r"^\| ([A-Z]\d) \| (?:.+?) \| .+? \| (.+?) \|$", PROTOCOL, re.M))
    assert {name.split(",")[0] for name in SENTENCES} == rows.keys()
    for name, asked in SENTENCES.items():
        for measure, metric in asked.measures:
            words = metric.replace("upper_error", "training error").replace("upper", "outer").replace("_", " ")
            assert measure in rows[name.split(",")[0]]
            assert words in rows[name.split(",")[0]]


@pytest.mark.parametrize("name", SENTENCES)
def test_every_method_of_a_sentence_has_its_runs_in_pairs(name):
    asked, seeds = SENTENCES[name], set()
    for track in asked.tracks:
        for method in (asked.first, *asked.rivals):
            group, label = asked.group(track, method)
            assert label in asked.plan.groups[group].only
            seeds.add((track, *asked.plan.groups[group].seeds))
    assert len(seeds) == len(asked.tracks)


def test_alike_runs_are_no_different_and_a_change_decides(runs):
    assert {sentence("F3").verdict(track) for track in ("stated", "alike")} == {NO_DIFFERENCE}
    runs["stated_read", "F2SA"] = 0.2
    numbers = sentence("F3").numbers("stated").set_index("rival")
    assert numbers.verdict.to_dict() == {"PZOBO-S": NO_DIFFERENCE, "F2SA": SUPPORTED, "F3SA": NO_DIFFERENCE}
    assert numbers.ratio["F2SA"] == pytest.approx(0.5)
    runs["stated_five", "F3SA"] = 0.05
    assert (sentence("F3").verdict("stated"), sentence("F3").verdict("alike")) == (CONTRADICTED, NO_DIFFERENCE)
    assert deciding(sentence("F3").numbers("stated")).rival == "F3SA"


def test_momentum_is_judged_by_steps_and_both_measures(runs):
    asked = sentence("F4")
    assert (asked.axis, sentence("F1").axis) == ("step", "seconds")
    runs["stated_off", "FdeHBO"] = 0.3
    assert asked.numbers("stated").verdict.tolist() == [SUPPORTED, NO_DIFFERENCE]  # lower, and as calm
    assert asked.verdict("stated") == NO_DIFFERENCE


def test_scoreboard_has_marks_and_a_line_on_much(runs):
    runs["alike", "PZOBO-S"] = 1.0  # so that it misses the lower levels
    table = scoreboard(["F1", "D1"])
    assert table.loc["F1"].tolist()[1:3] == ["no difference [r]", "no difference [m]"]
    assert table.loc["F1, much"].tolist() == ["... by a factor of two", "contradicted [r]", "contradicted [m]", ""]
    assert table.loc["D1", "tuned alike"] == ""
    assert table.loc["F1", "number"].startswith("1.00 (1.00 to 1.00), faster, ")


def test_scoreboard_says_which_runs_are_to_come(runs, monkeypatch):
    monkeypatch.setattr(paper, "stored_seeds", lambda plan, group: [30] if group == "stated_off" else [30, 31])
    assert sentence("F4").missing("stated") == ["stated_off"]
    assert scoreboard(["F4"]).loc["F4"].tolist()[1:] == [paper.TO_COME, NO_DIFFERENCE, ""]


def test_seeds_that_are_not_complete_are_left_out_and_told(monkeypatch):
    plan = sentence("F1").plan
    missing = [run for run in plan.runs("stated") if run.seed > 31 and run.label == "PZOBO-S"]
    monkeypatch.setattr(paper.Plan, "missing", lambda plan, group: missing if group == "stated" else [])
    assert set(paper.timed_runs.__wrapped__(plan, "stated").seed) == {30, 31}
    told = paper.seeds_to_come("hyper-representation", ("stated", "alike"))
    assert told == "Not all planned runs have been made. Seeds so far: `stated` 2 of 12."


def test_another_clock_can_mark_a_verdict(runs, monkeypatch):
    steady = paper.timed_runs

    def with_a_slow_rival(plan, group, clock="alone"):
        table = steady(plan, group)
        is_rival = (table.label == "PZOBO-S") & (clock == "recorded")
        return table.assign(seconds=table.seconds.where(~is_rival, 3 * table.seconds))

    monkeypatch.setattr(paper, "timed_runs", with_a_slow_rival)
    asked = replace(sentence("F1"), rivals=("PZOBO-S",))
    assert asked.marks("alike") == "c"
    assert asked.rules("alike").loc[["alone", "recorded"], "5%"].tolist() == [NO_DIFFERENCE, SUPPORTED]


def test_method_against_itself_is_paired_by_order(runs):
    found = against_itself("F1", "stated")
    assert found.measure.tolist() == ["faster", "lower", "stable"]
    assert set(found.n) == {12}
    assert set(found.verdict) == {NO_DIFFERENCE}


def test_method_against_fewer_seeds_of_itself_has_fewer_pairs(runs, monkeypatch):
    every = paper.timed_runs
    monkeypatch.setattr(paper, "timed_runs", lambda plan, group, clock: every(plan, group).query("seed < 55"))
    assert set(against_itself("F1", "stated").n) == {5}  # 12 seeds from 30 on, and of the others 50 to 54


def test_unknown_sentence_and_missing_runs_raise(tmp_path):
    with pytest.raises(ValueError, match=r"no sentence 'C1'; there are F1; .*C1, FMBO; C2, FMBO"):
        sentence("C1")
    with pytest.raises(FileNotFoundError, match="the first is stated/FdeHBO_30: run `python -m bilevel_book reproduce"):
        paper.timed_runs(paper.Plan(paper.load("hyper-representation"), "next", tmp_path), "stated")
