"""The rules of the protocol, on runs that are written by hand and whose numbers are known."""

import math

import numpy as np
import pytest

from bilevel_book.verdicts.judging import (
    Curve,
    Pair,
    Verdict,
    compare,
    crossing_times,
    decide,
    levels_of,
    lower,
    seeds_needed,
    stable,
    worst,
)

SUPPORTED, NO_DIFFERENCE, UNDECIDED, CONTRADICTED, _ = Verdict


def curve(*values, until=100.0, diverged=False):
    return Curve(np.linspace(0, until, len(values)), np.array(values, float), diverged)


def pair(*r, missed=0, diverged=()):
    """A pair with these log ratios, in which both missed so many levels on every seed."""
    gone = np.array([seed in diverged for seed in range(len(r))])
    return Pair(np.array(r, float), np.full(len(r), missed), (0, 0), np.stack([gone, ~gone & False], 1))


def around(ratio, spread=0.001, n=12):
    """n log ratios with this mean ratio and standard deviation."""
    r = np.resize([1.0, -1.0], n)
    return math.log(ratio) + spread * r / r.std(ddof=1)


def verdict(r, **options):
    return decide({"rival": pair(*r)}, **options).verdict["rival"]


def test_levels_are_the_nine_of_the_protocol():
    levels = levels_of("upper_loss")
    assert len(levels) == 9
    assert levels[[0, -1]] == pytest.approx([1.84, 0.16])
    assert np.diff(np.log(levels)) == pytest.approx(math.log(0.16 / 1.84) / 8)
    assert [levels_of(name)[-1] for name in ("test_loss", "train_loss")] == pytest.approx([0.55, 0.52])


def test_crossing_is_straight_between_rows_and_the_first_one():
    run = curve(10, 6, 8, 2, 9, 1)  # rows at 0, 20, ..., 100
    assert crossing_times(run, np.array([7.0, 6.0, 5.0, 1.0]), 100) == pytest.approx([15, 20, 50, 100])
    assert crossing_times(run, np.array([5.0, 0.5]), 49).tolist() == [math.inf, math.inf]
    assert crossing_times(run, np.array([5.0]), 50) == pytest.approx([50])
    assert crossing_times(curve(10, 1, diverged=True), np.array([5.0]), 100).tolist() == [math.inf]
    with pytest.raises(ValueError, match="starts at 2 cannot cross the level 2"):
        crossing_times(curve(2, 1), np.array([2.0]), 100)


def test_lower_is_the_median_of_the_last_quarter_of_the_budget():
    run = curve(9, 9, 9, 5, 1, 2, until=125)  # the last row is beyond the budget
    assert lower(run, 100) == 3  # of the rows at 75 and 100
    assert lower(run, 125) == 1.5
    with pytest.raises(ValueError, match="no row in the last quarter of the budget 100; the last one is at 60"):
        lower(curve(2, 1, until=60), 100)


def test_stable_is_the_largest_rise_after_the_first_tenth():
    rising = Curve(np.array([0.0, 5, 10, 50, 100, 110]), np.array([8.0, 2, 9, 4, 3, 99]))
    assert stable(rising, 100) == 2  # 9 / 2 is at the end of the first tenth, 99 after the budget
    assert stable(rising, 99) == 4.5
    assert stable(curve(3, 2, 1), 100) == 1


def test_faster_is_the_geometric_mean_over_levels_with_the_budget_for_a_missed_one():
    levels = np.array([8.0, 4.0, 2.0])
    quick, slow = curve(16, 0, until=100), curve(16, 4, 4)  # crosses 8 at 33.3, 4 at 50, never 2
    found = compare({0: quick, 1: quick}, {0: slow, 1: slow, 7: slow}, "faster", 100, levels)
    assert found.by_level[0] == pytest.approx(np.log([50 / (100 / 3), 75 / 50, 87.5 / 100]))
    assert found.r == pytest.approx(found.by_level.mean(1))
    assert (found.missed, found.both_missed.tolist()) == ((0, 2), [0, 0])


def test_pair_is_undecided_when_both_miss_more_than_three_levels_on_most_seeds():
    clear = around(0.5)
    assert decide({"rival": pair(*clear, missed=3)}).verdict.tolist() == [SUPPORTED]
    assert decide({"rival": pair(*clear, missed=4)}).verdict.tolist() == [UNDECIDED]
    half = pair(*clear)
    half.both_missed[:6] = 9
    assert half.is_readable
    half.both_missed[6] = 9
    assert not half.is_readable


