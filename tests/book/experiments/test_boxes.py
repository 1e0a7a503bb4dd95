"""Boxes: trial k of every method is the k-th Sobol point, on logarithmic scales."""

import math
from pathlib import Path

import pytest
import torch

from bilevel_book.experiments import sweep
from bilevel_book.experiments.files import at_trial
from bilevel_core.schedules import Power

BOXES = """
[boxes.FdeHBO]
like = "FdeHBO"
alpha = { low = 1e-4, high = 1.0 }
beta = { low = 0.1, high = 10.0 }
eta = { c = { low = 1.0, high = 100.0 }, w = 1.0, p = 0.5, cap = 1.0 }

[boxes.stocBiO]
solver = "stocBiO"
alpha = { low = 1e-3, high = 1e-1 }
beta = 0.5
inner = { low = 1, high = 100 }

[widened.FdeHBO]
like = "boxes.FdeHBO"
alpha = { low = 1e-4, high = 10.0 }

[tuned.FdeHBO]
like = "widened.FdeHBO"
trial = 7
delta = 0.5
"""

PLAN = """
trials = { methods = "boxes", trials = 24, steps = 10, seeds = [100, 101] }
wide = { methods = "widened", trials = 24, steps = 10, seeds = [100] }
finals = { methods = "boxes", trials = 24, chosen = ["FdeHBO, trial 3", "stocBiO, trial 9"], steps = 9, seeds = [1, 2] }
tuned = { steps = 10, seeds = [0] }
"""


@pytest.fixture
def boxed(write):
    return write(("[main.FdeHBO]\n", f"{BOXES}\n[main.FdeHBO]\n"), ("bold = {", f"{PLAN}\nbold = {{"))


def test_the_trials_fill_the_box_evenly(boxed):
    runs = sweep(boxed, "full", ["trials"])
    assert len(runs) == 2 * 24 * 2
    alphas = sorted(run.options["alpha"] for run in runs if run.label.startswith("FdeHBO") and run.seed == 100)
    places = [math.log10(alpha / 1e-4) / 4 for alpha in alphas]
    assert 0 <= places[0] <= places[-1] <= 1
    # A Sobol sequence has at most two of its first 24 points in any dyadic sixteenth.
    assert max(sum(k / 16 <= place < (k + 1) / 16 for place in places) for k in range(16)) <= 2
    inner = {run.options["inner"] for run in runs if run.label.startswith("stocBiO")}
    assert all(isinstance(value, int) for value in inner)
    assert min(inner) < 4 < 30 < max(inner)


def test_a_box_inside_a_schedule_is_filled_too(boxed):
    run = next(run for run in sweep(boxed, "full", ["trials"]) if run.label == "FdeHBO, trial 3")
    eta = run.make_solver().eta
    assert isinstance(eta, Power)
    assert 1 <= eta.c <= 100


def test_trials_are_the_same_for_all_seeds_and_all_methods_of_as_many_boxes():
    first = at_trial({"a": {"low": 1.0, "high": 10.0}, "b": {"low": 1.0, "high": 10.0}}, 5)
    second = at_trial({"c": {"low": 1.0, "high": 10.0}, "d": {"low": 1.0, "high": 10.0}}, 5)
    assert list(first.values()) == list(second.values())
    u = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(6, dtype=torch.float64)[5]
    assert list(first.values()) == [float(f"{10 ** float(part):.3g}") for part in u]


def test_a_tuned_setting_is_that_of_its_trial(boxed):
    (run,) = sweep(boxed, "full", ["tuned"])
    (trial,) = sweep(boxed, "full", ["wide"], ["FdeHBO, trial 7"])
    assert run.options == trial.options | {"delta": 0.5}
    narrow = sweep(boxed, "full", ["trials"], ["FdeHBO, trial 7"])[0].options
    assert {name for name in narrow if narrow[name] != trial.options[name]} == {"alpha"}


def test_chosen_trials_are_run_alone(boxed):
    finals = sweep(boxed, "full", ["finals"])
    assert [(run.label, run.seed) for run in finals] == [
        (label, seed) for seed in (1, 2) for label in ("FdeHBO, trial 3", "stocBiO, trial 9")
    ]


def test_a_box_of_whole_numbers_has_no_calibrated_time(write):
    path = write(("[main.FdeHBO]\n", f"{BOXES}\n[main.FdeHBO]\n"), ("bold = {", f"{PLAN}\nbold = {{"))
    text = Path(path).read_text().replace('"boxes", trials = 24, steps = 10', '"boxes", trials = 24, time = 9.0')
    Path(path).write_text(text)
    with pytest.raises(ValueError, match=r"trials: a box of whole numbers changes what a step of stocBiO costs"):
        sweep(path, "full")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "low = 1e-4, high = 1.0",
            "low = 1.0, high = 0.5",
            r'\[boxes."FdeHBO"\]: a box needs 0 < low < high, got low = 1',
        ),
        ("low = 1e-4, high = 1.0", 'low = "a", high = 0.5', r"low: got 'a', allowed: float"),
        ("low = 1e-4, high = 1.0", "low = 0.0, high = 0.5", r"a box needs 0 < low < high, got low = 0"),
        (
            'like = "widened.FdeHBO"',
            'like = "widened.Fde"',
            r"unknown label in `like` 'widened.Fde'; known are",
        ),
        ("trial = 7", "trial = -1", r"trial must be a whole number from 0 on, got -1"),
        ("trial = 7", "trial = 0.5", r"trial: got 0.5, allowed: int"),
    ],
)
def test_what_is_wrong_with_a_box_is_told(write, old, new, message):
    assert old in BOXES
    with pytest.raises(ValueError, match=message):
        sweep(write(("[main.FdeHBO]\n", f"{BOXES.replace(old, new)}\n[main.FdeHBO]\n")), "full")
