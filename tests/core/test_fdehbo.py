"""Products are a choice: every single-loop method takes exact ones or, with a delta, central differences."""

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from bilevel_book.methods import SOLVERS
from bilevel_core import BilevelProblem, Samples, run
from bilevel_core.problems import Quadratic

SINGLE_LOOP = ("FMBO", "SOBA", "FSLA", "MA-SOBA", "SRBA", "SPABA")


class FusedAttention(BilevelProblem):
    """y are queries, x are values; torch's fused kernel has no second derivative on the CPU."""

    def start(self, generator):
        return torch.randn(32, generator=generator), torch.randn(32, generator=generator)

    def sample(self, generator):
        return Samples(torch.tensor(0.0), torch.tensor(0.0))

    def upper(self, x, y, batch):
        return (self.attend(x, y) - 1).square().mean() + y.square().mean()

    def lower(self, x, y, batch):
        return self.attend(x, y).square().mean() + (y - x).square().mean()

    def attend(self, x, y):
        query, value = (z.view(1, 1, 4, 8) for z in (y, x))
        return scaled_dot_product_attention(query, value, value)


def step(problem, solver, steps=3):
    state = solver.init(problem)
    for _ in range(steps):
        state = solver.step(problem, state)
    return state


@pytest.mark.parametrize("name", SINGLE_LOOP)
def test_central_differences_are_exact_on_a_quadratic(name):
    problem, solver = Quadratic(noise=0.3), SOLVERS[name]()
    exact, differences = (step(problem, replace(solver, delta=delta)) for delta in (None, 0.1))
    for z, w in zip((exact.x, exact.y, exact.v), (differences.x, differences.y, differences.v), strict=True):
        torch.testing.assert_close(z, w, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["FMBO", "SOBA"])
def test_fused_attention_without_delta_raises_naming_the_operator(name):
    with pytest.raises(NotImplementedError, match=r"scaled_dot_product.* delta=0.01"):
        step(FusedAttention(), SOLVERS[name]())


@pytest.mark.parametrize("solver", [SOLVERS["FdeHBO"](), SOLVERS["SOBA"](delta=0.01)])
def test_fused_attention_with_delta_runs(solver):
    state = step(FusedAttention(), solver)
    assert state.v.isfinite().all()
    assert state.v.norm() > 0


def test_fdehbo_without_delta_is_refused():
    with pytest.raises(ValueError, match="delta must be"):
        SOLVERS["FdeHBO"](delta=None)


def test_options_are_checked_whatever_the_annotations():
    names = {"__name__": "bilevel_core"}
    exec(
        "from __future__ import annotations\n"
        "from bilevel_core.solvers.base import RADIUS, SingleLoop, method, option\n"
        "@method\n"
        "class Mine(SingleLoop):\n"
        "    r_v: float = option(1.0, RADIUS, 'radius')\n"
        "    def update(self, problem, state, generator): return state\n",
        names,
    )
    assert names["Mine"](r_v=2.0).r_v == 2.0
    with pytest.raises(ValueError, match="r_v must be a positive number"):
        names["Mine"](r_v=lambda t: 1.0)


@pytest.mark.parametrize("name", ["checkpoint", "mean_directions", "on_this_rank", "rank", "state", "samples"])
def test_attributes_of_any_name_break_nothing(name, tmp_path):
    problem = Quadratic()
    setattr(problem, name, "mine")
    plain, mine = (run(each, "SOBA", steps=5, checkpoint=tmp_path / str(k), progress=False)
                   for k, each in enumerate((Quadratic(), problem)))  # fmt: skip
    assert mine.state.x.equal(plain.state.x)
