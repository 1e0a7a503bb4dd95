"""Files: each thing that can be wrong with one is told, with its place, what was given and what is allowed."""

import numpy as np
import pytest

from bilevel_book.experiments import load, sweep
from bilevel_book.experiments.files import Group, Steps, with_denser_rows
from bilevel_book.experiments.ticks import seconds_at, steps_within
from bilevel_book.paths import shipped_experiments

RULE = 'chosen = {{ rule = "{}", methods = "boxes", by = ["main"] }}'


def test_file_becomes_records(small):
    file = load(small)
    assert (file.name, file.problem, file.options, file.columns) == (
        "small",
        "Quadratic",
        {"noise": 0.5},
        ["objective"],
    )
    assert {size: list(groups) for size, groups in file.sizes.items()} == {
        "smoke": ["main"], "full": ["tuning", "main", "quiet", "bold"],
    }  # fmt: skip
    quiet = file.sizes["full"]["quiet"]
    assert (quiet.methods, quiet.only, quiet.seeds, quiet.problem) == ("main", ["SOBA"], [3], {"noise": 0.0})
    assert file.sizes["full"]["main"].budget({}, {}, "SOBA") == {"steps": 40, "every": 10}
    changed = file.tables["main"]["FdeHBO, delta 1"]
    assert (changed.solver, changed.options["alpha"], changed.options["delta"]) == ("FdeHBO", 0.05, 1.0)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('problem = "Quadratic"', "", "problem: got nothing, allowed: str"),
        ('problem = "Quadratic"', 'problem = "Cubic"', "problem: unknown BilevelProblem .*'Cubic'; known are .*Valley"),
        ('problem = "Quadratic"', 'problem = "no.such:Thing"', "problem: no.such:Thing cannot be imported"),
        ('problem = "Quadratic"', 'problem = ".such:Thing"', "problem: .such:Thing cannot be imported: TypeError"),
        ("Quadratic", "bilevel_core:BilevelProblem", "BilevelProblem is not a BilevelProblem with all its methods"),
        ("{ noise = 0.5 }", "{ nose = 0.5 }", "options: unknown option of Quadratic 'nose'; known are"),
        ("columns =", "colour = 3\ncolumns =", "colour: got 3, allowed: dict"),
        ("seeds = [7], ", "", r"\[sizes.full\] tuning: seeds: got nothing, allowed: list\[int\]"),
        ("seeds = [7]", "seeds = []", "tuning: seeds: got none, give at least one"),
        ("grid = true", "trials = -1", "tuning: trials must be at least 1, got -1"),
        ("grid = true", "trials = 4, best = 2", r"tuning: give `best` and `by` together, .* got 2 by \[\]"),
        ("steps = 40", "stepts = 40", "main: unknown option of Group 'stepts'; known are .*steps"),
        (
            "steps = 40",
            "steps = 40, time = 1.0",
            "main: give one of steps, gradients, time or seconds, got steps and time",
        ),
        ("every = 10", "every = 0", "every must be a whole number of at least 1, got 0"),
        ("quiet = {", '"../quiet" = {', "quiet: the name of a group must be letters, digits, _ and -"),
        (
            'methods = "main", only = ["SOBA"]',
            'methods = "man"',
            "quiet: unknown table of methods 'man'; known",
        ),
        ("alpha = 0.3", "alfa = 0.3", "bold: unknown option of FdeHBO 'alfa'; known are .*alpha"),
        ("alpha = 0.05", "alfa = 0.05", r'\[main."FdeHBO"\]: unknown option of FdeHBO .alfa.; known are .*alpha'),
        ("alpha = 0.05", "alpha = { low = 1.0, high = 0.5 }", "a box needs numbers 0 < low < high, got low = 1.0"),
        ("alpha = 0.05", 'alpha = { rule = "Adan" }', "unknown rule of steps 'Adan'; known are Adam, Momentum, Norm"),
        ("[0.1, 0.01], at", "[0.1], at", r'\[main."SOBA"\]: a Steps schedule needs'),
        ('delta 1"]\nlike = "FdeHBO"', 'delta 1"]\nlike = "FdeBHO"', "unknown label in `like` 'FdeBHO'; known are"),
        (
            'delta 1"]\nlike = "FdeHBO"',
            'delta 1"]\nlike = "FdeHBO, delta 1"',
            "unknown label in `like` 'main.FdeHBO",
        ),
        ('delta 1"]\nlike = "FdeHBO"', 'delta 1"]', "unknown Solver .* 'FdeHBO, delta 1'; known are"),
        (
            "columns =",
            f"{RULE.format('worst')}\ncolumns =",
            "chosen: unknown rule 'worst'; known are wider",
        ),
        ("columns =", f"{RULE.format('best trial')}\ncolumns =", "chosen: unknown table of methods 'boxes'; known are"),
    ],
)
def test_invalid_file_raises_with_the_place(write, old, new, message):
    with pytest.raises(ValueError, match=rf"^small.toml: .*{message}"):
        load(write((old, new)))


def test_box_of_integers_has_no_calibrated_time(write):
    boxes = "[boxes.stocBiO]\ninner = { low = 1, high = 100 }\n\n[main.SOBA]"
    plan = 'bold = { methods = "boxes", trials = 24, time = 9.0, seeds = [100] }\nquiet ='
    path = write(("[main.SOBA]", boxes), ("bold =", "shy ="), ("quiet =", plan))
    with pytest.raises(ValueError, match="bold: a box of integers changes what a step of stocBiO costs"):
        load(path)


def test_invalid_toml_raises(tmp_path):
    (tmp_path / "odd.toml").write_text("problem = = 3")
    with pytest.raises(ValueError, match=r"odd.toml: Invalid value"):
        load(tmp_path / "odd.toml")


def test_unknown_experiment_raises():
    with pytest.raises(
        ValueError,
        match=r"unknown experiment 'great' \(or .* TOML file\); known are after-2023, hyper-cleaning, hyper",
    ):
        load("great")
    with pytest.raises(ValueError, match=r"there is no file great.toml"):
        load("great.toml")


@pytest.mark.parametrize("name", shipped_experiments())
def test_experiments_of_the_book_are_well_formed(name):
    for size in ("smoke", "full"):
        assert sweep(name, size)


def test_seconds_become_steps_of_the_clock_and_rows_are_denser_at_the_start():
    costs = [[1, 0.5, 0.5, 0.5], [10, 0.25, 0.2, 0.3]]  # half a second a step, from the tenth on a quarter
    assert steps_within(costs, 5.0) == 10
    assert steps_within(costs, 7.5) == 20
    np.testing.assert_allclose(seconds_at(costs, [0, 4, 10, 20]), [0, 2, 5, 7.5])
    group = Group(methods="main", only=["A"], seeds=[0], seconds=7.5, rows=5, denser=True)
    budget = group.budget({}, {"alone": {"costs": {"main.A": costs}}}, "A")
    assert budget == {"steps": 22, "rows": 5, "denser": True}  # five per cent more
    assert with_denser_rows(budget) == {"steps": 22, "every": [1, 4, 8, 15, 22]}
    with pytest.raises(ValueError, match="the clock has no main"):
        group.budget({}, {}, "B")


def test_steps_change_exactly_at_their_times():
    rate = Steps((1e-3, 5e-4, 1e-4), (80, 180))
    assert [rate(t) for t in (0, 79, 80, 179, 180, 10_000)] == [1e-3, 1e-3, 5e-4, 5e-4, 1e-4, 1e-4]
