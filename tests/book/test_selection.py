"""Boxes, trials in them, and how a box is moved out where the best trial lies near its edge."""

import pandas as pd
import pytest
import torch

from bilevel_book.experiments import Plan, load
from bilevel_book.experiments.files import with_schedules
from bilevel_book.methods import SOLVERS
from bilevel_book.verdicts.selection import at_trial, boxes_of, near_edges, ranked, widened


def box(low, high):
    return {"low": low, "high": high}


def test_trials_are_sobol_points_on_logarithmic_scales_inside_schedules_too():
    two = {"a": box(1.0, 10.0), "b": {"c": box(1.0, 100.0)}, "d": 3.0}
    assert list(boxes_of(two)) == ["a", "b.c"]
    u = torch.quasirandom.SobolEngine(2, scramble=True, seed=0).draw(24, dtype=torch.float64)
    for k, (first, second) in enumerate(u.tolist()):
        point = {"a": float(f"{10**first:.3g}"), "b": {"c": float(f"{100**second:.3g}")}, "d": 3.0}
        assert at_trial(two, k) == point
    integers = {at_trial({"inner": box(1, 100)}, k)["inner"] for k in range(24)}
    assert all(isinstance(value, int) for value in integers)
    assert min(integers) < 4 < 30 < max(integers)


@pytest.mark.parametrize(("low", "high"), [(1.0, 0.5), (0.0, 0.5), ("a", 0.5)])
def test_invalid_box_raises(low, high):
    with pytest.raises(ValueError, match="a box needs numbers 0 < low < high, got low = "):
        at_trial({"alpha": box(low, high)}, 0)


def trials(stop="steps", **ends):
    rows = [
        {"label": label.replace("_", ", trial "), "seed": seed, "step": step, "selection_loss": loss, "stop": stop}
        for label, losses in ends.items()
        for seed, loss in enumerate(losses)
        for step in range(4)
    ]
    return pd.DataFrame(rows)


def test_trials_are_ranked_by_their_score_and_then_by_their_number():
    assert ranked(trials(A_0=[3.0], A_1=[1.0], A_2=[2.0], B_0=[5.0], B_1=[5.0])) == {"A": [1, 2, 0], "B": [0, 1]}
    finals = trials(A_0=[3.0, 1.0, 1.5], A_1=[1.0, 9.0, 8.0])  # the median of the seeds decides
    assert ranked(finals) == {"A": [0, 1]}
    with pytest.raises(ValueError, match="B: all 2 trials diverged, so none is best: change the box"):
        ranked(pd.concat([trials(A_0=[1.0]), trials("diverged", B_0=[1.0], B_1=[2.0])]))


@pytest.mark.parametrize(
    ("solver", "options", "point", "changes"),
    [
        ("SUSTAIN", {"alpha": box(0.003, 1.0)}, {"alpha": 0.05}, {}),
        ("SUSTAIN", {"alpha": box(0.003, 1.0), "Q": box(3, 10)}, {"alpha": 0.004, "Q": 6}, {"alpha": box(0.0003, 1.0)}),
        ("SUSTAIN", {"Q": box(3, 10)}, {"Q": 3}, {"Q": box(1, 10)}),
        ("SUSTAIN", {"eta": {"c": box(1.0, 1e3)}}, {"eta": {"c": 900.0}}, {"eta": {"c": box(1, 1e4)}}),
        ("FdeHBO", {"eta": box(0.1, 0.5)}, {"eta": 0.5}, {"eta": box(0.1, 1.0)}),  # no more than 1
        ("BSA", {"inner": box(1, 200)}, {"inner": 1}, {}),  # no less than 1
        ("BSA", {"K": box(1, 10), "inner": 5}, {"K": 10, "inner": 5}, {"K": box(1, 20)}),
        ("reverse", {"K": box(1, 10), "inner": 15}, {"K": 10, "inner": 15}, {"K": box(1, 15)}),  # K <= inner
        ("reverse", {"inner": box(12, 200), "K": box(1, 8)}, {"inner": 12, "K": 8}, {"inner": box(8, 200)}),
    ],
)  # fmt: skip
def test_edge_near_the_best_trial_moves_as_far_as_the_method_allows(solver, options, point, changes):
    before = str(options)
    assert widened(solver, options, point) == options | changes
    assert str(options) == before


def test_edge_of_a_box_is_its_outer_tenth_on_a_logarithmic_scale():
    options = {name: {"low": 1e-3, "high": 1.0} for name in ("alpha", "beta", "lam", "delta")}
    point = {"alpha": 10**-2.7, "beta": 10**-2.69, "lam": 10**-0.31, "delta": 10**-0.3}
    assert near_edges(options, point) == {"alpha": "low", "delta": "high"}


def test_methods_take_the_wider_boxes_wherever_the_best_trial_lies():
    plan = Plan(load("hyper-cleaning"))
    for method in plan.methods("boxes").values():
        for end in ("low", "high"):
            corner = at_end(method.options, end)
            assert near_edges(method.options, corner) == dict.fromkeys(boxes_of(method.options), end)
            wider = widened(method.solver, method.options, corner)
            for trial in range(24):
                SOLVERS[method.solver](**with_schedules(at_trial(wider, trial)))


def at_end(options, end):
    """The point at one end of every box."""
    if not isinstance(options, dict):
        return options
    is_box = options.keys() == {"low", "high"}
    return options[end] if is_box else {key: at_end(value, end) for key, value in options.items()}
