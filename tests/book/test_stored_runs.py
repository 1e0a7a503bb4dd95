"""The stored runs are complete, and their settings are those that were chosen."""

import pytest
from bilevel_book.stored import SIZE

from bilevel_book import experiments
from bilevel_book.paths import RESULTS


@pytest.mark.checks("experiments:figure-1", "experiments:figure-2")
@pytest.mark.parametrize("name", experiments.names())
def test_every_run_is_stored_with_these_settings(name):
    folder = RESULTS / name / SIZE
    assert [run.name for run in experiments.sweep(name, SIZE) if not experiments.is_stored(run, folder)] == []


def test_the_decay_of_eta_in_hyper_cleaning_is_the_same_for_all():
    """What the assumptions ledger says in words."""
    main = experiments.load("hyper-cleaning").tables["main"]
    decays = {name: method.options["eta"] for name, method in main.items() if "eta" in method.options}
    assert set(decays) == {"FMBO", "SUSTAIN", "MRBO", "FSLA"}
    assert all(eta == decays["FMBO"] for eta in decays.values())


@pytest.mark.parametrize("name", ["hyper-representation", "hyper-cleaning", "after-2023"])
def test_seeds_of_the_tuning_are_not_those_of_the_report(name):
    plans, tuning = experiments.load(name).sizes[SIZE], {"pilot", "tuning", "finals"}
    reported = {seed for group, plan in plans.items() if group not in tuning for seed in plan.seeds}
    assert reported
    assert not reported & {seed for group in tuning & plans.keys() for seed in plans[group].seeds}
