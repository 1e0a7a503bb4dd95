"""Settings by one rule, on trials that are written by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from bilevel_book.verdicts.selection import best, expected_best, scores


def trial(label, *losses, stop="steps"):
    """A trial with a run for each list of losses."""
    runs = [pd.DataFrame({"label": label, "seed": k, "stop": stop, "loss": loss}) for k, loss in enumerate(losses)]
    return pd.concat([run.assign(step=range(len(run))) for run in runs])


def test_score_is_the_median_over_seeds_and_a_diverged_trial_cannot_win():
    wild = trial("C", [4.0, 0.1], [4.0, 0.1], [4.0, 0.1], stop="diverged")
    trials = [trial("A", [4, 0.1], [4, 5], [4, 6]), trial("B", [4, 2], [4, 3], [4, 3]), wild, trial("D", [4, 0.1])]
    score = scores(pd.concat(trials), "loss")
    assert score.to_dict() == {"A": 5, "B": 3, "C": math.inf}  # D was not in the finals
    assert best(score) == "B"
    assert scores(trial("A", 2.0 ** np.arange(13)), "loss").tolist() == [2**11]  # of the last three of twelve rows
    with pytest.raises(ValueError, match="all 1 trials diverged"):
        best(score[["C"]])


def test_best_of_k_trials_is_an_order_statistic():
    n, score = 24, pd.Series(np.random.default_rng(0).permutation(np.arange(1.0, 25)))
    table = expected_best(score, score)
    assert table["mean"].to_numpy() == pytest.approx([(n + 1) / (k + 1) for k in (1, 4, 12, 24)])
    assert table.loc[24].tolist() == [1, 1, 1, 1]
    assert table.loc[1, ["low", "median", "high"]].tolist() == [3, 12, 22]
    # what is shown need not be what was selected by: here the better the score, the worse
    assert expected_best(score, 100 - score)["mean"].to_numpy() == pytest.approx(100 - table["mean"].to_numpy())
    # best of two out of 1, 2, 3, inf: chances 3/6, 2/6, 1/6
    score = pd.Series([3, math.inf, 1, 2])
    table = expected_best(score, score, (1, 2, 4))
    assert table["mean"].tolist() == pytest.approx([math.inf, 10 / 6, 1])
    assert table.loc[2, ["low", "median", "high"]].tolist() == [1, 1, 3]
    with pytest.raises(ValueError, match="no best of 5 trials out of 4: take 1 to 4"):
        expected_best(score, score, (5,))
