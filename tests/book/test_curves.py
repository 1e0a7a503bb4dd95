"""Curves and scores from tables that are written by hand."""

import numpy as np

from bilevel_book.curves import at_marks, mean_curves


def test_between_two_rows_a_curve_is_straight(table):
    values = at_marks(table, "seconds", "upper_loss", [0, 6, 15, 30])
    assert values.loc[("A", 0)].tolist() == [8.0, 5.6, 3.0, 1.0]
    assert values.loc[("A", 1)].tolist() == [8.0, 7.0, 5.75, 4.0]
    assert values.loc[("C", 0)].tolist()[2] == 1.0
    assert np.isnan(values.loc[("C", 0), 30])  # it had diverged
    assert np.isnan(at_marks(table, "seconds", "upper_loss", [32]).loc[("A", 0), 32])  # it had ended


def test_an_interval_is_that_of_student(table):
    found = mean_curves(at_marks(table, "seconds", "upper_loss", [15, 30]))
    half = 12.7062 * (5.75 - 3.0) / 2  # two seeds: t with one degree of freedom, and s / sqrt(2) is half their distance
    assert np.allclose(found.loc["A", [("mean", 15), ("low", 15), ("high", 15)]], [4.375, 4.375 - half, 4.375 + half])
    assert found.loc["C", [("mean", 15), ("low", 15), ("high", 15)]].tolist() == [1.0] * 3  # one seed
    assert np.isnan(found.loc["C", ("mean", 30)])