@pytest.mark.parametrize(
    ("ratio", "margin", "found"),
    [
        (0.95, 0.05, SUPPORTED), (0.9535, 0.05, UNDECIDED), (0.956, 0.05, NO_DIFFERENCE), (1.046, 0.05, NO_DIFFERENCE),
        (1.0495, 0.05, UNDECIDED), (1.053, 0.05, CONTRADICTED), (0.956, 0.02, SUPPORTED), (1.053, 0.1, NO_DIFFERENCE),
    ],
)  # fmt: skip
def test_verdict_is_that_of_the_interval_against_the_margin(ratio, margin, found):
    assert verdict(around(ratio, 0.003), margin=margin) == found


def test_interval_is_that_of_student():
    row = decide({"rival": pair(*around(0.8, 0.1))}).loc["rival"]
    half = 2.200985 * 0.1 / math.sqrt(12)
    assert np.log([row.low, row.high]) == pytest.approx([math.log(0.8) - half, math.log(0.8) + half], abs=1e-6)
    assert (row.n, row.ratio) == (12, pytest.approx(0.8))


def test_holm_tests_the_clearest_rival_at_a_third_and_ends_with_the_first_undecided():
    rows = decide({"A": pair(*around(0.9, 0.08)), "B": pair(*around(0.5, 0.1)), "C": pair(*around(0.9, 0.08))})
    halves = (np.log(rows.high) - np.log(rows.low)) / 2 * math.sqrt(12) / np.array([0.08, 0.1, 0.08])
    assert rows.verdict.tolist() == [UNDECIDED, SUPPORTED, UNDECIDED]
    assert halves.tolist() == pytest.approx([2.5931, 2.8200, 2.5931], abs=1e-3)  # t of 1 - 0.05 / 4 and / 6, 11 degrees
    assert decide({"A": pair(*around(0.9, 0.08))}).verdict["A"] == SUPPORTED  # alone, at 1 - 0.05 / 2


def test_much_is_one_sided_around_a_half():
    found = [decide({"rival": pair(*around(ratio, 0.02))}).much["rival"] for ratio in (0.48, 0.5, 0.52, 2)]
    assert found == [SUPPORTED, UNDECIDED, CONTRADICTED, CONTRADICTED]


def test_much_needs_levels_that_are_met_and_runs_that_did_not_diverge():
    assert decide({"rival": pair(*around(0.3), missed=4)}).much["rival"] == UNDECIDED
    assert decide({"rival": pair(*around(3), missed=4)}).much["rival"] == UNDECIDED
    assert decide({"rival": pair(*around(0.3), diverged=[3])}).much["rival"] == UNDECIDED
    swapped = pair(*around(3), diverged=[3])
    swapped.diverged[:] = swapped.diverged[:, ::-1]
    assert decide({"rival": swapped}).much["rival"] == UNDECIDED


def test_diverged_run_has_the_worst_number_and_cannot_win():
    good, gone = curve(4, 1, 1, 1, 1), curve(4, 0.1, diverged=True)
    assert compare({0: gone}, {0: good}, "lower", 100).r.tolist() == pytest.approx([math.log(4)])  # its start
    assert compare({0: gone}, {0: curve(4, 9, 9, 9, 9)}, "lower", 100).r.tolist() == [0]  # the worst of the pair
    assert compare({0: gone}, {0: curve(4, 2, 4, 2)}, "stable", 100).r.tolist() == [0]
    times = compare({0: gone}, {0: curve(4, 0)}, "faster", 100, np.array([2.0])).r
    assert times.tolist() == pytest.approx([math.log(100 / 50)])
    assert compare({0: gone}, {0: gone}, "lower", 100).r.tolist() == [0]
    clear = around(0.5)
    assert decide({"rival": pair(*clear, diverged=[3])}).verdict["rival"] == UNDECIDED
    assert decide({"rival": pair(*-clear, diverged=[3])}).verdict["rival"] == CONTRADICTED
    swapped = pair(*-clear, diverged=[3])
    swapped.diverged[:] = swapped.diverged[:, ::-1]
    assert decide({"rival": swapped}).verdict["rival"] == UNDECIDED


def test_seeds_needed_bring_the_interval_within_five_per_cent():
    assert seeds_needed(0.0) == 2
    n = seeds_needed(0.1)
    reach = [2.1009 * 0.1 / math.sqrt(19), 2.1098 * 0.1 / math.sqrt(18)]  # t for 18 and for 17 degrees of freedom
    assert n == 19
    assert reach[0] < math.log(1.05) < reach[1]
    assert math.isnan(seeds_needed(math.nan))


def test_worst_follows_the_order_of_the_protocol():
    assert worst([SUPPORTED, NO_DIFFERENCE]) == NO_DIFFERENCE
    assert worst([UNDECIDED, NO_DIFFERENCE]) == UNDECIDED
    assert worst([CONTRADICTED, UNDECIDED, SUPPORTED]) == CONTRADICTED
