"""Measures, comparisons and verdicts, on runs that are written by hand, and what Holm's rule promises."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from bilevel_book.verdicts import Sentence, Verdict, compare, decide, judge
from bilevel_book.verdicts.deciding import holm
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


def test_lower_reads_the_median_of_the_last_quarter():
    curve, marks = only(runs("A", 2.0 ** np.arange(25)))
    assert curve.read(lower, marks) == (2**21 + 2**22) / 2  # of 19, ..., 24
    assert curve.read(lower, marks[:16]) == (2**14 + 2**15) / 2  # of 13, ..., 16


def test_stable_reads_the_largest_rise_after_the_first_tenth():
    curve, marks = only(runs("A", [9, 1, 2, 8, 4, 5, 3, *[1] * 17, 1.5]))
    assert curve.read(stable, marks) == 8  # at mark 3; the 1 of the first tenth is not forgotten
    late, _ = only(runs("A", [9, 2, 8, 1, *[1] * 20, 1.5]))
    assert late.read(stable, marks) == 1.5  # and a rise in the first tenth, at mark 2, does not count
    assert late.read(stable, marks[:16]) == 4  # where that mark is after the first tenth
    assert only(runs("A", np.arange(1.0, 26)[::-1]))[0].read(stable, marks) == 1


def test_faster_reads_the_crossing_of_the_running_minimum():
    curve, marks = only(runs("A", [10, 8, 9, 8.5, *[4] * 12, *[1] * 9]))
    assert curve.read(faster(9.0), marks) == 50  # half of the first 100 steps
    assert curve.read(faster(5.0), marks) == pytest.approx(300 + 75)  # from 8, the lowest, to 4
    assert curve.read(faster(2.0), marks) == pytest.approx(1500 + 200 / 3)
    assert curve.read(faster(2.0), marks[:15]) == math.inf  # not yet
    assert curve.read(faster(0.5), marks) == math.inf
    assert math.isnan(curve.read(faster(10.0), marks))  # it starts there


def test_a_run_with_few_rows_is_not_read_and_decides_nothing():
    few = runs("A", *[np.linspace(4, 0.1, 24)] * 3)
    curve, _ = only(few)
    marks = 2400 * np.arange(1, 25) / 24
    assert all(math.isnan(curve.read(measure, marks)) for measure in (lower, stable, faster(1.0)))
    rival = runs("B", *[[4, 3, 2] + [5, 2] * 11] * 3)
    assert {words(few, rival, sentence=s) for s in (LOWER, STABLE, FASTER)} == {UNDECIDED}


def test_runs_are_read_up_to_the_budget_they_share():
    long = runs("A", np.r_[np.full(25, 3.0), np.full(24, 1.0)], until=4800)
    short, diverged = runs("B", np.full(25, 2.0)), runs("C", [9.0, 9.0], stop="diverged", until=10)
    found = curves(pd.concat([long, short, diverged]), "step", "loss", "ABC")
    assert marks_of(found)[-1] == 2400
    assert found["A"][0].read(lower, marks_of(found)) == 3
    both = runs("B", *settling(2, 2)), runs("A", *settling(1, 1)), runs("C", *settling(3, 3), until=24)
    assert words(*both, sentence=replace(LOWER, rivals=("B", "C")), axis="step") == UNDECIDED
    compared = decide(compare(pd.concat(both), replace(LOWER, rivals=("B", "C")), "step"))
    assert compared.verdict.tolist() == [HOLDS] * 2 + [UNDECIDED] * 2  # C, which ends early, ends only its own


def test_a_diverged_run_reads_infinity_from_then_on():
    curve, _ = only(runs("A", [3.0] * 20 + [np.nan], stop="diverged", until=2000))
    marks = 2400 * np.arange(1, 25) / 24
    assert [curve.read(measure, marks) for measure in (lower, stable, faster(1.0), faster(2.9))] == [math.inf] * 4
    assert curve.read(lower, marks[:16]) == 3
    in_the_last_row, _ = only(runs("A", [3.0] * 24 + [np.nan], stop="diverged"))
    assert in_the_last_row.read(lower, marks) == math.inf


@pytest.mark.parametrize(
    ("ratio", "spread", "word"),
    [
        (0.80, 0.05, HOLDS), (0.80, 0.09, UNDECIDED), (1.25, 0.05, FAILS), (1.25, 0.09, UNDECIDED),
        (1.00, 0.01, ALIKE), (1.00, 0.03, UNDECIDED), (0.96, 0.001, ALIKE), (0.94, 0.001, HOLDS),
    ],
)  # fmt: skip
def test_interval_and_margin_decide_the_verdict(ratio, spread, word):
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
    assert words(a, b.assign(seed=b.seed + 2)) == UNDECIDED  # one partner decides nothing


def test_different_verdicts_at_the_two_horizons_are_undecided():
    late = [[4] + [1.2] * 16 + [0.5] * 8] * 3
    a, b = runs("A", *late), runs("B", *settling(1, 1, 1))
    assert compare(pd.concat([a, b]), LOWER, "step")["mean"].to_numpy() == pytest.approx(np.log([1.2, 0.5]))
    assert words(a, b) == UNDECIDED


def test_faster_averages_the_levels_that_count():
    a, b = runs("A", *[np.linspace(4, 1, 25)] * 3), runs("B", *[np.linspace(4, -2, 25).clip(2)] * 3)
    # A meets 3 at 1/3 of the budget and 2.5 at 1/2, B twice as soon; 1.9 is met at 0.7, too late; 5 is above the start
    table = compare(pd.concat([a, b]), replace(FASTER, levels=(5.0, 3.0, 2.5, 1.9, 0.1)), "step")
    assert table.levels.tolist() == [2, 2]
    assert table["mean"].to_numpy() == pytest.approx(math.log(2))
    assert words(a, b, sentence=replace(FASTER, levels=(3.0, 2.5))) == FAILS
    assert words(a, b, sentence=replace(FASTER, levels=(1.9, 0.1))) == UNDECIDED


def test_a_level_that_is_never_met_counts_as_the_horizon():
    a, b = runs("A", *[np.r_[np.linspace(4, 1, 13), np.ones(12)]] * 3), runs("B", *settling(2, 2, 2))
    table = compare(pd.concat([a, b]), replace(FASTER, levels=(1.75,)), "step")  # A is there at 3/8 of the budget
    assert table["mean"].to_numpy() == pytest.approx(np.log([3 / 8 * 3 / 2, 3 / 8]))
    assert words(a, b, sentence=replace(FASTER, levels=(1.75,))) == HOLDS
    # most seeds: three of four get there, then two
    for k, counts in ((3, 1), (2, 0)):
        some = runs("A", *[np.r_[np.linspace(4, 1, 13), np.ones(12)]] * k, *settling(*[2] * (4 - k)))
        table = pd.concat([some, runs("B", *settling(2, 2, 2, 2))])
        assert compare(table, replace(FASTER, levels=(1.75,)), "step").levels.tolist() == [counts] * 2


def diverging(label, *losses):
    return runs(label, *losses, stop="diverged", until=240)


def test_a_rival_that_diverges_everywhere_loses():
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


def one_diverges(label, levels):
    return pd.concat([runs(label, *settling(*levels)), diverging(label, [4.0, 9.0]).assign(seed=len(levels))])


def test_a_method_that_diverges_once_cannot_win_or_be_alike():
    nine = np.full(9, 1.0)
    ten = runs("B", *settling(*np.full(10, 3.9)))  # 4, for the diverged one, would not outweigh the nine others
    assert words(runs("A", *settling(*nine, 1.0)), ten) == HOLDS
    assert words(one_diverges("A", nine), ten) == UNDECIDED
    assert words(ten.assign(label="A"), one_diverges("B", nine)) == UNDECIDED
    shared = pd.concat([one_diverges("A", nine), one_diverges("B", 2 * nine)])  # r = 0 on the tenth
    assert compare(shared, LOWER, "step")["mean"].to_numpy() == pytest.approx(-0.9 * math.log(2))
    assert judge(shared, LOWER) == HOLDS
    assert words(runs("A", *settling(*nine, 1.0)), one_diverges("B", 1.5 * nine)) == HOLDS


def test_values_below_the_resolution_are_alike():
    flat, bump, jump = ([4] + [1.0] * 12 + [x] + [1.0] * 11 for x in (1, 1.04, 1.06))
    calm = runs("A", flat, flat)
    assert words(calm, runs("B", bump, bump), sentence=STABLE) == ALIKE
    assert words(calm, runs("B", jump, jump), sentence=STABLE) == HOLDS
    zero = runs("A", *settling(0, 0))
    assert words(zero, runs("B", *settling(0, 1e-7))) == ALIKE
    assert words(zero, runs("B", *settling(1e-3, 1e-3))) == HOLDS
    assert words(zero, runs("B", *settling(1e-3, 1e-3)), sentence=replace(LOWER, resolution=1e-3)) == ALIKE


def test_a_sentence_has_the_worst_verdict_of_its_rivals():
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
    assert against("0.9999", "noisy", "2", means="differs") == HOLDS
    assert against("0.9999", "noisy", means="differs") == UNDECIDED
    assert against("0.9999", means="differs") == FAILS
    assert against("2", "0.5", contains=("0.5",)) == UNDECIDED  # it loses to a special case of itself
    assert against("2", "no runs", "noisy", untestable={"no runs": "no number is stated"}) == UNTESTABLE
    assert against("0.5", "no runs", untestable={"no runs": "no number is stated"}) == FAILS


def test_invalid_sentences_and_tables_raise():
    table = runs("A", *settling(1, 1))
    for changed, says in [
        ({"measure": "better"}, "measure must be one of faster, lower"), ({"levels": (1.0,)}, "levels"),
        ({"measure": "faster"}, "levels"), ({"rivals": ()}, "give rivals"), ({"rivals": ("A",)}, "besides A"),
        ({"untestable": {"C": "why"}}, "among them"), ({"contains": ("C",)}, "among them"),
        ({"means": "faster"}, "means must be one of ahead, alike"),
    ]:  # fmt: skip
        with pytest.raises(ValueError, match=says):
            replace(LOWER, **changed)
    with pytest.raises(ValueError, match="no run is labelled B; there are A"):
        judge(table, LOWER)
    with pytest.raises(ValueError, match="no column accuracy; they have label, seed"):
        judge(table, replace(LOWER, metric="accuracy"))
    with pytest.raises(ValueError, match="below 0"):
        judge(table.assign(loss=-table.loss), LOWER)


def compared(r):
    """Of log ratios, a row for each rival: the table that `compare` would make."""
    rows = {"rival": [f"rival {i}" for i in range(len(r))], "horizon": "end"}
    diverged = dict.fromkeys(("first_diverged", "rival_diverged", "both_diverged"), 0)
    n = r.shape[1]
    return pd.DataFrame(rows | diverged | {"n": n, "mean": r.mean(axis=1), "error": r.std(axis=1, ddof=1) / n**0.5})


def test_holm_tests_the_smallest_first_and_stops_at_the_first_failure():
    a = 0.025
    assert holm(np.array([0.02, 0.001, 0.012])) == pytest.approx([a, a / 3, a / 2])
    assert holm(np.array([0.02, 0.001, 0.013])) == pytest.approx([a / 2, a / 3, a / 2])  # 0.013 > a / 2: 0.02 stays


M = math.log(1.05)


@pytest.mark.slow  # hundreds of families
@pytest.mark.parametrize(
    ("truth", "spread", "most"),
    [
        ([-M] * 6, 0.1, 0.025),  # on the margin: only "holds" is wrong; without Holm in 14 sentences of a hundred
        ([0.0] * 6, 1.0, 0.05),  # both sides are wrong
        ([-1.0, 1.0, -1.0, -M, M, 0.0], 0.05, 0.05),  # three are easy, and leave the others a wider level
    ],
)
def test_wrong_verdicts_are_as_rare_as_promised(truth, spread, most):
    families, rng, truth = 400, np.random.default_rng(1), np.array(truth)[:, None]
    true = np.select([truth[:, 0] < -M, truth[:, 0] > M], [HOLDS, FAILS], ALIKE)
    wrong = 0
    for _ in range(families):
        said = decide(compared(truth + spread * rng.standard_normal((6, 5)))).verdict.to_numpy()
        wrong += any(word not in (right, UNDECIDED) for word, right in zip(said, true, strict=True))
    assert 0 < wrong / families < most + 3 * math.sqrt(most * (1 - most) / families)
