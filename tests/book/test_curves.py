"""Curves and scores from tables that are written by hand."""

import numpy as np
import pandas as pd

from bilevel_book.curves import (
    at_marks,
    band,
    first_below,
    interval,
    largest_rise,
    shared_end,
)


def test_between_two_rows_a_curve_is_straight(table):
    values = at_marks(table, "cpu_seconds", "upper_loss", [0, 6, 15, 30])
    assert values.loc[("A", 0)].tolist() == [8.0, 5.6, 3.0, 1.0]
    assert values.loc[("A", 1)].tolist() == [8.0, 7.0, 5.75, 4.0]
    assert values.loc[("C", 0)].tolist()[2] == 1.0
    assert np.isnan(values.loc[("C", 0), 30])  # it had diverged
    assert np.isnan(at_marks(table, "cpu_seconds", "upper_loss", [32]).loc[("A", 0), 32])  # it had ended


def test_a_band_is_mean_and_range_of_the_seeds(table, history):
    bands = band(at_marks(table, "cpu_seconds", "upper_loss", [15, 30]))
    assert bands.loc["A", "mean"].tolist() == [4.375, 2.5]
    assert bands.loc["A", "min"].tolist() == [3.0, 1.0]
    assert bands.loc["A", "max"].tolist() == [5.75, 4.0]
    both = pd.concat([table, history("C", 1, [0, 15, 30], [8.0, 2.0, 1.5])])
    bands = band(at_marks(both, "cpu_seconds", "upper_loss", [15, 30]))
    assert bands.loc["C", ("mean", 15)] == 1.5
    assert np.isnan(bands.loc["C", ("mean", 30)])  # one of the two diverged: the survivor's value is no mean


def test_an_interval_is_that_of_student(table):
    found = interval(at_marks(table, "cpu_seconds", "upper_loss", [15, 30]))
    half = 12.7062 * (5.75 - 3.0) / 2  # two seeds: t with one degree of freedom, and s / sqrt(2) is half their distance
    assert np.allclose(found.loc["A", [("mean", 15), ("low", 15), ("high", 15)]], [4.375, 4.375 - half, 4.375 + half])
    assert found.loc["C", [("mean", 15), ("low", 15), ("high", 15)]].tolist() == [1.0] * 3  # one seed
    assert np.isnan(found.loc["C", ("mean", 30)])


def test_first_below_and_largest_rise(table):
    reached = first_below(table, "cpu_seconds", "upper_loss", 2.0)
    assert reached["A"].tolist() == [20, np.inf]
    rises = largest_rise(table, "upper_loss")
    assert rises["A"].tolist() == [0.0, 0.0]
    assert rises["B"].tolist() == [0.5, 0.5]


def test_the_shared_end_is_that_of_the_shortest_run_that_did_not_diverge(table, history):
    short = history("A", 2, [0, 20], [8.0, 4.0])
    assert shared_end(table, "cpu_seconds") == 30
    assert shared_end(table, "step") == 3  # C, with two steps, diverged
    assert shared_end(pd.concat([table, short]), "cpu_seconds") == 20
    other_group = history("A", 0, [0, 40], [8.0, 4.0]).assign(group="another")
    assert shared_end(pd.concat([table, other_group]), "cpu_seconds") == 30
    assert shared_end(pd.concat([table, other_group]), "step") == 1  # the same label and seed, yet another run
