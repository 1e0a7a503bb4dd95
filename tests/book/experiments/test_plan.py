"""Sweeps: the runs are what the file says."""

import pytest

from bilevel_book.experiments import Plan, load, paper_settings, read, report, runs_of, sweep
from bilevel_book.experiments.files import Steps
from bilevel_book.experiments.running import reproduce_in_order
from bilevel_core import FdeHBO
from bilevel_core.problems import Quadratic
from bilevel_core.schedules import Power
from bilevel_core.solvers import SOBA


class Brought(SOBA):
    """A method that a user brings."""


class Own(Quadratic):
    """A problem that a user brings, with the loss by which trials are chosen."""

    def evaluate(self, x, y):
        found = super().evaluate(x, y)
        return found | {"selection_loss": found["objective"], "test_accuracy": 0.75}


def test_sweep_is_what_the_file_says(small):
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


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("huge",), "unknown size of small 'huge'; known are smoke, full"),
        (("smoke", ["tuning"]), "unknown group of small, size smoke, 'tuning'; known are main"),
        (("full", None, ["Sova"]), "unknown label of small, size full, 'Sova'; known are FdeHBO, alpha 0.01"),
    ],
)
def test_unknown_names_raise(small, given, message):
    with pytest.raises(ValueError, match=message):
        sweep(small, *given)


def test_invalid_value_raises_before_any_run(write):
    with pytest.raises(ValueError, match=r"small, tuning, FdeHBO: .*alpha must be a positive number, got -1.0"):
        sweep(write(("alpha = [0.01, 0.1]", "alpha = [0.01, -1.0]")), "full")


def test_problem_that_cannot_be_made_raises(write):
    (run, *_) = sweep(write(("noise = 0.5", "dim_x = -1")), "smoke")
    with pytest.raises(ValueError, match=r'Quadratic cannot be made with \{"seed": 0, "dim_x": -1\}: RuntimeError'):
        run.make_problem()


def test_two_runs_of_one_name_raise(write):
    path = write(('"FdeHBO, delta 1"]\n', '"FdeHBO "]\n'), ('only = ["FdeHBO, delta 1"]', 'only = ["SOBA"]'))
    with pytest.raises(ValueError, match="2 runs of small have the name main/FdeHBO_0"):
        sweep(path, "full")


def test_problems_and_solvers_of_users_are_found(write):
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


def test_paper_settings_of_fdehbo():
    assert paper_settings("hyper-representation", "FdeHBO") == {
        "alpha": 0.008, "beta": 0.8, "lam": 0.05, "eta": 0.9, "delta": 0.1, "r_v": 10.0,
    }  # fmt: skip
    with pytest.raises(ValueError, match="unknown method of hyper-representation 'SOBA'; known are FdeHBO, PZOBO-S"):
        paper_settings("hyper-representation", "SOBA")


def test_paper_settings_of_hyper_cleaning():
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
    batch = {run.label: run.problem_options.get("batch_size") for run in sweep("hyper-cleaning", groups=["main"])}
    assert {name: batch[name] for name in ("FMBO", "MRBO", "stocBiO")} == {"FMBO": 100, "MRBO": 1000, "stocBiO": 1000}
    assert batch["VRBO"] * settings["VRBO"]["large"] == 500
    assert settings["VRBO"]["period"] == 3
    assert {run.problem_options["C"] for run in sweep("hyper-cleaning")} == {0.001}


# Rules: stored trials decide

BOXES = """
[boxes.SOBA]
alpha = { low = 1e-5, high = 1e-4 } # so small that the largest is best

[boxes.FMBO]
alpha = { c = { low = 1e-5, high = 1e-4 }, w = 1.0, p = 0.5 }
eta = { low = 0.1, high = 1.0 }

[main.FdeHBO]
"""
RULES = f"""
widened = {{ rule = "wider boxes", methods = "boxes", by = ["pilot"] }}
tuned = {{ rule = "best trial", methods = "widened", by = ["search", "finals"] }}
problem = "{__name__}:Own"
"""
GROUPS = """
tuned = { steps = 24, seeds = [0] }
again = { methods = "tuned", only = ["FMBO"], settings = { eta = 1.0 }, steps = 24, seeds = [1] }
finals = { methods = "widened", trials = 8, best = 3, by = ["search"], steps = 24, seeds = [102, 103], every = 3 }
search = { methods = "widened", trials = 8, steps = 24, seeds = [100], every = 3 }
pilot = { methods = "boxes", trials = 8, steps = 16, seeds = [100], every = 2 }
bold ="""
RULED = ["tuned", "again", "finals", "search", "pilot"]


