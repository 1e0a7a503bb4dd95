"""The stored runs that decide are complete, and their settings are those that were chosen."""

import pytest

from bilevel_book import stored
from bilevel_book.labels import SIZES
from bilevel_book.paths import RESULTS
from bilevel_core import experiments
from bilevel_core.experiments.report import tuning_scores

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
