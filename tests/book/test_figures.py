"""Figures show divergence and bounds as the tables have them; the chapters draw the rest."""

import pandas as pd

from bilevel_book.figures.reproduction import race


def test_diverged_run_is_marked_with_a_cross(table):
    panel = race(table, ["upper_loss"], "seconds").axes[0]
    crosses = [line for line in panel.lines if line.get_marker() == "x"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in crosses] == [(30, 1.0)]


def test_band_of_accuracies_stays_below_one(history):
    runs = pd.concat([history("SOBA", seed, [0, 1], [0.5, end]) for seed, end in ((0, 0.99), (1, 0.5))])
    panel = race(runs.rename(columns={"upper_loss": "upper_accuracy"}), ["upper_accuracy"], "seconds").axes[0]
    (band,) = panel.collections
    assert band.get_paths()[0].vertices[:, 1].max() == 1.0  # Student's t alone would go to 3.9
