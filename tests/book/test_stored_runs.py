"""The stored runs are complete, their settings are those that were chosen, and they say what the chapters say.

The tests on the chapters are about sentences that no cell checks: who is ahead of whom, when, and which way things go.
"""

import math

import pandas as pd
import pytest

from bilevel_book import stored
from bilevel_book.curves import at_marks, band, largest_rise
from bilevel_book.paths import RESULTS
from bilevel_core import experiments
from bilevel_core.experiments.report import last_quarter_median, tuning_scores

SLIDER = [10, 20, 30, 45, 60, 80, 100, 120, 150, 180, 210, 240, 270, 300]  # of chapter 9


@pytest.mark.checks("experiments:figure-1", "experiments:figure-2")
@pytest.mark.parametrize("name", [name for name in experiments.names() if "full" in experiments.load(name).sizes])
def test_every_run_of_the_full_size_is_stored_with_these_settings(name):
    folder = RESULTS / name / "full"
    assert [run.name for run in experiments.sweep(name, "full") if not experiments.is_stored(run, folder)] == []


def test_the_settings_of_the_main_comparison_are_the_best_of_their_grids():
    """The file says which values were chosen; the stored scores must say the same."""
    table = stored.read("hyper-representation", group="tuning")
    scores = tuning_scores(table, "upper_loss")
    chosen = {"FdeHBO": "FdeHBO, tuned", "PZOBO-S": "PZOBO-S, tuned", "F2SA": "F2SA", "F3SA": "F3SA"}
    runs = experiments.sweep("hyper-representation", "full")
    main_options = {run.label: run.options for run in runs if run.group == "main"}
    grid = {run.label: run.options for run in runs if run.group == "tuning"}
    for solver, rows in scores.groupby("solver"):
        assert len(rows) == 8
        if solver in chosen:
            assert main_options[chosen[solver]] == grid[rows.label.iloc[0]], solver


def test_the_decay_of_eta_in_hyper_cleaning_is_the_best_of_three():
    scores = tuning_scores(stored.read("hyper-cleaning", group="tuning"), "train_loss")
    runs = experiments.sweep("hyper-cleaning", "full")
    options = {(run.group, run.label): run.options for run in runs}
    assert set(scores.solver) == {
        label for (group, label), given in options.items() if group == "main" and "eta" in given
    }
    for solver, rows in scores.groupby("solver"):
        assert len(rows) == 3
        assert options["main", solver] == options["tuning", rows.label.iloc[0]], solver


def test_the_decay_of_eta_is_the_same_for_all_and_the_largest_that_was_tried():
    """What the assumptions ledger says in words."""
    decays = {
        (run.group, run.solver, run.label): run.options["eta"]["c"]
        for run in experiments.sweep("hyper-cleaning", "full", ["main", "tuning"])
        if "eta" in run.options
    }
    chosen = {solver: c for (group, solver, _), c in decays.items() if group == "main"}
    assert set(chosen) == {"FMBO", "SUSTAIN", "MRBO", "FSLA"}
    assert set(chosen.values()) == {max(decays.values())}


def test_seeds_of_the_tuning_are_not_those_of_the_report():
    for name in ("hyper-representation", "hyper-cleaning"):
        plans = experiments.load(name).sizes["full"]
        reported = {seed for group, plan in plans.items() if group != "tuning" for seed in plan.seeds}
        assert reported
        assert not reported & set(plans["tuning"].seeds)


# Chapter 9


@pytest.fixture(scope="module")
def representation():
    return stored.read("hyper-representation")


@pytest.fixture(scope="module")
def lenet_runs(representation):
    return representation[representation.group == "main"]


@pytest.fixture(scope="module")
def lenet_loss(lenet_runs):
    return band(at_marks(lenet_runs, "cpu_seconds", "upper_loss", SLIDER))["mean"]


@pytest.mark.checks("experiments:figure-1")
def test_fdehbo_overtakes_pzobo_s_after_twenty_seconds_and_the_control_leads_both(lenet_loss):
    behind = lenet_loss.loc["PZOBO-S"] < lenet_loss.loc["FdeHBO"]
    assert list(behind[behind].index) == [10, 20]
    published = lenet_loss.loc[["FdeHBO", "PZOBO-S"]].min()
    assert (lenet_loss.loc["alternating", 20:] < published.loc[20:]).all()


@pytest.mark.checks("experiments:figure-1")
def test_tuned_fdehbo_is_below_everybody_from_half_a_minute_on(lenet_loss, lenet_runs):
    lowest = lenet_loss.loc["FdeHBO, tuned", 30:] == lenet_loss.loc[:, 30:].min()
    assert lowest.all()
    last = lenet_runs.groupby(["label", "seed"]).upper_loss.last()
    assert (last["FdeHBO, tuned"] < last["FdeHBO"]).all()  # on every seed


def test_one_seed_of_f3sa_ends_where_it_started(lenet_runs):
    """It ends nearer to ln 10, the loss of ten equal scores, than to the end of any other seed."""
    last = lenet_runs[lenet_runs.label == "F3SA"].groupby("seed").upper_loss.last()
    stuck = [seed for seed in last.index if abs(last[seed] - math.log(10)) < (last.drop(seed) - last[seed]).abs().min()]
    assert len(stuck) == 1


