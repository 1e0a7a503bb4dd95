import pytest
import torch
from torch.autograd import gradcheck

from bilevel_core import hypergradient, objective
from bilevel_core.counting import counting
from bilevel_core.problems import Quadratic, Valley
from core.families import LogCosh, Penalties, minimised


@pytest.mark.parametrize("problem", [Quadratic(), LogCosh(), Valley()], ids=lambda problem: type(problem).__name__)
def test_its_backward_is_its_derivative(problem):
    x, _ = problem.start(torch.Generator())
    assert gradcheck(objective(problem), x.requires_grad_())


def test_value_and_slope_are_the_closed_form_and_chain():
    problem, x = Quadratic(seed=1), torch.linspace(-1, 1, 5, dtype=torch.float64).requires_grad_()
    loss = 3 * objective(problem)(2 * x) ** 2
    loss.backward()
    there = 2 * x.detach()
    phi, slope = problem.objective(there), problem.hypergradient(there)
    torch.testing.assert_close(loss.detach(), 3 * phi**2)
    torch.testing.assert_close(x.grad, 12 * phi * slope)


def test_without_gradients_it_is_a_number():
    problem = Quadratic()
    with torch.no_grad():
        value = objective(problem)(problem.x0.clone().requires_grad_())
    assert not value.requires_grad
    torch.testing.assert_close(value, problem.objective(problem.x0))
    torch.testing.assert_close(objective(problem)(problem.x0), value)


def test_it_is_differentiated_once_and_no_zero_is_passed_off_as_a_second_derivative():
    problem = Quadratic()
    x = problem.x0.clone().requires_grad_()
    (slope,) = torch.autograd.grad(objective(problem)(x), x, create_graph=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        slope.sum().backward()


def test_it_starts_where_it_stopped():
    problem, phi = LogCosh(), objective(LogCosh())
    x = problem.x0.clone().requires_grad_()
    costs = []
    for _ in range(2):
        with counting() as calls:
            phi(x)
        costs.append(calls.Hv)
    assert costs[1] == 1 < costs[0]  # one product says that the old v still solves the system
    found = hypergradient(problem, problem.x0)
    torch.testing.assert_close(phi.y, found.y)
    torch.testing.assert_close(phi.v, found.v)


def test_samples_and_tolerance_are_its_own():
    problem = LogCosh(noise=1.0)
    samples = problem.sample(torch.Generator().manual_seed(1))
    x = problem.x0.clone().requires_grad_()
    objective(problem, samples)(x).backward()
    torch.testing.assert_close(x.grad, hypergradient(problem, problem.x0, samples).gradient)
    rough = objective(problem, samples, tol=1e-2)
    rough(x)
    assert 1e-8 < (rough.y - hypergradient(problem, problem.x0, samples).y).norm() < 1e-1


@pytest.mark.slow
def test_torch_finds_the_best_of_twenty_penalties():
    """L-BFGS and Adam, on Phi and through its closed form, go the same way."""
    problem = Penalties()
    for optimiser, steps, options in (
        (torch.optim.LBFGS, 3, {"line_search_fn": "strong_wolfe"}),
        (torch.optim.Adam, 60, {"lr": 0.2}),
    ):
        found = minimised(objective(problem), optimiser, steps, **options)
        truth = minimised(problem.phi, optimiser, steps, **options)
        torch.testing.assert_close(problem.phi(found), problem.phi(truth), rtol=1e-6, atol=0)
        assert problem.phi(found) < 0.97 * problem.phi(torch.zeros(20).double())
