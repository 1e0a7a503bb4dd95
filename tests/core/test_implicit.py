"""The hypergradient against closed forms and differences of Phi, and Phi as a function for torch."""

import math
from functools import partial

import pytest
import torch
from torch.autograd import gradcheck

from bilevel_core import hypergradient, objective
from bilevel_core.counting import counting
from bilevel_core.implicit import NotConverged, conjugate_gradients, solve_lower
from bilevel_core.problems import Quadratic, Valley
from core.families import LogCosh, Penalties, minimised


def test_closed_form_on_the_quadratic(dtype):
    problem = Quadratic(seed=3, dtype=dtype)
    x = torch.linspace(-1, 2, 5, dtype=dtype)
    found = hypergradient(problem, x)
    close = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-10}
    torch.testing.assert_close(found.y, problem.y_star(x), **close)
    torch.testing.assert_close(found.v, problem.v_star(x), **close)
    torch.testing.assert_close(found.gradient, problem.hypergradient(x), **close)


@pytest.mark.parametrize("x", [-2.5, -0.8, 0.3, 1.7])
def test_closed_form_in_the_valley(x):
    problem, x = Valley(), torch.tensor([x], dtype=torch.float64)
    found = hypergradient(problem, x)
    torch.testing.assert_close(found.y, problem.y_star(x), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.v, problem.v_star(x), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(found.gradient, problem.hypergradient(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_derivative_of_the_objective(seed):
    """Three independent roads to one number: the implicit function theorem, and finite differences of Phi."""
    problem = LogCosh(seed=seed)
    full = problem.full()

    def objective(x):
        return problem.upper(x, hypergradient(problem, x).y, full.upper)

    found, h = hypergradient(problem, problem.x0).gradient, 1e-4
    steps = h * torch.eye(len(found), dtype=torch.float64)
    differences = [(objective(problem.x0 + e) - objective(problem.x0 - e)) / (2 * h) for e in steps]
    torch.testing.assert_close(found, torch.stack(differences), rtol=1e-6, atol=1e-7)


def test_samples_choose_the_problem():
    problem = LogCosh(noise=1.0)
    samples = problem.sample(torch.Generator().manual_seed(1))
    found = hypergradient(problem, problem.x0, samples)
    assert problem.g_y(problem.x0, found.y, samples.lower).norm() < 1e-9
    assert problem.g_y(problem.x0, found.y, problem.full().lower).norm() > 0.1
    residual = problem.H(problem.x0, found.y, samples.lower) @ found.v - problem.f_y(problem.x0, found.y, samples.upper)
    assert residual.norm() < 1e-9


def test_a_lower_level_that_is_not_strongly_convex_is_refused():
    class Saddle(LogCosh):
        def lower(self, x, y, batch):
            return y[0] ** 2 - y[1] ** 2 + y[2:].sum()

    with pytest.raises(NotConverged, match="not strongly convex"):
        hypergradient(Saddle(), Saddle().x0)


def test_newton_stops_at_its_goal_and_halves_a_step_that_overshoots():
    two = torch.tensor([2.0], dtype=torch.float64)
    assert solve_lower(lambda y: y @ y / 2, two, 1.0, 9).y == 2  # ||grad|| = 2 <= 1.0 max(1, 2): it is there already
    assert solve_lower(lambda y: y @ y / 2, two, 0.9, 9).y == 0
    assert solve_lower(lambda y: (1 + y @ y).sqrt(), two, 1e-8, 99).y.abs() < 1e-6  # a full step leads to -8
    with pytest.raises(NotConverged, match=r"after 2 Newton steps the lower gradient's norm is 0\.263 > 3\.63e-12"):
        solve_lower(lambda y: y.cosh().sum(), two, 1e-12, 2)
    with pytest.raises(NotConverged, match="no descent on the lower level; its gradient norm is still 2"):
        solve_lower(lambda y: y @ y / 2 * torch.where(y == 2, 1.0, torch.nan).sum(), two, 1e-12, 2)


def test_oracle_calls_are_counted():
    problem = Quadratic(mu=1.0, L=1.0)  # one step of conjugate gradients solves a system with A, one of Newton the rest
    with counting() as calls:
        hypergradient(problem, problem.x0, y=torch.zeros_like(problem.b))
    assert (calls.gradients, calls.Hv, calls.Jv) == (4, 2, 1)


def test_conjugate_gradients_end_in_as_many_steps_as_dimensions():
    problem = Quadratic(dim_y=12, mu=0.1, L=10)
    steps = []
    u = conjugate_gradients(lambda p: steps.append(1) or problem.A @ p, problem.b, 1e-12)
    torch.testing.assert_close(u, torch.linalg.solve(problem.A, problem.b), rtol=1e-9, atol=1e-9)
    assert len(steps) <= 14
    assert not conjugate_gradients(lambda p: p, problem.b, 1.0).any()  # 0 is as good as asked for
    few = conjugate_gradients(partial(torch.mv, problem.A), problem.b, 1e-12, max_steps=2)
    assert (problem.A @ few - problem.b).norm() > 1e-3  # as far as that, and no error
    assert not conjugate_gradients(torch.neg, problem.b, 1e-12, max_steps=2).any()
    turned = torch.tensor([[1.0, 0.5], [-0.5, 1.0]])
    for M, words in ((0 * turned, "curvature 0"), (-1.5 * torch.eye(2), "curvature -1.5"), (turned, "residual 13")):
        with pytest.raises(NotConverged, match=words):
            conjugate_gradients(partial(torch.mv, M), torch.ones(2), 1e-6)


def test_bad_input_is_refused():
    problem = Quadratic()
    with pytest.raises(ValueError, match="x has another shape or dtype: expected shape"):
        hypergradient(problem, torch.ones(4, dtype=torch.float64))
    with pytest.raises(ValueError, match="x must be a 1-D"):
        hypergradient(problem, torch.ones(5, 1, dtype=torch.float64))
    with pytest.raises(ValueError, match="y must be a 1-D"):
        hypergradient(problem, problem.x0, y=problem.b[:, None])
    with pytest.raises(ValueError, match="tol must be a positive number"):
        hypergradient(problem, problem.x0, tol=0)
    problem.upper = lambda x, y, batch: y.detach().sum()
    with pytest.raises(ValueError, match="upper does not depend on x or y"):
        hypergradient(problem, problem.x0, y=problem.b)


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


class Fenced(Valley):
    """The valley, with a lower loss that is nan beyond |x| = 0.9."""

    def lower(self, x, y, batch):
        return super().lower(x, y, batch) + 1e-3 * (0.9 - x.abs()).log().sum() * (y @ y)


def test_line_search_steps_back_from_where_the_lower_level_cannot_be_solved():
    problem = Fenced(b=2.0, start=(0.0, 0.0))
    phi = objective(problem)
    with pytest.warns(UserWarning, match=r"Phi\(x\) = inf: the lower loss is nan at the first y") as told:
        found = minimised(phi, torch.optim.LBFGS, 3, size=1, line_search_fn="strong_wolfe", tolerance_change=0)
    assert {each.filename for each in told} == {minimised.__code__.co_filename}  # who has called phi
    far = torch.full((1,), -1000.0, dtype=torch.float64, requires_grad=True)
    with pytest.warns(UserWarning, match="a line search steps back from here"):
        phi(far).backward()
    assert far.grad == math.inf
    assert 0 < found < 0.9
    assert hypergradient(problem, found).gradient.abs() < 1e-5
    with pytest.raises(NotConverged, match="the lower loss is nan"):  # nothing to step back to
        objective(problem)(found + 1)
    with pytest.raises(ValueError, match="all of them finite"):
        phi(math.nan * found)


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
