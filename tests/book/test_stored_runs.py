"""The stored runs are complete, their settings are those that were chosen, and they say what the chapters say.

The tests on the chapters are about sentences that no cell checks: who is ahead of whom, when, and which way things go.
"""

import math

import pytest

from bilevel_book import stored
from bilevel_book.curves import at_marks, band
from bilevel_book.labels import SIZES
from bilevel_book.paths import RESULTS
from bilevel_core import experiments
from bilevel_core.experiments.report import tuning_scores

SLIDER = [10, 20, 30, 45, 60, 80, 100, 120, 150, 180, 210, 240, 270, 300]  # of chapter 9


DECIDING = SIZES | {name: "full" for name in experiments.names() if "full" in experiments.load(name).sizes}


@pytest.mark.checks("experiments:figure-1", "experiments:figure-2")
@pytest.mark.parametrize(("name", "size"), DECIDING.items())
def test_every_run_that_decides_is_stored_with_these_settings(name, size):
    folder = RESULTS / name / size
    assert [run.name for run in experiments.sweep(name, size) if not experiments.is_stored(run, folder)] == []


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


def test_the_decay_of_eta_in_hyper_cleaning_is_the_same_for_all():
    """What the assumptions ledger says in words."""
    main = experiments.load("hyper-cleaning").tables["main"]
    decays = {name: method.options["eta"] for name, method in main.items() if "eta" in method.options}
    assert set(decays) == {"FMBO", "SUSTAIN", "MRBO", "FSLA"}
    assert all(eta == decays["FMBO"] for eta in decays.values())


@pytest.mark.parametrize(("name", "size"), SIZES.items())
def test_seeds_of_the_tuning_are_not_those_of_the_report(name, size):
    plans, tuning = experiments.load(name).sizes[size], {"pilot", "tuning", "finals"}
    reported = {seed for group, plan in plans.items() if group not in tuning for seed in plan.seeds}
    assert reported
    assert not reported & {seed for group in tuning & plans.keys() for seed in plans[group].seeds}


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
