"""Boxes, trials in them, and how a box is moved out where the best trial lies near its edge."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from bilevel_book.protocol.selection import at_trial, boxes_of, ends_of, near_edges, ranked, widened

from bilevel_book.experiments import Plan, load


def box(low, high):
    return {"low": low, "high": high}


OPTIONS = {
    "alpha": box(0.003, 1.0),
    "beta": 0.5,
    "eta": {"c": box(1.0, 1000.0), "w": 1.0, "p": 0.5, "cap": 1.0},
    "Q": box(3, 10),
}


def point(alpha=0.05, c=30.0, Q=6):
    return {"alpha": alpha, "beta": 0.5, "eta": {"c": c, "w": 1.0, "p": 0.5, "cap": 1.0}, "Q": Q}


def test_boxes_are_found_inside_schedules_too():
    assert ends_of(OPTIONS) == {"alpha": (0.003, 1.0), "eta.c": (1.0, 1000.0), "Q": (3, 10)}


def test_trials_are_sobol_points_on_logarithmic_scales():
    two = {"a": box(1.0, 10.0), "b": {"c": box(1.0, 100.0)}}
    u = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(24, dtype=torch.float64)
    found = [at_trial(two, k) for k in range(24)]
    assert [each["a"] for each in found] == [float(f"{10 ** float(p):.3g}") for p in u[:, 0]]
    assert [each["b"]["c"] for each in found] == [float(f"{100 ** float(p):.3g}") for p in u[:, 1]]
    integers = {at_trial({"inner": box(1, 100)}, k)["inner"] for k in range(24)}
    assert all(isinstance(value, int) for value in integers)
    assert min(integers) < 4 < 30 < max(integers)
    with pytest.raises(ValueError, match="trial must be an integer from 0 on, got -1"):
        at_trial(two, -1)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.5), (0.0, 0.5), ("a", 0.5), (True, 2.0)])
def test_invalid_box_raises(low, high):
    with pytest.raises(ValueError, match="a box needs numbers 0 < low < high, got low = "):
        at_trial({"alpha": box(low, high)}, 0)


def trials(**ends):
    rows = [
        {"label": label.replace("_", ", trial "), "seed": seed, "step": step, "selection_loss": loss, "stop": "steps"}
        for label, losses in ends.items()
        for seed, loss in enumerate(losses)
        for step in range(4)
    ]
    return pd.DataFrame(rows)


def test_trials_are_ranked_by_their_score_and_then_by_their_number():
    assert ranked(trials(A_0=[3.0], A_1=[1.0], A_2=[2.0], B_0=[5.0], B_1=[5.0])) == {"A": [1, 2, 0], "B": [0, 1]}
    finals = trials(A_0=[3.0, 1.0, 1.5], A_1=[1.0, 9.0, 8.0])  # the median of the seeds decides
    assert ranked(finals) == {"A": [0, 1]}


def test_method_whose_trials_all_diverge_is_named():
    wild = trials(A_0=[1.0], B_0=[1.0], B_1=[2.0])
    wild.loc[wild.label.str.startswith("B"), "stop"] = "diverged"
    with pytest.raises(ValueError, match="B: all 2 trials diverged, so none is best: change the box"):
        ranked(wild)


@pytest.mark.parametrize(
    ("at", "changes"),
    [
        ({}, {}),
        ({"alpha": 0.004}, {"alpha": box(0.0003, 1.0)}),
        ({"Q": 3}, {"Q": box(1, 10)}),
        ({"Q": 10, "c": 900.0}, {"Q": box(3, 20), "eta": OPTIONS["eta"] | {"c": box(1.0, 1e4)}}),
    ],
)
def test_edge_near_the_best_trial_is_moved_and_nothing_else(at, changes):
    before = str(OPTIONS)
    assert widened("SUSTAIN", OPTIONS, point(**at)) == OPTIONS | changes
    assert str(OPTIONS) == before
    assert all(type(end) is int for end in changes.get("Q", box(1, 1)).values())


@pytest.mark.parametrize(
    ("solver", "options", "at", "changes"),
    [
        ("FdeHBO", {"eta": box(0.1, 1.0)}, {"eta": 0.95}, {}),
        ("FdeHBO", {"eta": box(0.1, 0.5)}, {"eta": 0.5}, {"eta": box(0.1, 1.0)}),
        ("SUSTAIN", {"eta_series": box(0.1, 1.0)}, {"eta_series": 1.0}, {"eta_series": box(0.1, 10.0)}),
        ("BSA", {"inner": box(1, 200)}, {"inner": 1}, {}),
        ("BSA", {"K": box(1, 10), "inner": 5}, {"K": 10, "inner": 5}, {"K": box(1, 20)}),
        ("reverse", {"K": box(1, 10), "inner": 15}, {"K": 10, "inner": 15}, {"K": box(1, 15)}),
        ("reverse", {"inner": box(10, 200), "K": 7}, {"inner": 10, "K": 7}, {"inner": box(7, 200)}),
        ("reverse", {"inner": box(12, 200), "K": box(1, 8)}, {"inner": 12, "K": 8}, {"inner": box(8, 200)}),
    ],
)
def test_no_edge_goes_where_the_method_does_not(solver, options, at, changes):
    assert widened(solver, options, at) == options | changes


@pytest.mark.parametrize("name", ["hyper-representation", "hyper-cleaning"])
@pytest.mark.parametrize("end", ["low", "high"])
def test_methods_take_the_wider_boxes_wherever_the_best_trial_lies(name, end):
    plan = Plan(load(name))
    for label, method in plan.methods("boxes").items():
        run, corner = plan.run_of(plan.groups["pilot"], label), at_end(method.options, end)
        assert near_edges(method.options, corner) == dict.fromkeys(boxes_of(method.options), end)
        for trial in range(24):
            options = at_trial(widened(method.solver, method.options, corner), trial)
            replace(run, options=options).make_solver()


def at_end(options, end):
    """The point at one end of every box."""
    if not isinstance(options, dict):
        return options
    is_box = options.keys() == {"low", "high"}
    return options[end] if is_box else {key: at_end(value, end) for key, value in options.items()}
