"""Sweeps: the runs are what the file says."""

import pytest

from bilevel_book.experiments import load, paper_settings, sweep
from bilevel_core import FdeHBO
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power, Steps
from bilevel_core.solvers import SOBA


class Brought(SOBA):
    """A method that a user brings."""


class Own(Quadratic):
    """A problem that a user brings."""


def test_a_sweep_is_what_the_file_says(small):
    runs = sweep(small, "full")
    assert [(r.group, r.label, r.seed) for r in runs if r.group == "main"] == [
        ("main", label, seed) for seed in (0, 1) for label in ("FdeHBO", "SOBA", "FdeHBO, delta 1")
    ]
    changed = next(r for r in runs if r.label == "FdeHBO, delta 1")
    assert changed.make_solver() == FdeHBO(alpha=0.05, eta=Power(1.0, 7.0, 0.5, 1.0), r_v=float("inf"), delta=1.0)
    assert next(r for r in runs if r.label == "SOBA").make_solver().alpha == Steps((0.1, 0.01), (5,))
    grid = [r for r in runs if r.group == "tuning"]
    assert [(r.options["alpha"], r.options["beta"]) for r in grid] == [
        (a, b) for a in (0.01, 0.1) for b in (0.2, 0.3, 0.4)
    ]
    (quiet,) = (r for r in runs if r.group == "quiet")
    assert (quiet.problem_options, quiet.seed, quiet.budget) == ({"noise": 0.0}, 3, {"steps": 10})
    (bold,) = (r for r in runs if r.group == "bold")
    assert (bold.options["alpha"], bold.options["delta"]) == (0.3, 1.0)


def test_filters_keep_what_they_name(small):
    assert {(r.group, r.label) for r in sweep(small, "full", ["main"], ["SOBA"])} == {("main", "SOBA")}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("huge",), "unknown size of small 'huge'; known are smoke, full"),
        (("smoke", ["tuning"]), "unknown group of small, size smoke, 'tuning'; known are main"),
        (("full", None, ["Sova"]), "unknown label of small, size full, 'Sova'; known are FdeHBO, alpha 0.01"),
    ],
)
def test_a_name_that_is_not_there_is_refused(small, given, message):
    with pytest.raises(ValueError, match=message):
        sweep(small, *given)


def test_a_value_that_the_solver_refuses_is_told_before_any_run(write):
    with pytest.raises(
        ValueError, match=r"small, tuning, FdeHBO, alpha -1.0.*alpha must be a positive number, got -1.0"
    ):
        sweep(write(("alpha = [0.01, 0.1]", "alpha = [0.01, -1.0]")), "full")


def test_two_runs_in_one_place_are_refused(write):
    with pytest.raises(ValueError, match="2 runs of small would be stored as main/FdeHBO_0"):
        sweep(
            write(('"FdeHBO, delta 1"]\n', '"FdeHBO "]\n'), ('only = ["FdeHBO, delta 1"]', 'only = ["SOBA"]')), "full"
        )


def test_problems_and_solvers_may_be_brought(write):
    path = write(
        ('problem = "Quadratic"', f'problem = "{__name__}:Own"'),
        ("[main.SOBA]", f'[main.SOBA]\nsolver = "{__name__}:Brought"'),
    )
    (run,) = sweep(path, "smoke", labels=["SOBA"])
    assert type(run.make_solver()).__name__ == "Brought"
    assert type(run.make_problem()).__name__ == "Own"


def test_the_seed_of_the_run_is_that_of_the_data(write):
    first, second = sweep(write(), "full", ["main"], ["SOBA"])
    assert not first.make_problem().A.equal(second.make_problem().A)
    assert first.make_problem() is first.make_problem()  # data are loaded once
    fixed = sweep(
        write(("options = { noise = 0.5 }", "options = { noise = 0.5, seed = 9 }")), "full", ["main"], ["SOBA"]
    )
    assert fixed[0].make_problem().A.equal(fixed[1].make_problem().A)


def test_the_settings_of_the_paper_for_fdehbo():
    assert paper_settings("hyper-representation", "FdeHBO") == {
        "alpha": 0.008, "beta": 0.8, "lam": 0.05, "eta": 0.9, "delta": 0.1, "r_v": 10.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="unknown method of hyper-representation 'SOBA'; known are FdeHBO, PZOBO-S"):
        paper_settings("hyper-representation", "SOBA")


def test_the_settings_of_the_paper_for_hyper_cleaning():
    """What the appendix states: steps, inner loops, the series; a decaying eta for FMBO."""
    settings = {name: paper_settings("hyper-cleaning", name) for name in load("hyper-cleaning").tables["main"]}
    steps = {name: (given["alpha"], given["beta"]) for name, given in settings.items()}
    assert steps.pop("FMBO") == (0.3, 0.3)
    assert steps.pop("SUSTAIN") == (0.1, 0.03)
    steps.pop("alternating")  # not of the paper
    assert set(steps.values()) == {(0.1, 0.1)}
    assert len(steps) == 9
    assert {name: given["inner"] for name, given in settings.items() if "inner" in given} == {
        "stocBiO": 200, "AID-FP": 200, "reverse": 200, "BSA": 200, "AmIGO": 200, "VRBO": 20,
    }  # fmt: skip
    assert {given["eta_series"] for given in settings.values() if "eta_series" in given} == {0.5}
    assert {given[name] for given in settings.values() for name in ("Q", "K") if name in given} == {3}
    eta = settings["FMBO"]["eta"]
    assert eta(10**6) < eta(10**4) < eta(2000) < 1
    batch = {run.label: run.problem_options.get("batch_size") for run in sweep("hyper-cleaning", "full", ["main"])}
    assert {name: batch[name] for name in ("FMBO", "MRBO", "stocBiO")} == {"FMBO": 100, "MRBO": 1000, "stocBiO": 1000}
    assert batch["VRBO"] * settings["VRBO"]["large"] == 500
    assert settings["VRBO"]["period"] == 3
    assert {run.problem_options["C"] for run in sweep("hyper-cleaning", "full")} == {0.001}
