"""The three small problems of Chapter 16, what a look at their data costs, and what their runs decide."""

import numpy as np
import pandas as pd
import pytest
import torch

from bilevel_book import after_2023
from bilevel_book.methods import SOLVERS
from bilevel_book.tasks import Penalties, Task
from bilevel_core.counting import counting


@pytest.mark.parametrize("name", ["quadratic", "penalties"])
def test_full_pass_costs_every_batch(name):
    problem, solver = Task(name), SOLVERS["SRBA"](period=2)
    state = solver.init(problem)
    costs = []
    for _ in range(3):
        with counting() as calls:
            state = solver.step(problem, state)
        costs.append((calls.gradients, calls.Hv, calls.Jv))
    n = problem.own.batches
    assert costs == [(3 * n, n, n), (6, 2, 2), (3 * n, n, n)]


def test_tumours_are_split_into_four_disjoint_sets():
    problem = Penalties(seed=1)
    sets = (problem.lower_set, problem.upper_set, problem.selection_set, problem.test_set)
    assert [len(points) for points in sets] == [200, 150, 100, 119]
    assert len(torch.unique(torch.cat(sets), dim=0)) == 569
    assert int((problem.signed[:, -1] > 0).sum()) == 357  # benign; the last column is the label times one
    assert not torch.equal(Penalties(seed=2).test_set, problem.test_set)


def test_penalty_acts_on_its_own_feature_only():
    problem = Penalties()
    x, y = problem.start(torch.Generator())
    y = torch.linspace(-1, 1, 31, dtype=torch.float64)
    higher = x.clone()
    higher[3] += np.log(3)
    gap = problem.lower(higher, y, slice(0, 200)) - problem.lower(x, y, slice(0, 200))
    assert gap.item() == pytest.approx(x[3].exp().item() * y[3].item() ** 2)  # (3 - 1) e^x y^2 / 2


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
    monkeypatch.setattr(after_2023, "runs_of", lambda *_: pd.DataFrame(rows))
    return rows


def test_rival_is_ahead_behind_no_different_or_undecided(stored):
    assert after_2023.judged("quadratic").word.to_dict() == {
        "half": "ahead", "twice": "behind", "same": "no difference", "wild": "undecided",
    }  # fmt: skip
    assert after_2023.runs("cleaning").empty