@pytest.fixture(scope="module")
def ruled(tmp_path_factory, changed):
    """A plan with rules, and all its runs, done in one command from an empty folder."""
    folder = tmp_path_factory.mktemp("ruled")
    text = changed(("\n[main.FdeHBO]\n", BOXES), ('problem = "Quadratic"', RULES), ("bold =", GROUPS))
    (folder / "ruled.toml").write_text(text)
    plan = Plan(load(folder / "ruled.toml"), results=folder / "results")
    assert reproduce_in_order(plan, RULED, progress=False) == [2 + 1 + 12 + 16 + 16, 47]
    return Plan(plan.file, results=plan.results)


def score(plan, group):
    """Of each trial and seed: the median of the last quarter of its rows."""
    runs = read("ruled", group, plan.results).groupby(["label", "seed"]).objective
    return runs.apply(lambda loss: loss.iloc[-(len(loss) // 4) :].median())


def test_boxes_near_the_best_trial_are_wider(ruled):
    best = score(ruled, "pilot").droplevel("seed")
    options = {run.label: run.options for run in ruled.runs("pilot")}
    assert options[best.filter(like="SOBA").idxmin()]["alpha"] > 10**-4.1  # in the outer tenth of its box
    widened = ruled.methods("widened")
    assert widened["SOBA"].options == {"alpha": {"low": 1e-5, "high": 1e-3}}
    assert widened["FMBO"].options["alpha"] == {"c": {"low": 1e-5, "high": 1e-3}, "w": 1.0, "p": 0.5}


def test_finals_are_the_best_trials_and_tuned_the_best_by_the_median_of_three_seeds(ruled):
    search, finals = score(ruled, "search").droplevel("seed"), score(ruled, "finals").unstack()
    settings = {run.label: run.options for run in ruled.runs("search")}
    for label in ("SOBA", "FMBO"):
        three = search.filter(like=f"{label}, trial").nsmallest(3).index
        assert {run.label for run in ruled.runs("finals") if run.label.startswith(label)} == {*three}
        median = finals.loc[three].assign(first=search[three]).median(axis=1)
        assert ruled.methods("tuned")[label].options == settings[median.idxmin()]
    (again,) = ruled.runs("again")
    assert again.options == ruled.methods("tuned")["FMBO"].options | {"eta": 1.0}


def test_nothing_is_decided_before_all_trials_are_stored(ruled, tmp_path, capsys):
    empty = Plan(ruled.file, results=tmp_path)
    told = r"decided by trials: 16 of 16 runs of ruled, pilot, are not stored, .*: run `python .* --group pilot"
    with pytest.raises(FileNotFoundError, match=told):
        empty.runs("tuned")
    with pytest.raises(FileNotFoundError, match=told):
        reproduce_in_order(empty, ["tuned"])
    report(ruled.results.parent / "ruled.toml", tmp_path)
    printed = capsys.readouterr().out
    assert "tuned: what to run is decided by trials: 16 of 16" in printed
    assert "pilot: 16 of 16 runs are not stored" in printed


def test_runs_of_adds_ends_and_errors_in_the_order_of_the_file(ruled, tmp_path):
    path = ruled.results.parent / "ruled.toml"
    table = runs_of(path, ["tuned", "again"], ruled.results)
    assert list(table.group.unique()) == ["tuned", "again"]
    assert list(table.label.unique()) == ["SOBA", "FMBO"]
    assert {"solver", "stop", "diverged_at", "objective"} <= set(table)
    assert set(table.test_error) == {0.25}
    with pytest.raises(FileNotFoundError, match=r"16 of 16 runs of ruled, pilot, are not stored, the first is .*: run"):
        runs_of(path, "pilot", tmp_path)
