"""The three small problems of Chapter 16, what a look at their data costs, and what their runs decide."""

import numpy as np
import pandas as pd
import pytest
import torch

from bilevel_book import newer
from bilevel_book.figures.after_2023 import against
from bilevel_book.methods import SOLVERS
from bilevel_book.tasks import TASKS, Penalties, SmallQuadratic, Task
from bilevel_core import hypergradient
from bilevel_core.counting import counting


def test_an_unknown_task_is_refused():
    with pytest.raises(ValueError, match="one of quadratic, penalties, cleaning, got 'boosting'"):
        Task("boosting")


@pytest.mark.parametrize("name", ["quadratic", "penalties"])
def test_a_look_at_all_the_data_is_paid_batch_by_batch(name):
    problem, solver = Task(name), SOLVERS["SRBA"](period=2)
    state = solver.init(problem)
    costs = []
    for _ in range(3):
        with counting() as calls:
            state = solver.step(problem, state)
        costs.append((calls.gradients, calls.Hv, calls.Jv))
    n = problem.own.batches
    assert costs == [(3 * n, n, n), (6, 2, 2), (3 * n, n, n)]


def test_a_task_has_the_losses_and_the_numbers_of_its_own_problem():
    problem, own = Task("penalties", seed=4), TASKS["penalties"](seed=4)
    x, y = problem.start(torch.Generator().manual_seed(0))
    samples = problem.sample(torch.Generator().manual_seed(1))
    y = y + 0.1
    assert torch.equal(problem.upper(x, y, samples.upper), own.upper(x, y, samples.upper))
    assert torch.equal(problem.lower(x, y, samples.lower), own.lower(x, y, samples.lower))
    assert problem.evaluate(x, y) == own.evaluate(x, y)


def test_the_tumours_are_split_into_four_sets_that_share_none():
    problem = Penalties(seed=1)
    sets = (problem.lower_set, problem.upper_set, problem.selection_set, problem.test_set)
    assert [len(points) for points in sets] == [200, 150, 100, 119]
    assert len(torch.unique(torch.cat(sets), dim=0)) == 569
    assert int((problem.signed[:, -1] > 0).sum()) == 357  # benign; the last column is the label times one
    assert not torch.equal(Penalties(seed=2).test_set, problem.test_set)


def test_a_penalty_is_felt_by_its_own_feature_only():
    problem = Penalties()
    x, y = problem.start(torch.Generator())
    y = torch.linspace(-1, 1, 31, dtype=torch.float64)
    higher = x.clone()
    higher[3] += np.log(3)
    gap = problem.lower(higher, y, slice(0, 200)) - problem.lower(x, y, slice(0, 200))
    assert gap.item() == pytest.approx(x[3].exp().item() * y[3].item() ** 2)  # (3 - 1) e^x y^2 / 2


def test_on_the_quadratic_settings_are_chosen_by_another_number_than_methods_are_judged_by():
    problem = SmallQuadratic(n=20, noise=0.5, seed=3)
    told = problem.evaluate(problem.minimiser, torch.zeros(10).double())
    assert told == pytest.approx({"score": 0, "selection_loss": 0}, abs=1e-9)
    away = problem.evaluate(problem.x0, torch.zeros(10).double())
    assert away["score"] == pytest.approx(hypergradient(problem, problem.x0).gradient.norm().item(), rel=1e-5)
    assert away["selection_loss"] > 0


@pytest.fixture
def stored(monkeypatch):
    """SOBA ends at 1, and rivals at other levels, on ten seeds with a little noise."""
    rng, rows = np.random.default_rng(0), []
    for method, level in {"SOBA": 1.0, "half": 0.5, "twice": 2.0, "same": 1.0, "wild": 1.0}.items():
        for seed in range(10):
            wave = (-1) ** seed if method == "wild" else 0.005 * rng.normal()  # a factor of e up and down
            value = level * np.exp(wave)
            rows += [
                {"label": f"{method}, quadratic", "seed": seed, "stop": "gradients", "equivalents": 100 * k,
                 "score": 5.0 if k == 0 else value}
                for k in range(25)
            ]  # fmt: skip
    monkeypatch.setattr(newer.stored, "read", lambda *_: pd.DataFrame(rows))
    return rows


def test_a_rival_is_ahead_behind_alike_or_undecided(stored):
    table = newer.judged("quadratic")
    assert dict(zip(table.rival, table.word, strict=True)) == {
        "half": "ahead", "twice": "behind", "same": "alike", "wild": "undecided",
    }  # fmt: skip
    assert newer.runs("cleaning").empty


def test_who_is_ahead_is_drawn_on_the_left(stored):
    axes = against({"quadratic": newer.judged("quadratic"), "again": newer.judged("quadratic")}, "SOBA").axes
    middles = [line.get_xdata()[0] for line in axes[0].lines if len(line.get_xdata()) == 1]
    assert middles[:3] == pytest.approx([0.5, 2.0, 1.0], rel=0.01)
    assert [line.get_marker() for line in axes[0].lines if len(line.get_xdata()) == 1] == ["<", ">", "s", "o"]
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["half", "twice", "same", "wild"]
