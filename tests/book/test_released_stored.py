"""What a switch changes, from a few paired seeds; and the pictures of Chapter 11 show the tables."""

import math

import numpy as np
import pandas as pd
import pytest

from bilevel_book.figures.released import by_switch
from bilevel_book.released.stored import HALF, RENOISED, at_the_published_step, readings
from bilevel_book.verdicts.judging import against
from bilevel_book.verdicts.student import quantile

READ = pd.DataFrame(
    [[1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [2.0, 4.0, 8.0], [0.5, 1.0, 2.0], [0.1, 2.0, 40.0]],
    index=["correct", "same", "double", "half", "wild"],
)


def test_words_are_said_of_ratios_on_the_same_seed():
    judged = against(READ)
    assert judged.word.to_dict() == {"same": "no difference", "double": "higher", "half": "lower", "wild": "undecided"}
    assert judged.ratio.tolist() == pytest.approx([1, 2, 0.5, 1])
    assert against(READ, "double").word["half"] == "lower"
    pd.testing.assert_frame_equal(against(READ * [1.0, 100.0, 0.01]), judged)  # a seed that is hard for all


def test_interval_is_student_s_shared_by_holm():
    """One row: t at 97.5 %. Of two that are equally clear the first is judged at 98.75 %."""
    r = np.array([0.1, 0.3, 0.35])
    read = pd.DataFrame([np.ones(3), np.exp(r)], ["correct", "switch"])
    half = quantile(0.975, 2) * r.std(ddof=1) / math.sqrt(3)
    row = against(read).loc["switch"]
    assert (row.low, row.ratio, row.high) == pytest.approx(tuple(np.exp([r.mean() - half, r.mean(), r.mean() + half])))
    read.loc["other"] = read.loc["switch"]  # as clear, or as little so
    shared = quantile(1 - 0.05 / 4, 2) * r.std(ddof=1) / math.sqrt(3)
    assert np.log(against(read).high.max()) - r.mean() == pytest.approx(shared)


def test_longer_runs_pass_through_the_ends_of_the_shorter_ones():
    """So that re-noised labels, which ran with the longer ones, can stand beside the other switches."""
    for column in ("train_loss", "auc", "norm_v"):
        ends, longer = readings("switches", column), readings("published", column, HALF)
        assert ends.loc["correct"].equals(longer.loc["correct", ends.columns])
        assert at_the_published_step(column).loc[RENOISED].equals(longer.loc[RENOISED, ends.columns])


def test_line_for_each_switch_has_its_mean_and_its_verdict():
    right = READ.loc[["correct", "double", "half", "same", "wild"]]
    _, left, other = by_switch("title", right, right.loc[["correct", "wild"]]).axes
    marks = [line.get_xdata()[0] for line in left.lines if line.get_marker() not in ("None", None)]
    assert marks == pytest.approx(right.mean(axis=1)[1:])
    assert [text.get_text() for text in left.get_yticklabels()] == list(right.index[1:])
    assert [text.get_text() for text in left.texts[2:]] == ["higher", "lower", "no difference", "undecided"]
    assert [text.get_text() for text in other.texts[2:]] == ["undecided"]
