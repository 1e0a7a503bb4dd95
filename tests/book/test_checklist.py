"""The page "If you write a bilevel comparison": what it simulates, counts and says."""

import math
import re
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bilevel_book.checklist import changes, coverage, pictures
from bilevel_book.experiments import load
from bilevel_book.ledger.claim import Claim
from bilevel_book.ledger.claim import Verdict as Word
from bilevel_book.paths import ROOT
from bilevel_book.verdicts.deciding import Verdict, decide

PAGE = (ROOT / "book" / "comparison.md").read_text()


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_intervals_hold_the_truth_as_often_as_mathematics_says(n):
    found = coverage.coverage(n)
    error = 4 * math.sqrt(0.25 / coverage.SAMPLES)
    assert found["Student's t"] == pytest.approx(0.95, abs=error)
    assert found["smallest to largest"] == pytest.approx(1 - 2 ** (1 - n), abs=error)  # unless all lie on one side
    assert found["percentile bootstrap"] <= found["smallest to largest"]  # means of resamples lie between the two
    if n <= 3:  # the smallest seed, n times, has more than 2.5 per cent of all resamples
        assert found["percentile bootstrap"] == pytest.approx(found["smallest to largest"], abs=error)


@pytest.mark.slow
def test_chances_of_words_are_those_of_the_verdicts_of_the_protocol(monkeypatch):
    monkeypatch.setattr(coverage, "SAMPLES", samples := 100)
    n, margin, scatter, ratio = 5, 0.1, 0.1, np.array([0.8, 1.0, 1.3])
    chances = coverage.words(ratio, n, margin, scatter)
    assert sum(chances.values()) == pytest.approx(1)
    r = scatter * np.random.default_rng(n).standard_normal((samples, n))
    none = dict.fromkeys(("first_diverged", "rival_diverged", "both_diverged"), 0)
    for i, truth in enumerate(np.log(ratio)):
        means = {"mean": truth + r.mean(axis=1), "error": r.std(axis=1, ddof=1) / math.sqrt(n)}
        rows = pd.DataFrame({"rival": "one", "horizon": "end", "n": n, **none, **means})
        said = Counter(decide(rows.iloc[[k]], margin).verdict.item() for k in range(samples))
        for word in Verdict:
            assert said[word] / samples == pytest.approx(chances.get(word, np.zeros(3))[i], abs=1e-12)


def test_a_larger_margin_hides_leads_and_lets_equals_be_alike():
    narrow, wide = pictures.chances(10, 2), pictures.chances(10, 10)
    middle = len(pictures.RATIO) // 2
    assert pictures.RATIO[middle] == pytest.approx(1)
    assert wide[Verdict.ALIKE][middle] > 0.5 > 0.05 > narrow[Verdict.ALIKE][middle]
    assert (wide[Verdict.HOLDS] <= narrow[Verdict.HOLDS]).all()
    assert re.fullmatch(r"10 seeds, margin 10 %: a lead of \d\d % is found .* alike in \d\d %", pictures.found(10, 10))
    assert "no lead up to 30 %" in pictures.found(3, 5)
    assert pictures.chances(20, 5)[Verdict.ALIKE][middle] < 0.5  # as the answer on the page says


@pytest.fixture
def trials(monkeypatch):
    """A is good at once, B once in 24, and C has one trial that the plotted loss likes better than the rule does."""
    chosen = {"A": [2.0] * 24, "B": [1.0, *[9.0] * 23], "C": [3.0, 3.1, *[8.0] * 22]}
    shown = {**chosen, "C": [3.0, 2.7, *[8.0] * 22]}
    tables = {
        metric: {name: pd.Series(values, [f"{name}, trial {k}" for k in range(24)]) for name, values in each.items()}
        for metric, each in ((changes.LOSS, chosen), (changes.SHOWN, shown))
    }
    monkeypatch.setattr(changes, "tuning_scores", tables.__getitem__)
    changes.by_trials.cache_clear()
    yield
    changes.by_trials.cache_clear()


def test_the_order_of_methods_depends_on_the_number_of_trials(trials):
    assert changes.leaders() == {1: "A", 4: "A", 12: "B", 24: "B"}  # half of all draws of 12 have the good one
    assert changes.swaps(4, 24) == (2, 3)  # B passes A and C
    assert "of 3 pairs of methods 2 change their order" in changes.against_trials().after
    figure, alt = pictures.trials()
    assert figure.axes[0].get_title(loc="left") == "Lowest with 4 trials: A. With 24: B"
    assert "B 9, 9, 1, 1" in alt