def test_the_best_score_is_the_controls_and_the_papers_alpha_is_the_worst(representation):
    scores = tuning_scores(representation[representation.group == "tuning"], "upper_loss")
    assert scores.loc[scores.score.idxmin(), "solver"] == "alternating"
    options = {run.label: run.options for run in experiments.sweep("hyper-representation", "full", ["tuning"])}
    grid = scores[scores.solver == "FdeHBO"].assign(
        alpha=lambda rows: [options[label]["alpha"] for label in rows.label],
        beta=lambda rows: [options[label]["beta"] for label in rows.label],
    )
    published = experiments.paper_settings("hyper-representation", "FdeHBO")["alpha"]
    for _, column in grid.groupby("beta"):
        assert column.loc[column.score.idxmax(), "alpha"] == published == column.alpha.min()


def test_for_each_gradient_the_control_leads_and_fdehbo_is_behind(lenet_runs):
    calls = band(at_marks(lenet_runs, "gradients", "upper_loss", [2000, 4000, 6000, 8000]))["mean"]
    assert (calls.loc["alternating"] == calls.min()).all()
    assert (calls.loc["F2SA"] < calls.loc["FdeHBO"]).all()
    assert (calls.loc["PZOBO-S"] < calls.loc["FdeHBO"]).all()


# Chapter 10


@pytest.fixture(scope="module")
def cleaning():
    return stored.read("hyper-cleaning")


@pytest.fixture(scope="module")
def mnist_runs(cleaning):
    return cleaning[cleaning.group == "main"]


def test_fmbo_leads_for_three_seconds_and_is_then_overtaken_by_three(mnist_runs):
    loss = band(at_marks(mnist_runs, "cpu_seconds", "train_loss", [1, 2, 3, 4, 8, 12, 20]))["mean"]
    paper = loss.drop("alternating")
    assert (paper.loc["FMBO", [1, 2, 3]] == paper[[1, 2, 3]].min()).all()
    ours = loss.loc["FMBO"]
    assert loss.loc["SOBA", 4] < ours[4]  # in the fourth second
    assert loss.loc["stocBiO", 8] > ours[8]
    assert loss.loc["stocBiO", 12] < ours[12]  # from about ten seconds on
    assert loss.loc["FSLA", 12] > ours[12]
    assert loss.loc["FSLA", 20] < ours[20]  # around the fifteenth
    assert loss.loc["alternating", 1] < ours[1]  # the control, which cleans nothing, is as fast


def test_four_methods_end_where_nothing_is_cleaned_then_fmbo_then_the_rest(cleaning, mnist_runs):
    settled = last_quarter_median(mnist_runs, "cpu_seconds", "train_loss").groupby("label").mean()
    four = settled[["SOBA", "stocBiO", "AmIGO", "FSLA"]]
    assert four.max() < settled["FMBO"] < settled.drop([*four.index, "FMBO"]).min()
    bounds = last_quarter_median(cleaning[cleaning.group == "bounds"], "cpu_seconds", "train_loss")
    from_bound = (settled - bounds["nothing cleaned"].mean()).abs()
    from_oracle = settled - bounds["oracle"].mean()
    assert set(from_bound.nsmallest(4).index) == set(four.index)
    assert (from_bound < from_oracle)[four.index].all()


def test_fmbo_is_the_most_restless_but_two(mnist_runs):
    climbs = largest_rise(mnist_runs[mnist_runs.cpu_seconds > 6], "test_loss").groupby("label").mean()
    assert list(climbs.sort_values().index[-3:]) == ["FMBO", "alternating", "BSA"]


def test_at_equal_steps_fmbo_is_the_calmest(cleaning, mnist_runs):
    equal = cleaning[cleaning.group == "equal_steps"]
    equal = pd.concat([equal, mnist_runs[mnist_runs.seed.isin(equal.seed)]])
    climbs = largest_rise(equal[equal.cpu_seconds > 6], "train_loss").groupby("label").mean()
    assert climbs["FMBO, steps 0.1"] < climbs[["SOBA", "FSLA"]].min()
    assert climbs["FMBO"] < climbs[["SOBA, steps 0.3", "FSLA, steps 0.3"]].min()


def test_the_load_of_the_machine_shows_most_in_vrbo(mnist_runs):
    steps = mnist_runs.groupby(["label", "seed"]).step.last().unstack()
    assert (1 - steps.min(axis=1) / steps.max(axis=1)).idxmax() == "VRBO"


def test_nothing_is_cleaned_fmbo_moves_the_weights_most_and_amigo_ranks_them_best(mnist_runs):
    columns = ["sigma_noisy", "sigma_clean", "auc"]
    end = mnist_runs.groupby(["label", "seed"])[columns].last().groupby("label").mean()
    assert (end.sigma_noisy > 0.25).all()  # nearer to 1/2, where all began, than to 0
    apart = end.sigma_clean - end.sigma_noisy
    assert apart.idxmax() == "FMBO"
    assert end.auc.idxmax() == "AmIGO"
    assert 0 < apart["AmIGO"] < apart["FMBO"]  # the right way, and by less


def test_the_ranking_of_the_calm_runs_is_better_after_two_seconds_than_at_the_end(cleaning):
    auc = band(at_marks(cleaning[cleaning.group == "cleaning"], "cpu_seconds", "auc", [2, 59]))["mean"]
    for label in ("FMBO, calm", "FMBO, calm, momentum off"):
        assert auc.loc[label, 2] > auc.loc[label, 59]


def test_to_go_back_through_all_steps_costs_more_than_through_three(cleaning):
    runs = cleaning[cleaning.solver == "reverse"]
    last = runs[runs.group.isin(["main", "choices"])].groupby(["label", "seed"])[["cpu_seconds", "step"]].last()
    each = (last.cpu_seconds / last.step).groupby("label").mean()
    assert each["reverse, K 200"] > each["reverse"]
