"""Measures, verdicts and robustness, on runs that are written by hand."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bilevel_book.verdicts import Sentence, Verdict, compare, decide, judge, overall, robustness, stays
from bilevel_book.verdicts.deciding import without_inclusions
from bilevel_book.verdicts.measures import curves, faster, lower, marks_of, stable

HOLDS, ALIKE, FAILS, UNDECIDED, UNTESTABLE = Verdict
LOWER = Sentence("A is lower than B", "A", ("B",), "lower", "loss")
STABLE = replace(LOWER, measure="stable")
FASTER = replace(LOWER, measure="faster", levels=(1.0,))


def runs(label, *losses, stop="steps", until=2400):
    """A run for each list of losses, whose rows are evenly spaced up to step `until`: at the marks, if there are 25."""
    tables = []
    for seed, loss in enumerate(losses):
        step = np.linspace(0, until, len(loss))
        axes = {"step": step, "equivalents": 3 * step, "seconds": 0.1 * step}
        tables.append(pd.DataFrame({"label": label, "seed": seed, "stop": stop, **axes, "loss": loss}))
    return pd.concat(tables, ignore_index=True)


def settling(*levels, start=4.0):
    """Runs that are at their level from the first mark on."""
    return [[start] + [level] * 24 for level in levels]


def around(ratio, spread, n=3):
    """Levels with log mean log(ratio), and a standard deviation of the logs of `spread` (for three)."""
    return ratio * np.exp(spread * np.linspace(-1, 1, n))


def only(table):
    found = curves(table, "step", "loss", table.label.unique())
    (by_seed,) = found.values()
    return by_seed[0], marks_of(found)


def words(*tables, sentence=LOWER, **rule):
    return judge(pd.concat(tables), sentence, **rule)


# Measures


def test_lower_is_the_median_of_the_last_quarter_of_the_marks():
    curve, marks = only(runs("A", 2.0 ** np.arange(25)))
    assert curve.read(lower, marks) == (2**21 + 2**22) / 2  # of 19, ..., 24
    assert curve.read(lower, marks[:16]) == (2**14 + 2**15) / 2  # of 13, ..., 16


def test_stable_is_the_largest_ratio_to_the_lowest_so_far_after_the_first_tenth():
    curve, marks = only(runs("A", [9, 1, 2, 8, 4, 5, 3, *[1] * 17, 1.5]))
    assert curve.read(stable, marks) == 8  # at mark 3; the 1 of the first tenth is not forgotten
    late, _ = only(runs("A", [9, 2, 8, 1, *[1] * 20, 1.5]))
    assert late.read(stable, marks) == 1.5  # and a rise in the first tenth, at mark 2, does not count
    assert late.read(stable, marks[:16]) == 4  # where that mark is after the first tenth
    assert only(runs("A", np.arange(1.0, 26)[::-1]))[0].read(stable, marks) == 1


def test_faster_is_where_the_lowest_so_far_crosses_the_level():
    curve, marks = only(runs("A", [10, 8, 9, 8.5, *[4] * 12, *[1] * 9]))
    assert curve.read(faster(9.0), marks) == 50  # half of the first 100 steps
    assert curve.read(faster(8.0), marks) == 100
    assert curve.read(faster(5.0), marks) == pytest.approx(300 + 75)  # from 8, the lowest, to 4
    assert curve.read(faster(2.0), marks) == pytest.approx(1500 + 200 / 3)
    assert curve.read(faster(2.0), marks[:16]) == pytest.approx(1500 + 200 / 3)
    assert curve.read(faster(2.0), marks[:15]) == math.inf  # not yet
    assert curve.read(faster(0.5), marks) == math.inf
    assert math.isnan(curve.read(faster(10.0), marks))  # it starts there


def test_a_run_with_more_rows_is_read_at_the_same_marks():
    spiky = np.ones(49)
    spiky[1::2] = 50.0  # between the marks
    curve, marks = only(runs("A", spiky))
    assert (curve.read(stable, marks), curve.read(lower, marks)) == (1, 1)


def test_a_run_with_few_rows_cannot_be_read_and_wins_nothing():
    few = runs("A", *[np.linspace(4, 0.1, 24)] * 3)
    curve, _ = only(few)
    marks = 2400 * np.arange(1, 25) / 24
    assert all(math.isnan(curve.read(measure, marks)) for measure in (lower, stable, faster(1.0)))
    rival = runs("B", *[[4, 3, 2] + [5, 2] * 11] * 3)
    assert {words(few, rival, sentence=s) for s in (LOWER, STABLE, FASTER)} == {UNDECIDED}


def test_a_run_with_few_rows_near_the_end_is_not_read_at_two_thirds_either():
    full = runs("A", *settling(2, 2))
    thin = full[~full.step.between(1900, 2300)]
    curve, marks = only(thin)
    assert curve.read(lower, marks[:16]) == 2  # there are rows enough so far
    assert math.isnan(curve.read(lower, marks, 16))
    assert only(full)[0].read(lower, marks, 16) == 2
    found = robustness({"one": (pd.concat([thin, runs("B", *settling(1, 1))]), [LOWER])})
    assert not found.read.any()  # no rule is counted that a run cannot be read by
    gone, _ = only(runs("A", [3.0] * 20 + [np.nan], stop="diverged", until=2000))
    assert gone.read(lower, marks, 16) == 3  # it has no later rows, and that is a reading


def test_all_runs_are_read_up_to_the_budget_they_share():
    long = runs("A", np.r_[np.full(25, 3.0), np.full(24, 1.0)], until=4800)
    short, diverged = runs("B", np.full(25, 2.0)), runs("C", [9.0, 9.0], stop="diverged", until=10)
    found = curves(pd.concat([long, short, diverged]), "step", "loss", "ABC")
    assert marks_of(found)[-1] == 2400
    assert found["A"][0].read(lower, marks_of(found)) == 3
    both = runs("B", *settling(2, 2)), runs("A", *settling(1, 1)), runs("C", *settling(3, 3), until=24)
    assert words(*both, sentence=replace(LOWER, rivals=("B", "C")), axis="step") == UNDECIDED
    compared = decide(compare(pd.concat(both), replace(LOWER, rivals=("B", "C")), "step"))
    assert compared.verdict.tolist() == [HOLDS] * 2 + [UNDECIDED] * 2  # C, which ends early, ends only its own
    # sums of floats miss the marks by a rounding error
    table = short.assign(step=np.r_[0, np.cumsum(np.full(24, 0.1))])
    assert only(table)[0].read(lower, 2.4 * np.arange(1, 25) / 24) == 2


def test_a_diverged_run_is_last_once_it_has_diverged():
    curve, _ = only(runs("A", [3.0] * 20 + [np.nan], stop="diverged", until=2000))
    marks = 2400 * np.arange(1, 25) / 24
    assert [curve.read(measure, marks) for measure in (lower, stable, faster(1.0), faster(2.9))] == [math.inf] * 4
    assert curve.read(lower, marks[:16]) == 3
    in_the_last_row, _ = only(runs("A", [3.0] * 24 + [np.nan], stop="diverged"))
    assert in_the_last_row.read(lower, marks) == math.inf


def test_what_a_diverged_run_counts_for_at_two_thirds_does_not_depend_on_what_comes_later():
    gone = runs("B", *[[4.0, 3.0]] * 2, stop="diverged", until=100)
    calm, falling = (runs("A", *[[4.0, *[1.0] * 16, *[late] * 8]] * 2) for late in (1.0, 0.01))
    at = [compare(pd.concat([table, gone]), STABLE, "step").set_index("horizon")["mean"] for table in (calm, falling)]
    assert at[0]["two thirds"] == at[1]["two thirds"] == pytest.approx(-math.log(4))
    assert at[1]["end"] == pytest.approx(-math.log(400))  # from the lowest of the pair back to the start


# Comparisons and words


@pytest.mark.parametrize(
    ("ratio", "spread", "word"),
    [
        (0.80, 0.05, HOLDS), (0.80, 0.09, UNDECIDED), (1.25, 0.05, FAILS), (1.25, 0.09, UNDECIDED),
        (1.00, 0.01, ALIKE), (1.00, 0.03, UNDECIDED), (0.96, 0.001, ALIKE), (0.94, 0.001, HOLDS),
        (0.94, 0.05, UNDECIDED),
    ],
)  # fmt: skip
def test_the_interval_and_the_margin_make_the_word(ratio, spread, word):
    table = pd.concat([runs("A", *settling(*around(ratio, spread))), runs("B", *settling(1, 1, 1))])
    end = decide(compare(table, LOWER, "step")).iloc[-1]
    half = 4.302652729911275 * spread / math.sqrt(3)  # t with 2 degrees of freedom
    assert (end.low, end.high) == pytest.approx((ratio * math.exp(-half), ratio * math.exp(half)), rel=1e-9)
    assert end.verdict == judge(table, LOWER) == word
    swapped = judge(table, replace(LOWER, first="B", rivals=("A",)))
    assert swapped == {HOLDS: FAILS, FAILS: HOLDS}.get(word, word)


def test_seeds_are_paired():
    """Seeds differ a hundredfold, the two methods by a tenth on each; without partners there is nothing to compare."""
    hard = np.array([0.01, 0.1, 1.0])
    a, b = runs("A", *settling(*0.9 * hard)), runs("B", *settling(*hard))
    assert words(a, b) == HOLDS
    assert words(a, b.assign(seed=b.seed + 2)) == UNDECIDED  # one partner
    assert words(a, b.assign(seed=b.seed + 3)) == UNDECIDED
    assert compare(pd.concat([a, b.assign(seed=b.seed + 1)]), LOWER, "step").n.tolist() == [2, 2]
    assert words(a, b, runs("C", *settling(*hard)), margin=0.2) == ALIKE


def test_the_end_and_two_thirds_must_say_the_same():
    late = [[4] + [1.2] * 16 + [0.5] * 8] * 3
    a, b = runs("A", *late), runs("B", *settling(1, 1, 1))
    assert compare(pd.concat([a, b]), LOWER, "step")["mean"].to_numpy() == pytest.approx(np.log([1.2, 0.5]))
    assert words(a, b) == UNDECIDED
    assert words(a.assign(label="B"), b.assign(label="A")) == UNDECIDED


def test_faster_is_the_mean_over_the_levels_that_count():
    a, b = runs("A", *[np.linspace(4, 1, 25)] * 3), runs("B", *[np.linspace(4, -2, 25).clip(2)] * 3)
    # A meets 3 at 1/3 of the budget and 2.5 at 1/2, B twice as soon; 1.9 is met at 0.7, too late; 5 is above the start
    table = compare(pd.concat([a, b]), replace(FASTER, levels=(5.0, 3.0, 2.5, 1.9, 0.1)), "step")
    assert table.levels.tolist() == [2, 2]
    assert table["mean"].to_numpy() == pytest.approx(math.log(2))
    assert words(a, b, sentence=replace(FASTER, levels=(3.0, 2.5))) == FAILS
    assert words(a, b, sentence=replace(FASTER, levels=(1.9, 0.1))) == UNDECIDED
    assert words(a, b, sentence=replace(FASTER, levels=(5.0,))) == UNDECIDED
    later = runs("B", *[np.linspace(4, 1, 25) ** 1.2] * 2, np.linspace(4, 1, 25) ** 1.5)  # starts above 5
    assert compare(pd.concat([a, later]), replace(FASTER, levels=(3.5, 4.5)), "step").levels.tolist() == [1, 1]


def test_a_level_that_is_never_met_counts_as_the_horizon():
    a, b = runs("A", *[np.r_[np.linspace(4, 1, 13), np.ones(12)]] * 3), runs("B", *settling(2, 2, 2))
    table = compare(pd.concat([a, b]), replace(FASTER, levels=(1.75,)), "step")  # A is there at 3/8 of the budget
    assert table["mean"].to_numpy() == pytest.approx(np.log([3 / 8 * 3 / 2, 3 / 8]))
    both = compare(pd.concat([a, b]), replace(FASTER, levels=(2.5, 1.75)), "step")  # A at 1/4, B at 3/4 of a mark
    assert both["mean"].to_numpy() == pytest.approx((np.log([9 / 16, 3 / 8]) + math.log(8)) / 2)
    assert words(a, b, sentence=replace(FASTER, levels=(1.75,))) == HOLDS
    # most seeds: three of four get there, then two
    for k, counts in ((3, 1), (2, 0)):
        some = runs("A", *[np.r_[np.linspace(4, 1, 13), np.ones(12)]] * k, *settling(*[2] * (4 - k)))
        table = pd.concat([some, runs("B", *settling(2, 2, 2, 2))])
        assert compare(table, replace(FASTER, levels=(1.75,)), "step").levels.tolist() == [counts] * 2


def diverging(label, *losses):
    return runs(label, *losses, stop="diverged", until=240)


def test_a_rival_that_diverges_on_every_seed_loses_and_counts_as_its_start():
    a, b = runs("A", *settling(0.5, 1.1, 1.2)), diverging("B", [4.0, 9.0], [4.0, 8.0], [4.0, np.nan])
    table = decide(compare(pd.concat([a, b]), LOWER, "step"))
    assert table["mean"].to_numpy() == pytest.approx(np.log([0.5 / 4, 1.1 / 4, 1.2 / 4]).mean())
    assert table[["first_diverged", "rival_diverged"]].to_numpy().tolist() == [[0, 3], [0, 3]]
    assert set(table.verdict) == {HOLDS}
    assert compare(pd.concat([a, b]), STABLE, "step")["mean"].to_numpy() == pytest.approx(-math.log(4 / 0.5))
    assert words(a, b, sentence=STABLE) == HOLDS
    assert compare(pd.concat([a, b]), replace(FASTER, levels=(3.0,)), "step")["mean"].iloc[1] < math.log(1 / 24)
    assert words(a.assign(label="B"), b.assign(label="A")) == FAILS
    assert words(diverging("A", *[[4.0, 9.0]] * 3), b) == UNDECIDED  # both: not alike
    assert words(diverging("A", *[[4.0, 9.0]] * 3), b, sentence=FASTER) == UNDECIDED


def one_diverges(label, levels):
    return pd.concat([runs(label, *settling(*levels)), diverging(label, [4.0, 9.0]).assign(seed=len(levels))])


def test_who_diverges_on_one_seed_cannot_win_and_cannot_be_alike():
    nine = np.full(9, 1.0)
    ten = runs("B", *settling(*np.full(10, 3.9)))  # 4, for the diverged one, would not outweigh the nine others
    assert words(runs("A", *settling(*nine, 1.0)), ten) == HOLDS
    assert words(one_diverges("A", nine), ten) == UNDECIDED
    assert words(ten.assign(label="A"), one_diverges("B", nine)) == UNDECIDED
    shared = pd.concat([one_diverges("A", nine), one_diverges("B", 2 * nine)])  # r = 0 on the tenth
    assert compare(shared, LOWER, "step")["mean"].to_numpy() == pytest.approx(-0.9 * math.log(2))
    assert judge(shared, LOWER) == HOLDS
    assert words(runs("A", *settling(*nine, 1.0)), one_diverges("B", 1.5 * nine)) == HOLDS
    assert words(runs("A", *settling(*np.full(10, 3.9))), one_diverges("B", 3.9 * nine)) == UNDECIDED
    # a run that ends above its start is still better than one that diverged
    worse = compare(pd.concat([runs("A", *settling(8, 8)), one_diverges("B", [5])]), LOWER, "step")
    assert worse["mean"].to_numpy() == pytest.approx((math.log(8 / 5) + math.log(8 / 8)) / 2)


def test_nothing_against_nothing_is_alike():
    flat, bump, jump = ([4] + [1.0] * 12 + [x] + [1.0] * 11 for x in (1, 1.04, 1.06))
    calm = runs("A", flat, flat)
    assert words(calm, runs("B", flat, flat), sentence=STABLE) == ALIKE
    assert words(calm, runs("B", bump, bump), sentence=STABLE) == ALIKE
    assert words(calm, runs("B", jump, jump), sentence=STABLE) == HOLDS
    zero = runs("A", *settling(0, 0))
    assert words(zero, runs("B", *settling(0, 1e-7))) == ALIKE
    assert words(zero, runs("B", *settling(1e-3, 1e-3))) == HOLDS
    assert words(zero, runs("B", *settling(1e-3, 1e-3)), sentence=replace(LOWER, resolution=1e-3)) == ALIKE
    assert words(zero, zero.assign(label="B"), sentence=STABLE) == ALIKE


def test_one_seed_decides_nothing():
    assert words(runs("A", *settling(0.1)), runs("B", *settling(3))) == UNDECIDED


def test_a_sentence_is_as_good_as_the_weakest_of_its_comparisons():
    table = pd.concat([runs("A", *settling(1, 1)), *(runs(f"{x}", *settling(x, x)) for x in (0.5, 0.9999, 2, 3))])
    table = pd.concat([table, runs("noisy", *settling(0.1, 3))])

    def against(*rivals, **changed):
        return judge(table, replace(LOWER, rivals=rivals, **changed))

    assert against("2", "3") == HOLDS
    assert against("2", "0.9999") == ALIKE
    assert against("2", "0.9999", "noisy") == UNDECIDED
    assert against("2", "noisy", "0.5") == FAILS
    assert against("0.9999", means="alike") == HOLDS
    assert against("0.9999", "2", means="alike") == FAILS
    assert against("0.5", means="alike") == FAILS
    assert against("0.9999", "noisy", "2", means="differs") == HOLDS
    assert against("0.9999", "noisy", means="differs") == UNDECIDED
    assert against("0.9999", means="differs") == FAILS
    assert against("2", "0.5", contains=("0.5",)) == UNDECIDED
    assert against("2", "0.5", contains=("2",)) == FAILS
    assert against("2", untestable={"2": "no number is stated"}) == UNTESTABLE
    assert against("2", "no runs", "noisy", untestable={"no runs": "no number is stated"}) == UNTESTABLE
    assert against("0.5", "no runs", untestable={"no runs": "no number is stated"}) == FAILS


def test_bad_sentences_and_tables_are_refused():
    table = runs("A", *settling(1, 1))
    for changed, says in [
        ({"measure": "better"}, "no measure 'better'"), ({"levels": (1.0,)}, "levels"),
        ({"measure": "faster"}, "levels"), ({"rivals": ()}, "give rivals"), ({"rivals": ("A",)}, "other than A"),
        ({"untestable": {"C": "why"}}, "among them"), ({"contains": ("C",)}, "among them"),
        ({"means": "faster"}, "means ahead, alike or differs"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=says):
            replace(LOWER, **changed)
    with pytest.raises(ValueError, match="no run is labelled B; there are A"):
        judge(table, LOWER)
    with pytest.raises(ValueError, match="no column accuracy; they have label, seed"):
        judge(table, replace(LOWER, metric="accuracy"))
    with pytest.raises(ValueError, match="below 0"):
        judge(table.assign(loss=-table.loss), LOWER)


def noisy_runs(label, rng, noise, seeds=5):
    """Losses that fall at a pace and to a level of their own, with noise."""
    u, normal = np.linspace(0, 1, 49), rng.standard_normal
    pace, level = 8 * np.exp(noise * normal((seeds, 1))), 0.4 * np.exp(noise * normal((seeds, 1)))
    return runs(label, *((level + 2 * np.exp(-pace * u)) * np.exp(noise * normal((seeds, 49)))))


@pytest.mark.slow  # hundreds of experiments
def test_a_method_against_itself_under_another_name_is_alike_or_undecided():
    rng, n = np.random.default_rng(0), 60
    experiments = [[pd.concat(noisy_runs(x, rng, noise) for x in "AB") for _ in range(n)] for noise in (0.005, 0.1)]
    for sentence in (LOWER, STABLE, replace(FASTER, levels=(1.0, 0.7))):
        quiet, loud = ([judge(table, sentence) for table in tables] for tables in experiments)
        assert sum(word in (HOLDS, FAILS) for word in quiet + loud) <= 0.05 * 2 * n + 2 * math.sqrt(0.05 * 0.95 * 2 * n)
        assert loud.count(UNDECIDED) > n / 2
        assert sentence is STABLE or quiet.count(ALIKE) > n / 2
    same = noisy_runs("A", rng, 0.1)
    assert words(same, same.assign(label="B"), sentence=STABLE) == ALIKE


def test_a_pair_in_which_a_method_loses_to_a_part_of_itself_is_shown_as_undecided():
    table = pd.concat(
        [runs("FMBO", *settling(1, 1)), runs("SOBA", *settling(0.8, 0.8)), runs("FSLA", *settling(0.8, 0.8))]
    )
    asked = Sentence("t", "FMBO", ("SOBA", "FSLA"), "lower", "loss", contains=("SOBA",))
    decided = decide(compare(table, asked, "equivalents"))
    assert set(decided.verdict) == {FAILS}
    shown = without_inclusions(decided, asked).set_index("rival").verdict
    assert set(shown["SOBA"]) == {UNDECIDED}
    assert set(shown["FSLA"]) == {FAILS}


# Robustness


@pytest.mark.slow
def test_robustness_is_a_row_for_each_rule_and_counts_in_how_many_a_verdict_stays():
    stated = pd.concat([runs("A", *settling(0.93, 0.93)), runs("B", *settling(1, 1))])
    tuned = stated.assign(equivalents=stated.equivalents * np.where(stated.label == "A", 10.0, 1.0))
    fast = replace(FASTER, text="A is faster", levels=(3.0, 2.0))
    table = robustness({"as stated": (stated, [LOWER, fast]), "tuned alike": (tuned, [LOWER, fast])})
    assert table.columns.tolist() == ["sentence", "track", "axis", "level", "margin", "verdict", "read"]
    assert len(table) == 2 * 3 * 3 * (1 + 3)
    low = table[table.sentence == LOWER.text].set_index(["track", "axis", "margin"]).verdict
    assert low["as stated"]["seconds"].tolist() == [HOLDS, HOLDS, ALIKE]
    # ten times the price leaves A two marks within the budget that both share, too few to be read
    assert low["tuned alike"]["equivalents"].tolist() == [UNDECIDED] * 3
    assert low["tuned alike"]["step"].tolist() == [HOLDS, HOLDS, ALIKE]
    count = stays(table, "as stated")
    # holds at 2 % and 5 % on five of six (track, axis), itself aside; the sixth cannot be read and is not counted
    assert count.loc[LOWER.text].tolist() == [9, 14, HOLDS]
    assert stays(table, "as stated", margin=0.1).loc[LOWER.text].tolist() == [4, 14, ALIKE]
    assert count.loc[fast.text, "of"] == 44
    with pytest.raises(ValueError, match="no verdict for track 'tuned'"):
        stays(table, "tuned")


def test_a_single_level_is_another_rule():
    a, b = runs("A", *[np.linspace(4, 0.5, 25)] * 3), runs("B", *[np.r_[4, np.linspace(2, 1.75, 24)]] * 3)
    table = robustness({"as stated": (pd.concat([a, b]), [replace(FASTER, levels=(3.0, 1.8))])})
    by_level = table[(table.axis == "step") & (table.margin == 0.05)].verdict.tolist()
    assert by_level == [FAILS, FAILS, HOLDS]  # all, 3, 1.8


def test_a_method_without_a_place_on_an_axis_is_undecided_there():
    table = pd.concat([runs("A", *settling(1, 1)), runs("B", *settling(3, 3)).assign(equivalents=np.nan)])
    assert [judge(table, LOWER, axis) for axis in ("step", "equivalents", "seconds")] == [HOLDS, UNDECIDED, HOLDS]
    assert overall(decide(compare(table, LOWER, "step")), LOWER) == HOLDS
    assert compare(table, LOWER, "equivalents").n.tolist() == [0, 0]
    untestable = replace(LOWER, untestable={"B": "why"})
    assert set(robustness({"one": (table, [untestable])}).verdict) == {UNTESTABLE}