def test_what_the_plotted_loss_would_have_chosen_is_told(trials):
    assert "another trial for 1 of 3 methods (C), and would have flattered them by up to 10.0 %" in (
        changes.not_what_is_plotted().after
    )


def test_repetitions_and_what_is_true_anyway_are_taken_off():
    claims = [
        Claim("a", "m", "1", Word.HOLDS),
        Claim("a", "m", "1", Word.HOLDS, where="said again"),
        Claim("b", "m", "2", Word.HOLDS, apart="about this book's code"),
        Claim("c", "m", "3", Word.FAILS),
    ]
    told = changes.one_sentence_one_verdict([(SimpleNamespace(id="p"), claims)])
    assert told.after.startswith("today's ledger shows 3 different verdicts, 2 of which say *holds*. But 1 are about")
    assert "2 are counted, of which 1 say *holds*" in told.after
    again = changes.one_sentence_one_verdict([(SimpleNamespace(id="p"), claims[:1])])
    assert again.before == told.before  # which is the first edition's, whatever today's ledger says


def test_verdicts_that_stay_under_more_than_half_of_the_other_rules_are_counted_by_word(monkeypatch):
    def case(word, *stays):
        of = dict(zip(("stated", "tuned"), stays, strict=True))
        return SimpleNamespace(tracks=of, verdict=lambda track: word, stays=of.__getitem__)

    of = {
        changes.CLEANING: [case(Word.UNDECIDED, (3, 4), (2, 4))],
        changes.REPRESENTATION: [case(Word.HOLDS, (5, 8), (0, 8))],
    }
    monkeypatch.setattr(changes, "cases", of.__getitem__)
    words = {"FdeHBO": [Word.HOLDS, Word.UNDECIDED]}  # by the two windows; the others stay
    monkeypatch.setattr(changes, "words_of_cells", lambda name, since=1000: words.get(name, [0, 0])[since < 1000])
    monkeypatch.setattr(changes, "together", lambda word: word)
    told = changes.other_rules().after
    assert "of the 4 verdicts" in told
    assert "2 stay under more than half" in told  # not with exactly half
    assert "1 of 2 that are *undecided*, and 1 of 2 that are not" in told
    assert told.endswith("on 4 rates, with slopes from T = 1,000, 3 stay with slopes from T = 100.")


def test_a_method_against_itself_is_told_with_intervals_and_words(monkeypatch):
    def found(experiment, track):
        word = {"stated": Word.UNDECIDED, "tuned": Word.ALIKE}[track]
        rows = [("lower", "two thirds", 0.5, 2.0, word, 10), ("lower", "end", 0.97, 1.03, word, 10)]
        return pd.DataFrame(rows, columns=["measure", "horizon", "low", "high", "verdict", "n"])

    monkeypatch.setattr(changes.itself, "against_itself", found)
    told = changes.against_itself().after
    assert "FMBO on cleaning, as stated, 10 seeds: lower 0.97 to 1.03 (*undecided*); " in told
    assert told.endswith("FdeHBO on LeNet, tuned alike, 10 seeds: lower 0.97 to 1.03 (*alike*).")


@pytest.mark.slow  # reads all trials of a pilot
def test_a_box_was_widened_where_the_best_trial_of_the_pilot_lay_at_its_edge():
    near, tables = changes.edges_of_pilot(changes.CLEANING), load(changes.CLEANING).tables
    moved = {name for name, method in tables["widened"].items() if method.options != tables["boxes"][name].options}
    assert moved <= {name for name, ends in near.items() if ends}
    assert "eta.c" in near["FMBO"]


def test_the_page_has_every_change_and_picture_once_and_a_rule_for_each_line_of_the_checklist():
    assert sorted(re.findall(r"```\{changed\} (\S+)", PAGE)) == sorted(changes.CHANGES)
    assert sorted(re.findall(r"```\{picture\} (\S+)", PAGE)) == sorted(pictures.PICTURES)
    lines = re.findall(r"^(\d+)\. \[\*\*(.+?)\.?\*\*\]\(#(rule-\w+)\)", PAGE, re.M)
    rules = re.findall(r"^\((rule-\w+)\)=\n### (\d+)\. (.+)$", PAGE, re.M)
    assert [(number, name, anchor) for anchor, number, name in rules] == lines
    assert len(lines) == 15
    for part in re.split(r"^\(rule-", PAGE, flags=re.M)[1:]:
        assert "**Why.**" in part
        assert "```{changed}" in part
