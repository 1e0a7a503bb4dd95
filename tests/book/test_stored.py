"""The results that come with the book: all runs with the settings of today, and nothing else."""

import random
from datetime import date

import pandas as pd
import pytest

from bilevel_book.experiments import load, read, sweep, verify
from bilevel_book.experiments.tables import stored_runs
from bilevel_book.paths import RESULTS, shipped_experiments

MEASURED = ("table", "scaling", "slopes", "which_tool", "attention")
OTHERS = {f"cost/{name}" for name in MEASURED} | {"released/recorded"}
OTHERS |= {"hyper-cleaning/baselines", "hyper-cleaning/variance", "hyper-representation/variance"}


def test_every_table_is_that_of_a_group():
    files = [path.relative_to(RESULTS) for path in RESULTS.glob("[!.]*/*.*")]
    sizes = {name: load(name).sizes for name in shipped_experiments()}
    full, coming = (
        {f"{name}/{group}" for name in sizes for group in sizes[name].get(size, ())} for size in ("full", "next")
    )
    assert full | OTHERS <= {str(file.with_suffix("")) for file in files} <= full | coming | OTHERS
    assert {file.suffix for file in files} == {".csv", ".json"}
    assert len(files) <= 120


@pytest.mark.checks("experiments:figure-1", "experiments:figure-2")
@pytest.mark.parametrize("name", shipped_experiments())
def test_every_run_is_stored_with_the_settings_of_today(name):
    runs = sweep(name)
    assert [run.name for run in runs if not run.is_stored(RESULTS)] == []
    stored = [run for group in load(name).sizes["full"] for run in stored_runs(name, group).values()]
    assert len(stored) == len(runs)
    assert all(len(run.facts["commit"]) == 40 for run in stored)  # of a tree without changes


@pytest.mark.slow
@pytest.mark.parametrize("name", shipped_experiments())
def test_stored_run_is_what_the_code_gives(name):
    """The beginning of one of them, another every day; `python -m bilevel_book verify NAME` does all."""
    run = random.Random(str(date.today())).choice(sweep(name))
    assert verify(run).mismatch == ""


def test_read_gives_what_pandas_reads():
    table = read("hyper-cleaning", "main")
    pd.testing.assert_frame_equal(table, pd.read_csv(RESULTS / "hyper-cleaning" / "main.csv"))
    assert list(table)[:5] == ["label", "seed", "step", "samples", "gradients"]
    assert len(table.groupby(["label", "seed"])) == len(sweep("hyper-cleaning", groups=["main"]))


def test_decay_of_eta_in_hyper_cleaning_is_the_same_for_all():
    """What the assumptions ledger says in words."""
    main = load("hyper-cleaning").tables["main"]
    decays = {name: method.options["eta"] for name, method in main.items() if "eta" in method.options}
    assert set(decays) == {"FMBO", "SUSTAIN", "MRBO", "FSLA"}
    assert all(eta == decays["FMBO"] for eta in decays.values())


@pytest.mark.parametrize("name", ["hyper-representation", "hyper-cleaning", "after-2023"])
def test_seeds_of_the_tuning_are_not_those_of_the_report(name):
    plans, tuning = load(name).sizes["full"], {"pilot", "tuning", "finals"}
    reported = {seed for group, plan in plans.items() if group not in tuning for seed in plan.seeds}
    assert reported
    assert not reported & {seed for group in tuning & plans.keys() for seed in plans[group].seeds}
