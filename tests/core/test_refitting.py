import pytest
import torch

from bilevel_core import BilevelProblem, FdeHBO, Samples, refit, refitting, run
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic


def test_refit_finds_the_closed_form(dtype):
    problem = Quadratic(dtype=dtype, seed=2)
    x = run(problem, FdeHBO(delta=0.1), steps=3, progress=False).state.x
    found = refit(problem, x)
    exact = 1e-7 if dtype == torch.float64 else 1e-3
    torch.testing.assert_close(found.y, problem.y_star(x), rtol=exact, atol=exact)
    assert found.converged
    assert found.warnings == ()
    assert found.numbers == problem.evaluate(x, found.y)


@pytest.mark.parametrize("mu", [1e-2, 1e-4])
def test_badly_conditioned_lower_level_is_solved(mu, dtype):
    problem = Quadratic(mu=mu if dtype == torch.float64 else 10 * mu, L=10.0, dim_y=100, dtype=dtype)
    found = refit(problem, problem.x0)
    slope = problem.A @ found.y - problem.B @ problem.x0 - problem.b
    first = problem.B @ problem.x0 + problem.b
    assert found.converged
    assert slope.norm() <= 1.1 * torch.finfo(dtype).eps ** 0.5 * first.norm()


def test_refit_starts_at_the_y_of_its_seed():
    """Two wells: y goes to the one on whose side the seed put it."""

    class TwoWells(BilevelProblem):
        def start(self, generator):
            return torch.zeros(1), torch.randn(1, generator=generator)

        def sample(self, generator):
            return Samples(None, None)

        def upper(self, x, y, batch):
            return (y @ y).sum()

        def lower(self, x, y, batch):
            return ((y @ y - 1) ** 2) + x.sum()

    problem, signs = TwoWells(), set()
    for seed in range(6):
        _, y0 = problem.start(torch.Generator().manual_seed(seed))
        found = refit(problem, torch.ones(1), seed)
        torch.testing.assert_close(found.y, torch.sign(y0), rtol=1e-3, atol=1e-3)
        signs.add(found.y.sign().item())
    assert signs == {-1.0, 1.0}


def test_unconverged_refit_says_so():
    problem = Quadratic(mu=0.01, L=10.0, dim_y=50)
    with counting() as calls:
        found = refit(problem, problem.x0, max_steps=3)
    assert not found.converged
    assert found.gradients == calls.gradients < 20
    (sentence,) = found.warnings
    assert f"did not converge: after {found.gradients} gradients" in sentence
    assert sentence.endswith("call refit(problem, x, max_steps=12)")
    assert refit(problem, problem.x0, max_steps=3 * 4**4).converged  # the advice, followed four times


@pytest.mark.parametrize(
    "make",
    [None, lambda ys: torch.optim.SGD(ys, 0.3), lambda ys: torch.optim.LBFGS(ys, tolerance_grad=0, tolerance_change=0)],
)
def test_optimisers_of_torch_agree(make):
    problem = Quadratic(seed=2)
    found = refit(problem, problem.x0, optimiser=make)
    assert found.converged
    torch.testing.assert_close(found.y, problem.y_star(problem.x0), rtol=1e-6, atol=1e-6)
    assert found.gradients < 150  # and none of them for nothing: SGD needs log(1.5e-8) / log(0.7) = 51


def test_time_is_kept(monkeypatch):
    """A clock that goes on by a second at each look."""
    monkeypatch.setattr(refitting.time, "monotonic", iter(range(1000)).__next__)
    problem = Quadratic(mu=1e-4, L=10.0, dim_y=100)
    for seconds, make in ((5, None), (20, lambda ys: torch.optim.Adam(ys, 1e-3))):
        found = refit(problem, problem.x0, seconds=seconds, optimiser=make)
        assert not found.converged
        assert found.warnings[0].endswith(f"call refit(problem, x, seconds={4 * seconds})")
        assert seconds <= found.gradients <= 30 * seconds
