"""Data mixing: the losses are those of the formula, and a mixture is told as it is."""

import json

import pytest
import torch

from bilevel_book.experiments import Plan, load
from bilevel_book.mixing import DOMAINS, ROWS, Mixing, loss
from bilevel_book.paths import EXPERIMENTS
from bilevel_book.verdicts.selection import at_trial
from bilevel_core import SOBA, Adam, run


@pytest.fixture(scope="module")
def small():
    return Mixing(width=16, batch_size=4)


@pytest.mark.slow
def test_lower_loss_is_the_mixture_of_the_losses_of_the_domains(small):
    x, y = torch.tensor([0.0, 1, 2, 3, 4]), small.start(torch.Generator())[1]
    p = 0.9 * x.softmax(0) + 0.1 / 5
    each = [loss(small.inner.at(y)(rows[:, :-1]), rows[:, 1:]) for rows in small.domains]
    expected = p @ torch.stack(each) + 1e-4 * (y @ y)
    torch.testing.assert_close(small.lower(x, y, slice(0, 5 * ROWS)), expected)


@pytest.mark.slow
def test_fused_attention_is_its_formula_and_adapters_begin_with_the_frozen_network(small):
    nets = [Mixing(width=16, fused=False), small, Mixing(width=16, rank=2, pretrain=0)]
    plain, fused, adapted = (net.inner.at(net.inner.weights)(small.test[:5, :-1]) for net in nets)
    torch.testing.assert_close(plain, fused)
    torch.testing.assert_close(adapted, fused)
    assert nets[2].inner.sizes[:2] == [2 * 16, 48 * 2]  # of the first layer, 16 to 48: all else is frozen


@pytest.mark.slow
def test_random_start_is_the_best_of_its_draws():
    problem = Mixing(width=16, batch_size=4, retrain=3)
    x, y = problem.start(torch.Generator())
    drawn = torch.empty(3, 5).exponential_(generator=torch.Generator().manual_seed(7)).log()
    found = problem.best_of_random(problem.load(x, y)[1], 7, 0.1, 4, tries=3).log()
    told = [problem.evaluate(each, y)["selection_loss"] for each in drawn]
    assert torch.equal(found, drawn[told.index(min(told))])
    assert len(set(told)) == 3


@pytest.mark.slow
def test_mixture_follows_the_target_and_collapse_is_told(small, tmp_path):
    solver = SOBA(alpha=Adam(0.1), beta=Adam(0.01), lam=0.1, delta=0.01)
    x = run(small, solver, steps=30, progress=False).state.x
    p = small.export(x, tmp_path / "mixture.json")
    assert p["records"] > p["arithmetic"] > max(p["sentences"], p["lists"], p["noise"])
    told = json.loads((tmp_path / "mixture.json").read_text())["mixture"]
    assert told == pytest.approx(p, abs=1e-4)
    assert list(told) == list(DOMAINS)
    with pytest.warns(UserWarning, match="the mixture has collapsed: 92% of it is noise"):
        small.export(torch.tensor([0.0, 0, 0, 0, 99]), tmp_path / "mixture.json")


def test_plan_tunes_what_has_a_box_and_leaves_the_baselines_alone():
    plan = Plan(load(next(EXPERIMENTS.rglob("mixing.toml"))))
    plan.ranked = lambda *by: {run.label.split(", trial")[0]: [1, 0] for run in plan.runs("tuning")}
    boxes, tuned = plan.methods("boxes"), plan.methods("tuned")
    assert tuned["FMBO"].options == at_trial(boxes["FMBO"].options, 1)
    assert tuned["best of 20 random"] == boxes["best of 20 random"]
    assert {method.problem.get("fused", True) for label, method in tuned.items() if "delta" in method.options} == {True}
